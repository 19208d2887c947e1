"""Kernels against naive twins: times, sorting, gathering, spines with random fuel, lookups."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivm.graph import Gather
from ivm.kernels.blocks import gather
from ivm.kernels.codes import WIDTH_BITS
from ivm.kernels.times import advance, below, loops, lub, rounds, unwrap, wrap
from ivm.kernels.warm import KERNELS, entries, warm
from ivm.operators.base import inverse, program
from ivm.time import MAX_LOOPS, ROUND_BITS, WIDEST, all_bits, deeper, last_width, pack, unpack
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from ivm.trace.spine import Spine
from ivm.trace.trace import Version
from tests.support.ivm_model import gather as naive_gather
from tests.support.profiles import scaled

INTS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)


@st.composite
def vectors(draw: st.DrawFn, count: int) -> tuple[int, list[tuple[int, ...]]]:
    """A shape, and vectors of it."""
    shape = 0
    fields = []
    for width in draw(st.lists(st.integers(2, WIDEST), max_size=MAX_LOOPS)):
        if all_bits(shape) + width <= ROUND_BITS:
            shape = deeper(shape, width)
            fields.append(st.integers(0, 3) | st.integers(0, (1 << width) - 1))
    one = st.tuples(st.integers(0, 1 << 20), *fields)
    return shape, [draw(one) for _ in range(count)]


@settings(max_examples=scaled(200))
@given(vectors(3))
def test_times_are_a_lattice(drawn: tuple[int, list[tuple[int, ...]]]) -> None:
    shape, (x, y, z) = drawn
    a, b, c = (pack(shape, *vector) for vector in (x, y, z))
    assert unpack(a, shape) == x
    assert unpack(lub(a, b, shape), shape) == tuple(map(max, x, y))
    assert below(a, b, shape) == all(p <= q for p, q in zip(x, y, strict=True))
    assert lub(a, lub(b, c, shape), shape) == lub(lub(a, b, shape), c, shape)
    assert (a < b) == (x < y)
    assert unpack(advance(a, y[0], shape), shape) == (max(x[0], y[0]), *x[1:])
    assert rounds(a, shape) == pack(shape, 0, *x[1:])
    assert loops(shape) == len(x) - 1
    if shape:
        around = shape >> WIDTH_BITS
        assert unpack(unwrap(a, shape), around) == x[:-1]
        assert rounds(a, shape) >> last_width(shape) == pack(around, 0, *x[1:-1])
    if all_bits(shape) < ROUND_BITS and len(x) <= MAX_LOOPS:
        inside = deeper(shape, 1)
        assert unpack(wrap(a, shape, inside), inside) == (*x, 0)
        assert rounds(a, shape) << last_width(inside) == pack(inside, 0, *x[1:], 0)


def naive_sum(rows: np.ndarray, times: np.ndarray, diffs: np.ndarray) -> list[tuple[object, ...]]:
    total: dict[tuple[object, ...], np.ndarray] = {}
    for row, time, diff in zip(rows.tolist(), times.tolist(), diffs, strict=True):
        key = (*row, time)
        total[key] = total.get(key, np.zeros_like(diff)) + diff
    return [(*key, *map(int, diff)) for key, diff in sorted(total.items()) if diff.any()]


@pytest.mark.parametrize("count", [0, 1, 2, 20, 60, 300, 5000])
@pytest.mark.parametrize(("width", "diff_width"), [(0, 1), (1, 1), (2, 2), (3, 1)])
def test_sorting(count: int, width: int, diff_width: int) -> None:
    rng = np.random.default_rng(count * 10 + width)
    ranges = ((3, 0), (2**9, 2**62), (2**20, -(2**63) + 2**20), (2**50, 0), (2**63 - 1, 0))
    for (spread, least), most in product(ranges, (1, 2**25, 2**50)):  # of diffs: they are sorted with rows, or fetched
        rows = rng.integers(-spread, spread, (count, width)) + least
        times = rng.integers(0, 4, count)
        diffs = rng.integers(-most, most + 1, (count, diff_width))
        block = sorted_block(Block.of(rows, times, diffs))
        assert [(*r, t, *d) for r, t, d in zip(*(a.tolist() for a in block.arrays()), strict=True)] == naive_sum(
            rows, times, diffs
        )
        again = sorted_block(block)
        assert all(np.array_equal(x, y) for x, y in zip(again.arrays(), block.arrays(), strict=True))


@settings(max_examples=scaled(100))
@given(st.data())
def test_gather(data: st.DataObject) -> None:
    width = data.draw(st.integers(1, 4))
    word = st.integers(0, width - 1)
    bit = st.integers(0, 63)
    words = tuple(data.draw(st.lists(st.integers(-1, width - 1), min_size=1, max_size=5)))
    bits = data.draw(st.lists(st.tuples(word, bit, st.integers(0, len(words) - 1), bit), max_size=2))
    drops = data.draw(st.lists(st.tuples(word, bit), max_size=1))
    how = Gather(words, tuple(bits), tuple(drops))
    rows = data.draw(st.lists(st.lists(INTS, min_size=width, max_size=width), min_size=1, max_size=4))
    count = len(rows)
    source = Block.of(np.array(rows, np.int64), np.arange(count), np.ones((count, 1), np.int64))
    target = Block(len(words))
    target.n = gather(source.d, target.d, program(how, width, 0))
    found = [tuple(row) for row in target.arrays()[0].tolist()]

    def signed(row: tuple[int, ...]) -> tuple[int, ...]:
        return tuple((x + 2**63) % 2**64 - 2**63 for x in row)

    expected = [naive_gather(how, tuple(row)) for row in rows]
    assert found == [signed(row) for row in expected if row is not None]
    back = inverse(how, width)
    if back is not None:
        assert [naive_gather(back, row) for row in found] == [tuple(row) for row in rows]


@pytest.mark.parametrize("seed", range(8))
def test_spines_hold_what_was_inserted(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(Spine, "FUEL", rng.choice([1, 4, 30]))
    depth = seed % 3
    shape = (0, 24, 12 << WIDTH_BITS | 5)[depth]
    width = 1 + seed % 2
    spine = Spine(width, 1, shape)
    held: Counter[tuple[int, ...]] = Counter()
    at = 1
    for _ in range(150):
        updates = []
        for _ in range(rng.choice([1, 2, 10, 200, 900])):
            row = tuple(rng.randrange(300 if k == 0 else 20) for k in range(width))
            vector = (at + rng.randrange(2), *(rng.randrange(3) for _ in range(depth)))
            updates.append((row, pack(shape, *vector), rng.choice([1, -1])))
        rows, times, diffs = (np.array(column, np.int64) for column in zip(*updates, strict=True))
        spine.insert(sorted_block(Block.of(rows.reshape(-1, width), times, diffs.reshape(-1, 1))))
        for row, time, diff in updates:
            held[(*row, time)] += diff
        at += 1
        if rng.random() < 0.5:
            spine.since_word[0] = at - 1
    for part in spine.parts:
        part.check()
    since = spine.since
    expected: Counter[tuple[int, ...]] = Counter()
    for key, diff in held.items():
        expected[(*key[:-1], advance(key[-1], since, shape))] += diff
    rows, times, diffs = spine.contents(since).arrays()
    found = {(*r, t): d for r, t, (d,) in zip(rows.tolist(), times.tolist(), diffs.tolist(), strict=True)}
    assert found == {key: diff for key, diff in expected.items() if diff}
    if depth == 0:
        check_lookups(Version(spine, at + 1), expected, since, width, rng)


def check_lookups(version: Version, held: Counter[tuple[int, ...]], at: int, width: int, rng: random.Random) -> None:
    present: Counter[tuple[int, ...]] = Counter()
    for key, diff in held.items():
        if key[-1] <= at:
            present[key[:-1]] += diff
    keys = np.array([[rng.randrange(-1, 302)] for _ in range(60)])
    rows, diffs, index = version.lookup(keys, at)
    for i, (key,) in enumerate(keys.tolist()):
        found = {tuple(r): d for r, d in zip(rows[index == i].tolist(), diffs[index == i].tolist(), strict=True)}
        assert found == {row: diff for row, diff in present.items() if diff and row[0] == key}
    assert len(version.rows_at(at)[0]) == sum(1 for diff in present.values() if diff)
    lows = np.array([[rng.randrange(-1, 302)] for _ in range(20)])
    highs = lows + np.array([[rng.randrange(-1, 9)] for _ in range(20)])
    rows, diffs, index = version.between(lows, highs, at)
    for i, ((low,), (high,)) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True)):
        found = {tuple(r): d for r, d in zip(rows[index == i].tolist(), diffs[index == i].tolist(), strict=True)}
        assert found == {row: diff for row, diff in present.items() if diff and low <= row[0] <= high}


def test_warming_says_how_far_it_is() -> None:
    seen: list[tuple[str, int, int]] = []
    warm(lambda name, done, total: seen.append((name, done, total)))
    whole = len(entries())
    assert {total for *_, total in seen} == {whole}
    assert seen[-1][1] == whole
    for kernel in KERNELS:  # inside of other kernels with constants, too
        kinds = {*map(tuple, kernel.signatures), *kernel.linked}
        assert len(kinds) == 1, f"{kernel.py_func.__name__} was compiled for other types than expected"
