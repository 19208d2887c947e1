"""Reduce inside loops, at partially ordered times: the kernel against a reference that recomputes at every time.

The reference does not know interesting times. It keeps every update ever fed with its full time, closes the times of a
key under join, and requires at each of them that the kernel's output so far adds up to the reduction of the input so
far. Sums of diffs may be negative, several ordinals share a step, histories are compacted, and blocks start with
room for one update, so that nearly every pass runs out of room and is repeated.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

import numpy as np
import pytest

from ivm.formula import GREATER, Formula
from ivm.kernels.blocks import extract, least_vector
from ivm.kernels.formula import ADD, FIT
from ivm.kernels.interesting import FAILED, FIRSTS, FULL, SEGMENTS, SUMS, THRESHOLDS, reduce_partial
from ivm.kernels.join import STATS
from ivm.kernels.reduce import differences_partial
from ivm.kernels.threshold import DISTINCT, POSITIVE
from ivm.kernels.times import WIDTH_BITS
from ivm.rows import Words
from ivm.time import pack, unpack, widths
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from ivm.trace.spine import Spine

Row = tuple[int, ...]
Time = tuple[int, ...]
Update = tuple[Row, Time, Row]
Group = dict[Row, Row]
"""The sums of diffs, not all 0, of each value of a key."""

SHAPES: Final = (24, 12 << WIDTH_BITS | 5, (8 << WIDTH_BITS | 5) << WIDTH_BITS | 5)
NOTHING: Final = Block(1)


class Reduction(ABC):
    """A reduction: its definition on a group, and the kernel that maintains it."""

    key_width = 1
    val_width = 0
    diff_width = 1
    out_width = 0

    def __init__(self, shape: int, rng: random.Random) -> None:
        self.shape = shape
        self.rng = rng
        self.trace = Spine(self.key_width + self.val_width, self.key_width, shape, self.diff_width)
        self.output = Spine(self.key_width + self.out_width, self.key_width, shape)
        self.later = Block(self.key_width, 1, 1)
        self.stats = np.zeros(STATS, np.int64)
        self.full = 0

    @abstractmethod
    def reduce(self, group: Group) -> dict[Row, int]:
        """The group's output rows, without their key, with counts."""

    @abstractmethod
    def partial(self, delta: Block, owed: Block, vector: int, again: bool) -> Block:
        """What the kernel emits at a loop vector. It is added to ``output``, and keys at later times to ``later``."""

    def pass_of(
        self, tactic: int, delta: Block, owed: Block, out: Block, vector: int, option: int, given: Words, again: bool,
        offsets: Block = NOTHING, vals: Block = NOTHING,
    ) -> int:  # fmt: skip
        """One call of the kernel."""
        return int(
            reduce_partial(
                tactic, self.trace.desc, delta.d, owed.d, self.output.desc, NOTHING.d, out.d, self.later.d, offsets.d,
                vals.d, given, option, vector, again, self.stats,
            )
        )  # fmt: skip

    def in_one_kernel(
        self, tactic: int, delta: Block, owed: Block, vector: int, option: int = 0, given: Words = NOTHING.d,
        again: bool = False,
    ) -> Block:  # fmt: skip
        """Runs a tactic that emits, and may insert into the output itself, in blocks that grow when it asks."""
        out = Block(self.key_width + self.out_width, 1, 1)
        before = self.later.n
        while True:
            counts = self.pass_of(tactic, delta, owed, out, vector, option, given, again)
            if counts != FULL:
                break
            assert (out.sync(), self.later.sync()) == (0, before), "a pass without room leaves both blocks as found"
            self.full += 1
            out.grow()
            self.later.reserve(before + out.room)
        assert counts >= 0
        out.n = counts & 0x7FFFFFFF
        self.later.n = counts >> 32
        assert (out.n, self.later.n) == (out.d[0], self.later.d[0])
        if (counts >> 31) & 1:
            self.output.touched(out.n)
        else:
            self.output.insert(out)
        return out


