"""Sorting rows of words and merging sorted runs, outside the engine and without holding the GIL for long.

A *run* is distinct rows in ascending order, word by word, with their counts. Runs may exceed memory: they are all cut
at the same rows, chosen by sampling, and merged piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ivm.rows import Words
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block

_SAMPLES: Final = 64
"""Sampled rows per piece wanted, so that pieces are of similar size."""


class Run(NamedTuple):
    """``rows`` int64[n, width], ascending and distinct. ``counts`` int64[n], all positive; None if every row occurs
    once."""

    rows: Words
    counts: Words | None = None

    @property
    def times(self) -> Words:
        """The counts as int64[n], all positive."""
        return np.ones(len(self.rows), np.int64) if self.counts is None else self.counts


def sorted_run(rows: Words, counts: Words | None = None) -> Run:
    """Rows in any order, int64[n, width], as a run; returned unchanged if they are one already.

    Cost: O(n log n). Sorts by first words alone if these are all distinct, which numpy does in a third of the time;
    otherwise uses the engine's own sort.
    """
    if is_ascending(rows):
        return Run(rows, counts)
    order = _order_of_firsts(rows)
    if order is not None:
        return Run(np.take(rows, order, axis=0), None if counts is None else counts[order])
    given = Block.of(rows, np.zeros(len(rows), np.int64), Run(rows, counts).times)
    rows, _, sums = sorted_block(given).arrays()
    return Run(rows, None if (sums == 1).all() else sums[:, 0])


def _order_of_firsts(rows: Words) -> NDArray[np.int64] | None:
    """The permutation that sorts rows by their first words; None if two of these are equal."""
    if not rows.shape[1]:
        return None
    first = np.ascontiguousarray(rows[:, 0])
    order = np.argsort(first, kind="stable")  # a merge sort: fast on runs
    first = first[order]
    return order if (first[1:] != first[:-1]).all() else None


def is_ascending(rows: Words) -> bool:
    """Whether each row is greater than the one before."""
    if len(rows) < 2:
        return True
    tied: NDArray[np.int64] | None = None  # rows equal to their successor so far; None: all
    for column in range(rows.shape[1]):
        words = rows[:, column]
        low, high = (words[:-1], words[1:]) if tied is None else (words[tied], words[tied + 1])
        if (low > high).any():
            return False
        alike = np.flatnonzero(low == high)
        if not len(alike):
            return True
        tied = alike if tied is None else tied[alike]
    return False


def merged(runs: Sequence[Run], size: int) -> Iterator[Run]:
    """Merges runs into one, in ascending pieces of about ``size`` rows. Cost: that of sorting each piece, which
    consists of runs."""
    held = [run for run in runs if len(run.rows)]
    if not held:
        return
    cuts = _cuts([run.rows for run in held], size)
    for k in range(cuts.shape[1] - 1):
        parts = [_slice(run, *cuts[i, k : k + 2].tolist()) for i, run in enumerate(held)]
        parts = [part for part in parts if len(part.rows)]
        if len(parts) == 1:
            yield parts[0]
        elif parts:
            counted = any(part.counts is not None for part in parts)
            counts = np.concatenate([part.times for part in parts]) if counted else None
            yield sorted_run(np.concatenate([part.rows for part in parts]), counts)


def _slice(run: Run, low: int, high: int) -> Run:
    return Run(run.rows[low:high], None if run.counts is None else run.counts[low:high])


def _cuts(runs: Sequence[Words], size: int) -> NDArray[np.int64]:
    """Where to cut each run, int64[runs, pieces + 1], so that equal rows fall on the same side of a cut."""
    total = sum(map(len, runs))
    pieces = max(1, -(-total // size))
    ends = np.array([[0, len(rows)] for rows in runs])
    if pieces == 1:
        return ends
    step = max(1, total // (pieces * _SAMPLES))
    sample = np.concatenate([rows[step // 2 :: step] for rows in runs])
    sample = np.take(sample, np.lexsort(sample.T[::-1]), axis=0)
    splitters = _whole(sample[np.arange(1, pieces) * len(sample) // pieces])
    inner = np.array([np.searchsorted(_whole(rows), splitters) for rows in runs])
    return np.concatenate([ends[:, :1], inner, ends[:, 1:]], axis=1)


def _whole(rows: Words) -> NDArray[np.void]:
    """Rows as values that numpy compares word by word."""
    return np.ascontiguousarray(rows).view([("", np.int64)] * rows.shape[1]).reshape(-1)
