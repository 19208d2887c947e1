"""Lookups by ranges, and of intervals by what they contain or overlap: against a plain search, and what they cost."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ivm.dataflow import Dataflow
from ivm.graph import Arrange, Bound, DeltaJoin, Gather, Input, Lookup, NodeId, Output, Path, Span
from ivm.kernels.memory import FENCE, address
from ivm.kernels.peaks import climb, extend_peaks
from ivm.rows import Words
from tests.support.ivm_model import Row

EXTREMES = (-(2**63), 2**63 - 1)


def climbed(words: list[int], start: int, stop: int, least: int) -> int:
    """``climb``, plainly."""
    return next((i for i in range(start, stop) if words[i] >= least), stop)


@pytest.mark.parametrize("seed", range(4))
def test_peaks_find_the_next_row(seed: int) -> None:
    """Made at once and piece by piece, with and without, from every kind of start."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 40)) * FENCE + int(rng.integers(0, FENCE))
    rows = rng.integers(-9, 9, (count, 3)) ** 3
    rows[rng.random(count) < 0.01, 2] = rng.choice([5000, *EXTREMES])
    peaks = np.zeros(count // FENCE + 1, np.int64)
    done, at = 0, 1
    while done < count:
        done = min(count, done + int(rng.integers(1, 4 * FENCE)))
        at = extend_peaks(address(rows), 3, 2, done, address(peaks), at)
    assert at == count // FENCE + 1
    words = rows[:, 2].tolist()
    for _ in range(600):
        start, stop = sorted(map(int, rng.integers(0, count + 1, 2)))
        least = int(rng.choice([*words, 5000, *EXTREMES, 600]))
        for given in (address(peaks), 0):
            assert climb(address(rows), 3, 2, count, given, start, stop, least) == climbed(words, start, stop, least)


def test_a_search_skips_what_ends_early() -> None:
    """A million rows, all but eight too low: of the rows between them few blocks are read."""
    rows = np.zeros((1 << 20, 2), np.int64)
    rows[:: 1 << 17, 1] = 7
    peaks = np.zeros(len(rows) // FENCE + 1, np.int64)
    extend_peaks(address(rows), 2, 1, len(rows), address(peaks), 1)
    rows[1::2, 1] = 9  # not in the peaks, so a row that is read shows
    found = []
    p = 0
    while p < len(rows):
        p = climb(address(rows), 2, 1, len(rows), address(peaks), p, len(rows), 7)
        found.append(p)
        p += FENCE - p % FENCE
    blocks = {p // FENCE for p in found[:-1]}
    assert {k << 12 for k in range(8)} <= blocks
    assert len(blocks) < 8 * 16


class Bands:
    """Points and intervals, and the joins of both with intervals, with a key and without. An interval is (key, low,
    high); a point ends where it starts."""

    def __init__(self) -> None:
        self.flow = Dataflow()
        self.points, self.intervals = self.flow.add(Input(3)), self.flow.add(Input(3))
        self.held: dict[NodeId, Counter[Row]] = {self.points: Counter(), self.intervals: Counter()}
        self.at = 0
        self.outputs: dict[NodeId, tuple[NodeId, bool]] = {}
        for left in (self.points, self.intervals):
            for keyed in (False, True):
                self.outputs[self.flow.add(Output(self.flow.add(self._join(left, keyed))))] = left, keyed
        self.emitted: dict[NodeId, Counter[Row]] = {out: Counter() for out in self.outputs}
        self.flow.hydrate()

    def _join(self, left: NodeId, keyed: bool) -> DeltaJoin:
        """A row of the left input starts at or before an interval's end, and ends after its start."""
        key = (0,) if keyed else ()
        low, high = (1, 2) if keyed else (0, 1)
        gather = Gather((0, 1, 2) if keyed else (1, 2, 0))
        one = self.flow.add(Arrange(left, gather, low + 1))
        two = self.flow.add(Arrange(self.intervals, gather, low + 1))
        point = left is self.points
        there = Span(None, Bound(high, strict=True), Bound(low))
        back = Span(Bound(low, strict=True), Bound(high)) if point else Span(None, Bound(high), Bound(low, strict=True))
        words = (*range(3), *range(3, 6))
        return DeltaJoin(
            (
                Path(one, ((Lookup(1, two, key, there),),), Gather(words)),
                Path(two, ((Lookup(0, one, key, back),),), Gather((*range(3, 6), *range(3)))),
            )
        )

    def commit(self, *changes: tuple[NodeId, Words, int]) -> int:
        """Feeds rows with a diff as one epoch; returns the seeks and the rows visited."""
        before = self.flow.counters
        self.at += 1
        for node, rows, diff in changes:
            self.flow.feed(node, rows, self.at, np.full(len(rows), diff))
            for row in map(tuple, rows.tolist()):
                self.held[node][row] += diff
        self.flow.step()
        for out, total in self.emitted.items():
            found = self.flow.changes(out)
            for row, diff in zip(map(tuple, found.rows.tolist()), found.diffs.tolist(), strict=True):
                total[row] += diff
        self.flow.allow_compaction(self.at)
        spent = self.flow.counters - before
        return spent.seeks + spent.matches

    def expected(self, left: NodeId, keyed: bool) -> Counter[Row]:
        found: Counter[Row] = Counter()
        order = (0, 1, 2) if keyed else (1, 2, 0)
        for a, n in self.held[left].items():
            for b, m in self.held[self.intervals].items():
                if n * m and a[1] <= b[2] and b[1] < a[2] and (not keyed or a[0] == b[0]):
                    found[*(a[i] for i in order), *(b[i] for i in order)] += n * m
        return found

    def check(self) -> None:
        for out, (left, keyed) in self.outputs.items():
            assert {r: n for r, n in self.emitted[out].items() if n} == dict(self.expected(left, keyed))


def intervals(rng: np.random.Generator, count: int, reach: int) -> Words:
    """Short ones, empty ones, some that never end, and one of everything."""
    low = rng.integers(0, reach, count)
    high = low + rng.integers(-3, 9, count)
    high[rng.random(count) < 0.01] = EXTREMES[1]
    low[:1], high[:1] = EXTREMES
    return np.column_stack([rng.integers(0, 4, count), low, high])


def points(rng: np.random.Generator, count: int, reach: int) -> Words:
    low = rng.integers(0, reach, count)
    low[:2] = EXTREMES[:count]
    return np.column_stack([rng.integers(0, 4, count), low, low])


@pytest.mark.parametrize("seed", range(4))
def test_large_changes(seed: int) -> None:
    """Hundreds of rows an epoch on either side or both, and merged layers."""
    rng = np.random.default_rng(seed)
    bands = Bands()
    for _ in range(6):
        changes: list[tuple[NodeId, Words, int]] = []
        for node, draw in ((bands.points, points), (bands.intervals, intervals)):
            if rng.random() < 0.75:
                changes.append((node, draw(rng, int(rng.choice([1, 40, 400])), 900), 1))
            held = [row for row, n in bands.held[node].items() if n > 0]
            if held and rng.random() < 0.6:
                gone = rng.choice(len(held), min(len(held), int(rng.choice([1, 30, 300]))), replace=False)
                changes.append((node, np.array([held[i] for i in gone]), -1))
        if changes:
            bands.commit(*changes)
            bands.check()


def test_a_change_costs_what_it_meets() -> None:
    """The same for 2,000 rows a side and for 64,000, with as many matches: their density is the same."""
    spent = []
    for count in (2_000, 64_000):
        rng = np.random.default_rng(7)
        bands = Bands()
        wide = np.array([[1, 5, EXTREMES[1]], [2, 9, EXTREMES[1]]])
        low = rng.integers(0, 3 * count, count)
        bands.commit((bands.intervals, np.column_stack([low % 4, low, low + 6]), 1), (bands.intervals, wide, 1))
        at = rng.integers(0, 3 * count, count)
        bands.commit((bands.points, np.column_stack([at % 4, at, at]), 1))
        costs = []
        for place in range(count, 2 * count, count // 20):
            for node, row in ((bands.points, [1, place, place]), (bands.intervals, [1, place, place + 6])):
                costs += [bands.commit((node, np.array([row]), diff)) for diff in (1, -1)]
        spent.append(max(costs))
    assert spent[0] > 8
    assert spent[1] < 600
    assert spent[1] < 3 * spent[0]