class Threshold(Reduction):
    """distinct, or the positive part, of rows that are keys."""

    keep = DISTINCT

    def reduce(self, group: Group) -> dict[Row, int]:
        count = sum(diffs[0] for diffs in group.values())
        return {(): 1 if self.keep == DISTINCT else count} if count > 0 else {}

    def partial(self, delta: Block, owed: Block, vector: int, again: bool) -> Block:
        return self.in_one_kernel(THRESHOLDS, delta, owed, vector, self.keep, again=again)


class Positive(Threshold):
    keep = POSITIVE


class First(Reduction):
    """The least value with a positive count."""

    val_width = out_width = 2
    words = (0, 1)
    complement = False

    def reduce(self, group: Group) -> dict[Row, int]:
        values = sorted(value for value, diffs in group.items() if diffs[0] > 0)
        if not values:
            return {}
        return {tuple(~values[0][k] if self.complement else values[0][k] for k in self.words): 1}

    def partial(self, delta: Block, owed: Block, vector: int, again: bool) -> Block:
        assert not again
        words = np.array(self.words, np.int64)
        return self.in_one_kernel(FIRSTS, delta, owed, vector, int(self.complement), words)


class Turned(First):
    words = (1, 0)
    complement = True


class Sums(Reduction):
    """The sum of two sums, where the first is positive."""

    diff_width = 2
    out_width = 1
    bits = 64

    def reduce(self, group: Group) -> dict[Row, int]:
        first, second = (sum(diffs[k] for diffs in group.values()) for k in range(2))
        return {(first + second,): 1} if first > 0 else {}

    def formula(self) -> Words:
        made = Formula()
        first, second = made.column(0), made.step(FIT, made.column(1), constant=self.bits)
        total = made.step(ADD, first, second, constant=64)
        return made.made(made.compare(first, made.constant(0), GREATER), [total])

    def partial(self, delta: Block, owed: Block, vector: int, again: bool) -> Block:
        assert not again
        return self.in_one_kernel(SUMS, delta, owed, vector, 0, self.formula())


class Segments(Reduction):
    """A reducer in Python: the values and their sums, one row each, so that negative ones show too."""

    val_width = 1
    out_width = 2
    limit = -1

    def reduce(self, group: Group) -> dict[Row, int]:
        return {(*value, *diffs): 1 for value, diffs in group.items()}

    def partial(self, delta: Block, owed: Block, vector: int, again: bool) -> Block:
        heads, offsets, vals = Block(self.key_width, 2, 1), Block(1, 1, 2), Block(self.val_width, self.diff_width, 1)
        before = self.later.n
        errors = Spine(self.key_width + 1, self.key_width, self.shape).desc
        while self.pass_of(SEGMENTS, delta, owed, heads, vector, self.limit, errors, again, offsets, vals) == FULL:
            assert (heads.sync(), self.later.sync()) == (0, before), "a pass without room leaves both blocks as found"
            self.full += 1
            heads.grow()
            vals.grow()
            self.later.reserve(before + heads.room)
            offsets.reserve(heads.room + 1)
        self.later.sync()
        segment, rows = [], []
        starts = offsets.rows[: heads.sync() + 1, 0].tolist()
        values, _, diffs = (array.tolist() for array in (vals.rows, vals.times, vals.diffs))
        for head, (start, stop) in enumerate(pairwise(starts)):
            group = {tuple(values[k]): tuple(diffs[k]) for k in range(start, stop)}
            for row, count in self.reduce(group).items():
                segment += [head] * count
                rows += [row] * count
        out = Block(self.key_width + self.out_width, 1, 1)
        matrix = np.array(rows, np.int64).reshape(len(rows), self.out_width)
        while not differences_partial(heads.d, np.array(segment, np.int64), matrix, self.output.desc, NOTHING.d, out.d):
            assert out.sync() == 0
            out.grow()
        out.sync()
        out = sorted_block(out)
        self.output.insert(out)
        return out


