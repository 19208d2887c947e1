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
        sets, codes = (totals.slots >> SLOT_SHIFT) - 1, totals.slots & _CODE
        dense = {
            slot_set: (codes[sets == i], totals.amounts[:, sets == i])
            for i, slot_set in enumerate(self.layout.slot_sets)
        }
        return Groups(totals.main, _Limbs(dense), self.dictionary, dense)


class _Limbs(dict[SlotSet, dict[int, dict[int, int]]]):
    """The limbs by group, made when they are asked for."""

    def __init__(self, dense: dict[SlotSet, tuple[Words, Words]]) -> None:
        super().__init__()
        self._dense = dense

    def __missing__(self, slot_set: SlotSet) -> dict[int, dict[int, int]]:
        codes, amounts = self._dense[slot_set]
        rows, places = np.nonzero(amounts)
        made = self[slot_set] = {}
        for row, code, amount in zip(
            rows.tolist(), codes[places].tolist(), amounts[rows, places].tolist(), strict=True
        ):  # fmt: skip
            made.setdefault(row, {})[code] = amount
        return made


_NONE = np.zeros(0, np.int64)


def running(totals: Totals) -> Totals:
    """The sums before each row and after the last: one more row."""
    main = np.zeros((len(totals.main) + 1, totals.main.shape[1]), np.int64)
    np.cumsum(totals.main, axis=0, out=main[1:])
    amounts = np.zeros((len(totals.main) + 1, totals.amounts.shape[1]), np.int64)
    np.cumsum(totals.amounts, axis=0, out=amounts[1:])
    return Totals(main, totals.slots, amounts)
