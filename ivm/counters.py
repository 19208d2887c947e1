"""How much work a dataflow has done."""

from __future__ import annotations

from dataclasses import dataclass

from ivm.kernels.join import S_HISTORY, S_MATCHES, S_SEEKS, S_SEGMENTS
from ivm.rows import Words


@dataclass(frozen=True, slots=True)
class Counters:
    """How much kernels have done: rows matched by joins, seeks of keys in layers, updates of histories read by
    thresholds and reduces, segments given to reducers, updates read by merges, operators that steps visited, and how
    often a step left one to Python (not counting insertions of large deltas)."""

    matches: int
    seeks: int
    history: int
    segments: int
    merged: int
    looked: int
    called: int

    @staticmethod
    def of(stats: Words, merged: int, looked: int, called: int) -> Counters:
        """Built from the kernels' counts."""
        return Counters(
            int(stats[S_MATCHES]), int(stats[S_SEEKS]), int(stats[S_HISTORY]), int(stats[S_SEGMENTS]), merged,
            looked, called,
        )  # fmt: skip

    def __sub__(self, other: Counters) -> Counters:
        return Counters(
            self.matches - other.matches, self.seeks - other.seeks, self.history - other.history,
            self.segments - other.segments, self.merged - other.merged, self.looked - other.looked,
            self.called - other.called,
        )  # fmt: skip