class Few(Segments):
    """The two least values: the kernel need not gather the others."""

    limit = 2

    def reduce(self, group: Group) -> dict[Row, int]:
        found: dict[Row, int] = {}
        for value, diffs in sorted(group.items()):
            if diffs[0] > 0 and sum(row[-1] for row in found) < self.limit:
                found[(*value, *diffs)] = 1
        return found


def naive_below(a: Time, b: Time) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True))


def closure(times: Iterable[Time]) -> set[Time]:
    """The joins of all sets of these times."""
    found: set[Time] = set()
    for time in times:
        found |= {time} | {tuple(map(max, time, other)) for other in found}
    return found


class Pair:
    """A reduction with its whole input and output."""

    def __init__(self, reduction: Reduction) -> None:
        self.reduction = reduction
        self.fed: defaultdict[Row, Counter[tuple[Row, Time, int]]] = defaultdict(Counter)
        self.emitted: defaultdict[Row, Counter[tuple[Row, Time]]] = defaultdict(Counter)

    def step(self, updates: list[Update], again: bool) -> None:
        """Runs passes at the vectors of the updates and at those that the kernel schedules, least first."""
        reduction = self.reduction
        shape, key_width, later = reduction.shape, reduction.key_width, reduction.later
        waiting: defaultdict[int, list[Update]] = defaultdict(list)
        for row, time, diffs in updates:
            for k, diff in enumerate(diffs):
                self.fed[row[:key_width]][row[key_width:], time, k] += diff
            waiting[pack(shape, 0, *time[1:])].append((row, time, diffs))
        while waiting or later.n:
            least = least_vector(later.d, 0, shape)
            vector = min([*waiting, *([least] if least >= 0 else [])])
            delta = self.block(waiting.pop(vector, []))
            reduction.trace.insert(delta)
            owed = Block(key_width, 1, later.n + 1)
            extract(later.d, owed.d, vector, shape)
            owed.sync()
            later.sync()
            rows, times, counts = reduction.partial(delta, sorted_block(owed), vector, again).arrays()
            for row, time, count in zip(rows.tolist(), times.tolist(), counts[:, 0].tolist(), strict=True):
                assert pack(shape, 0, *unpack(time, shape)[1:]) == vector, "a pass emits at its own vector only"
                self.emitted[tuple(row[:key_width])][tuple(row[key_width:]), unpack(time, shape)] += count

    def block(self, updates: list[Update]) -> Block:
        reduction = self.reduction
        width = reduction.key_width + reduction.val_width
        rows = np.array([row for row, _, _ in updates], np.int64).reshape(-1, width)
        times = np.array([pack(reduction.shape, *time) for _, time, _ in updates], np.int64)
        diffs = np.array([diffs for _, _, diffs in updates], np.int64).reshape(-1, reduction.diff_width)
        return sorted_block(Block.of(rows, times, diffs))

    def check(self) -> None:
        for key, fed in self.fed.items():
            times = {time for (_, time, _), diff in fed.items() if diff}
            for at in closure(times | {time for _, time in self.emitted[key]}):
                sums: defaultdict[Row, list[int]] = defaultdict(lambda: [0] * self.reduction.diff_width)
                for (value, time, k), diff in fed.items():
                    if naive_below(time, at):
                        sums[value][k] += diff
                expected = self.reduction.reduce({value: tuple(diffs) for value, diffs in sums.items() if any(diffs)})
                found = Counter[Row]()
                for (row, time), count in self.emitted[key].items():
                    if naive_below(time, at):
                        found[row] += count
                assert {row: count for row, count in found.items() if count} == expected, (key, at)


