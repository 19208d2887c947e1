"""A reducer's picks from a group: encoded for kernels, and in plain numpy for whole groups."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ivm.graph import Picks, Rank, Window
from ivm.kernels.codes import WINDOW_DIFFS
from ivm.rows import Words

EVERYTHING = 1 << 62
_FEW = 64
_MANY = 4096


@dataclass(slots=True, eq=False)
class Picking:
    """A reducer's picks, laid out for ``windows_total``."""

    picks: Picks
    windows: Words
    fractions: Words

    @classmethod
    def of(cls, picks: Picks) -> Picking:
        """Encodes a reducer's picks."""
        words = [(w.rank.value, w.words or w.first, EVERYTHING if w.last is None else w.last) for w in picks.windows]
        fractions = np.array([w.fraction for w in picks.windows], np.float64).view(np.int64)
        return cls(picks, np.array(words, np.int64).reshape(-1), fractions)

    @property
    def only(self) -> Window:
        """The only window of picks that have one."""
        (window,) = self.picks.windows
        return window

    def by_changes(self, updates: int) -> bool:
        """Whether searching for each update costs less than showing the window."""
        if not self.picks.changes:
            return False
        if self.only.last is None:
            return updates <= _MANY
        return _FEW * updates < self.only.last - self.only.first

    @property
    def limit(self) -> int:
        """How many rows from the start suffice when groups are scanned; -1: all."""
        if self.picks.flagged or any(w.rank is not Rank.ROWS or w.last is None for w in self.picks.windows):
            return -1
        return max((w.last or 0 for w in self.picks.windows), default=0)


def pick(picks: Picks, offsets: Words, vals: Words, diffs: Words) -> tuple[Words, Words, Words]:
    """(offsets, values, diffs) for a picking reducer, from whole groups. Cost: the groups."""
    values: list[Words] = []
    shown: list[tuple[int, int, int, int]] = []
    ends = [0]
    counts = np.maximum(diffs[:, 0], 0)
    for low, high in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        part = counts[low:high]
        if picks.flagged:
            counted = vals[low:high, 0] == 0
            present, part = bool(part.any()), np.where(counted, part, 0)
            if present and not part.any():
                values.append(np.zeros(vals.shape[1], np.int64))
                shown.append((0, -1, 0, 0))
        behind = np.cumsum(part)
        total = int(behind[-1]) if len(behind) else 0
        for number, window in enumerate(picks.windows):
            first, last = _bounds(window, total)
            if window.words:
                last = _peers(window, vals[low:high, : window.words], part)
            start, stop = np.maximum(behind - part, first), np.minimum(behind, last)
            for i in np.flatnonzero(stop > start).tolist():
                values.append(vals[low + i])
                shown.append((int(stop[i] - start[i]), number, int(start[i]), total))
        ends.append(len(shown))
    matrix = np.array(values, np.int64).reshape(len(values), vals.shape[1])
    return np.array(ends), matrix, np.array(shown, np.int64).reshape(-1, WINDOW_DIFFS)


def _bounds(window: Window, total: int) -> tuple[int, int]:
    match window.rank:
        case Rank.ROWS:
            return window.first, total if window.last is None else min(window.last, total)
        case Rank.CONTINUOUS:
            at = window.fraction * (total - 1)
            return math.floor(at), min(math.ceil(at) + 1, total)
        case Rank.PEERS | Rank.GROUPS:
            return 0, total
        case Rank.DISCRETE:
            first = max(math.ceil(window.fraction * total), 1) - 1
            return first, min(first + 1, total)


def _peers(window: Window, words: Words, counts: Words) -> int:
    """How many rows are in a window by peers."""
    shown = groups = 0
    previous: list[int] | None = None
    for peer, count in zip(words.tolist(), counts.tolist(), strict=True):
        if count and peer != previous:
            if window.last is not None and (shown if window.rank is Rank.PEERS else groups) >= window.last:
                break
            groups, previous = groups + 1, peer
        shown += count
    return shown
