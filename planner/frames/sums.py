"""Sums over ranges of places, as differences: the input of accumulable aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ivm.rows import Mask, Vector, Words
from planner.aggregates.accumulable import Accumulation
from planner.aggregates.components import SLOT_SHIFT, Groups, SlotSet
from storage.dictionary import Dictionary

_CODE = (1 << SLOT_SHIFT) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """``main`` int64[n, k]: diff columns; ``amounts`` int64[n, s]: the limbs in ``slots`` int64[s], which ascend."""

    main: Words
    slots: Words
    amounts: Words

    def take(self, places: Words) -> Totals:
        """Those at positions."""
        return Totals(self.main[places], self.slots, self.amounts[places])

    def plus(self, other: Totals, sign: int = 1) -> Totals:
        """The sum with others of as many rows, or the difference from them."""
        slots = self.slots if self.slots is other.slots else np.union1d(self.slots, other.slots)
        amounts = self.laid(slots) + sign * other.laid(slots)
        return Totals(self.main + sign * other.main, slots, amounts)

    def laid(self, slots: Words) -> Words:
        """``amounts`` for more slots."""
        if len(slots) == len(self.slots):
            return self.amounts
        laid = np.zeros((len(self.amounts), len(slots)), np.int64)
        laid[:, np.searchsorted(slots, self.slots)] = self.amounts
        return laid

    def same(self, other: Totals) -> Mask:
        """Whether each row's sums are equal, bool[n]."""
        less = self.plus(other, -1)
        return np.asarray(~(less.main.any(axis=1) | less.amounts.any(axis=1)))


@dataclass(frozen=True, slots=True)
class Sums:
    """What rows add to the sums of ``layout``."""

    layout: Accumulation
    dictionary: Dictionary

    def of(self, columns: Sequence[Vector], counts: Words) -> Totals:
        """What each row adds, as often as it occurs."""
        n = len(counts)
        expanded = self.layout.expand(columns, n, self.dictionary)
        main = expanded.weights[:n] * counts[:, None]
        if expanded.source is None:
            return Totals(main, _NONE, np.zeros((n, 0), np.int64))
        slots, place = np.unique(expanded.slots[n:], return_inverse=True)
        amounts = np.zeros((n, len(slots)), np.int64)
        source = expanded.source[n:]
        np.add.at(amounts, (source, place), expanded.weights[n:, 0] * counts[source])
        return Totals(main, slots, amounts)

    def groups(self, totals: Totals) -> Groups:
        """Totals as the sums of groups."""
        limbs: dict[SlotSet, dict[int, dict[int, int]]] = {s: {} for s in self.layout.slot_sets}
        rows, places = np.nonzero(totals.amounts)
        slots = totals.slots[places]
        amounts = totals.amounts[rows, places]
        for row, slot, amount in zip(rows.tolist(), slots.tolist(), amounts.tolist(), strict=True):
            of = limbs[self.layout.slot_sets[(slot >> SLOT_SHIFT) - 1]]
            of.setdefault(row, {})[slot & _CODE] = amount
        return Groups(totals.main, limbs, self.dictionary)


_NONE = np.zeros(0, np.int64)


def running(totals: Totals) -> Totals:
    """The sums before each row and after the last: one more row."""
    main = np.zeros((len(totals.main) + 1, totals.main.shape[1]), np.int64)
    np.cumsum(totals.main, axis=0, out=main[1:])
    amounts = np.zeros((len(totals.main) + 1, totals.amounts.shape[1]), np.int64)
    np.cumsum(totals.amounts, axis=0, out=amounts[1:])
    return Totals(main, totals.slots, amounts)