def run(reduction: Reduction, rng: random.Random, steps: int, again: bool, most: int) -> Pair:
    """``again``: some steps feed at an earlier ordinal."""
    pair = Pair(reduction)
    loops = len(widths(reduction.shape))
    held: list[Update] = []
    newest = 0
    for _ in range(steps):
        repeated = again and newest > 0 and rng.random() < 0.4
        ordinals = [newest] if repeated else [newest + 1 + k for k in range(rng.choice((1, 1, 2, 3)))]
        newest = ordinals[-1]
        updates: list[Update] = []
        for _ in range(rng.randrange(1, most)):
            if held and rng.random() < 0.4:
                row, time, diffs = held.pop(rng.randrange(len(held)))
                rounds = time[1:] if rng.random() < 0.7 else tuple(rng.randrange(3) for _ in range(loops))
                updates.append((row, (rng.choice(ordinals), *rounds), tuple(-diff for diff in diffs)))
                continue
            key = tuple(rng.randrange(3) for _ in range(reduction.key_width))
            row = (*key, *(rng.randrange(3) for _ in range(reduction.val_width)))
            time = (rng.choice(ordinals), *(rng.randrange(3) for _ in range(loops)))
            update = row, time, tuple(rng.choice((1, 1, -1, 2)) for _ in range(reduction.diff_width))
            held.append(update)
            updates.append(update)
        pair.step(updates, repeated)
        pair.check()
        if rng.random() < 0.5:
            for spine in (reduction.trace, reduction.output):
                spine.since_word[0] = newest
                if rng.random() < 0.5:
                    spine.compact()
    return pair


NEW: Final = (Threshold, Positive, First, Turned, Sums, Segments, Few)
AGAIN: Final = (Threshold, Positive, Segments, Few)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", NEW)
def test_what_is_emitted_adds_up_at_every_time(kind: type[Reduction], shape: int) -> None:
    full = 0
    for seed in range(12):
        rng = random.Random(seed)
        reduction = kind(shape, rng)
        run(reduction, rng, 8, again=False, most=6)
        full += reduction.full
    assert full > 12, "most passes have no room at first"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", AGAIN)
def test_an_ordinal_is_fed_again(kind: type[Reduction], shape: int) -> None:
    for seed in range(12):
        rng = random.Random(100 + seed)
        run(kind(shape, rng), rng, 8, again=True, most=6)


@pytest.mark.parametrize("kind", NEW)
@pytest.mark.parametrize("again", [False, True])
def test_updates_that_vanish_one_after_the_other_take_their_join_along(kind: type[Reduction], again: bool) -> None:
    """Each vanishes before the pass at the join of the other two, which must lead to the join of all three."""
    if again and kind not in AGAIN:
        kind = Threshold
    shape = 0
    for _ in range(4):
        shape = shape << WIDTH_BITS | 4
    reduction = kind(shape, random.Random(1))
    pair = Pair(reduction)
    row, one = (1,) + (0,) * reduction.val_width, (1,) * reduction.diff_width
    vectors = ((0, 1, 0, 0), (1, 0, 0, 1), (1, 0, 1, 0))
    pair.step([(row, (1, *vector), one) for vector in vectors], again=False)
    pair.check()
    gone = tuple(-diff for diff in one)
    pair.step([(row, (1 if again else 2, *vector), gone) for vector in vectors], again)
    pair.check()


@pytest.mark.parametrize("kind", NEW)
def test_long_histories(kind: type[Reduction]) -> None:
    """More times than the kernel's lists have room for initially."""
    rng = random.Random(7)
    reduction = kind(SHAPES[1], rng)
    run(reduction, rng, 3, again=False, most=120)
    assert reduction.full


def test_a_formula_that_fails_leaves_everything_as_found() -> None:
    rng = random.Random(3)
    reduction = Sums(SHAPES[0], rng)
    reduction.bits = 8
    pair = Pair(reduction)
    pair.step([((1,), (1, 0), (1, 100)), ((1,), (1, 2), (1, 5))], again=False)
    pair.check()
    delta = pair.block([((0,), (2, 1), (1, 1)), ((1,), (2, 1), (1, 100))])
    reduction.trace.insert(delta)
    out = Block(2)
    assert reduction.pass_of(SUMS, delta, Block(1), out, 1, 0, reduction.formula(), False) == FAILED
    assert (out.sync(), reduction.later.sync()) == (0, 0)
