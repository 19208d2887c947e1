"""Merging two layers, in portions: the same as adding up all their updates with ordinals raised."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from ivm.kernels.codes import WIDTH_BITS
from ivm.kernels.memory import B_COUNT, FENCE, HEAD, LAYER_WORDS, T_DIFF_WIDTH, T_SHAPE, T_WIDTH, spread
from ivm.kernels.merge import merge
from ivm.kernels.times import advance
from ivm.time import pack
from ivm.trace.batch import Batch, Block
from ivm.trace.shards import sorted_block
from ivm.trace.spine import Merge

SHAPES = (0, 4, 3 << WIDTH_BITS | 4)
"""Times outside of loops, in one, in two."""


def layer(rng: random.Random, count: int, width: int, diff_width: int, depth: int, alike: bool) -> Batch:
    """A layer of about so many updates; ``alike``: all of one time and diff."""
    updates = []
    for _ in range(count):
        row = [rng.randrange(2 * count if k == 0 else 3) for k in range(width)]
        vector = (3 if alike else rng.randrange(6), *(0 if alike else rng.randrange(4) for _ in range(depth)))
        diff = [1 if alike else rng.choice((-1, 1, 2)) for _ in range(diff_width)]
        updates.append((row, pack(SHAPES[depth], *vector), diff))
    if alike:
        updates = list({tuple(row): (row, time, diff) for row, time, diff in updates}.values())
    rows, times, diffs = (np.array(column, np.int64) for column in zip(*updates, strict=True))
    block = sorted_block(Block.of(rows.reshape(-1, width), times, diffs))
    return Batch(block, True)


def expected(layers: tuple[Batch, Batch], since: int, shape: int) -> list[tuple[int, ...]]:
    sums: dict[tuple[int, ...], Counter[int]] = {}
    for batch in layers:
        for row, time, diff in zip(*(array.tolist() for array in batch.arrays()), strict=True):
            found = sums.setdefault((*row, int(advance(time, since, shape))), Counter())
            for k, word in enumerate(diff):
                found[k] += word
    return [(*key, *(found[k] for k in sorted(found))) for key, found in sorted(sums.items()) if any(found.values())]


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize(("width", "diff_width"), [(1, 1), (2, 1), (3, 1), (2, 2)])
def test_merging(width: int, diff_width: int, depth: int) -> None:
    rng = random.Random(9 * width + 3 * diff_width + depth)
    shape = SHAPES[depth]
    for since in (0, 3, 4, 9):
        for sizes in ((40, 1), (300, 200), (500, 500)):
            alike = rng.random() < 0.4 and diff_width == 1
            pair = tuple(layer(rng, size, width, diff_width, depth, alike) for size in sizes)
            head = np.zeros(HEAD, np.int64)
            head[T_WIDTH], head[T_DIFF_WIDTH], head[T_SHAPE] = width, diff_width, shape
            made = Merge(pair[0], pair[1], head, since, True, False, False)
            read = 0
            while not made.done:
                fuel = rng.choice((1, 7, 200, 10_000))
                portion = merge(
                    made.trace, HEAD, HEAD + LAYER_WORDS, made.block.d, made.state, fuel, since, made.bits, made.fence
                )
                assert portion >= min(fuel, pair[0].n + pair[1].n - read)
                read += portion
            assert read == pair[0].n + pair[1].n
            count = int(made.block.d[B_COUNT])
            rows, times, diffs = (array[:count] for array in (made.block.rows, made.block.times, made.block.diffs))
            assert [tuple(words) for words in np.column_stack([rows, times, diffs]).tolist()] == expected(
                (pair[0], pair[1]), since, shape
            )
            assert made.fence[: (count + FENCE - 1) // FENCE].tolist() == rows[::FENCE, 0].tolist()
            for word in set(rows[:, 0].tolist()) if len(made.bits) else ():
                bit = int(spread(word)) & (64 * len(made.bits) - 1)
                assert int(made.bits[bit >> 6]) >> (bit & 63) & 1
            held = made.batch(True)
            assert [array.tolist() for array in held.arrays()] == [array.tolist() for array in (rows, times, diffs)]
            if count > 64:
                assert (len(held.updates()[1]) == 1) == bool((times == times[0]).all() and (diffs == 1).all())
