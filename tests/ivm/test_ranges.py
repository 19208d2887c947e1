"""Rows between two bounds, from either end: what a reading of everything has there, and no more looked at than that."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ivm.dataflow import Dataflow
from ivm.graph import Arrange, Gather, Input
from ivm.trace.ranges import EVERYTHING, Bound, Range
from ivm.trace.trace import Version
from tests.support.profiles import scaled

Row = tuple[int, ...]
EXTREMES = (-(2**63), -1, 0, 1, 2**63 - 1)


def _versions(rng: random.Random, steps: int, most: int, keys: int) -> list[tuple[Version, int]]:
    """An arrangement by two of three words at some moments, its rows changed by insertions, deletions and again."""
    flow = Dataflow()
    given = flow.add(Input(3))
    arranged = flow.add(Arrange(given, Gather((0, 1, 2)), 2))
    flow.retain(arranged)
    flow.hydrate()
    there: list[Row] = []
    found = []
    for at in range(1, steps + 1):
        changes: dict[Row, int] = {}
        for _ in range(rng.randrange(most)):
            if there and rng.random() < 0.4:
                row, diff = there.pop(rng.randrange(len(there))), -1
            else:
                first = rng.choice(EXTREMES) if rng.random() < 0.1 else rng.randrange(keys)
                row, diff = (first, rng.randrange(5), rng.randrange(3)), 1
                there.append(row)
            changes[row] = changes.get(row, 0) + diff
        if changes:
            rows = np.array(list(changes), np.int64)
            flow.feed(given, rows, np.full(len(rows), at), np.array(list(changes.values())))
        flow.step()
        if rng.random() < 0.3:
            flow.allow_compaction(max(at - 2, 0))
        if at % 7 == 0 or at == steps:
            found.append((flow.publish()[arranged], at))
    return found


def _bound(rng: random.Random, keys: int) -> Bound:
    first = rng.choice(EXTREMES) if rng.random() < 0.1 else rng.randrange(-1, keys + 1)
    words = (first, rng.randrange(-1, 6), rng.randrange(3))[: rng.randrange(4)]
    return Bound(words, included=not words or rng.random() < 0.5)


def _within(row: Row, low: Bound, high: Bound) -> bool:
    above = row[: len(low.words)] > low.words or (low.included and row[: len(low.words)] == low.words)
    return above and (row[: len(high.words)] < high.words or (high.included and row[: len(high.words)] == high.words))


@pytest.mark.parametrize("seed", range(scaled(6)))
def test_a_range_has_the_rows_of_everything_in_order(seed: int) -> None:
    rng = random.Random(seed)
    keys = rng.choice([3, 40, 4000])
    for version, at in _versions(rng, rng.choice([20, 60]), rng.choice([4, 60, 600]), keys):
        layers = version.layers()
        assert layers is not None
        for moment in {at, max(version.since, at - 1)}:
            rows, diffs = version.rows_at(moment)
            every = [(tuple(r), d) for r, d in zip(rows.tolist(), diffs.tolist(), strict=True)]
            for _ in range(5):
                low, high = _bound(rng, keys), _bound(rng, keys)
                expected = [(r, d) for r, d in every if _within(r, low, high)]
                taken: list[tuple[Row, int]] = []
                span, backward, count = Range(layers, moment, low, high), rng.random() < 0.5, rng.choice([1, 3, 50])
                assert span.left >= len(expected)
                while span.left:
                    found, sums = span.take(count, backward)
                    piece = [(tuple(r), d) for r, d in zip(found.tolist(), sums.tolist(), strict=True)]
                    taken = piece + taken if backward else taken + piece
                assert taken == expected
                whole, sums = Range(layers, moment, low, high).rest()
                assert [(tuple(r), d) for r, d in zip(whole.tolist(), sums.tolist(), strict=True)] == expected


def test_what_is_looked_at_grows_with_what_is_taken() -> None:
    flow = Dataflow()
    given = flow.add(Input(2))
    arranged = flow.add(Arrange(given, Gather((0, 1)), 1))
    flow.retain(arranged)
    flow.hydrate()
    for at, size in ((1, 100_000), (2, 3000), (3, 20)):
        rows = np.array([(i * 7, at) for i in range(size)], np.int64)
        flow.feed(given, rows, np.full(size, at), np.ones(size, np.int64))
        flow.step()
    layers = flow.publish()[arranged].layers()
    assert layers is not None
    for backward in (False, True):
        span = Range(layers, 3)
        assert span.left == 103_020
        assert len(span.take(10, backward)[0]) >= 9
        assert span.read <= 3 * 10
    assert Range(layers, 3, Bound((7000,), included=True), Bound((7070,), included=False)).left == 20
    assert Range(layers, 3, Bound((9,), included=True), Bound((8,), included=True)).left == 0
    assert Range((), 3, EVERYTHING, EVERYTHING).rest()[0].shape[0] == 0
