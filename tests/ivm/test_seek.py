"""Seeking keys ahead finds the same positions as a search."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pytest

from ivm.kernels.seek import AHEAD, aim, hints, layers
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from ivm.trace.spine import Spine

ROWS, KEYS = 50_000, 200


@pytest.mark.parametrize("key_width", [1, 2])
@pytest.mark.parametrize("kinds", [40, 9_000, 10**12])
def test_keys_are_sought_ahead(key_width: int, kinds: int) -> None:
    """``kinds``: the number of distinct first words; with few, runs are longer than the gap between fences."""
    rng = np.random.default_rng(kinds + key_width)

    def drawn(count: int) -> Block:
        rows = np.column_stack([rng.integers(-kinds, kinds, count), rng.integers(-1_000, 1_000, count)])
        return sorted_block(Block.of(rows, np.zeros(count, np.int64), np.ones((count, 1), np.int64)))

    spine = Spine(2, key_width)
    stored, delta = drawn(ROWS), drawn(KEYS)
    delta.rows[::3] = stored.rows[rng.integers(0, stored.n, len(delta.rows[::3]))]
    delta = sorted_block(delta)
    spine.insert(stored)
    spine.insert(drawn(20))
    nothing = Block(2)
    table, count = layers(spine.desc, nothing.d, nothing.d)
    ahead = hints(table, count, delta.n, 0)
    assert len(ahead), "many rows, few keys"
    rows = [tuple(row[:key_width]) for row in stored.arrays()[0].tolist()]
    large = 1
    found = 0
    window = -AHEAD
    for i, row in enumerate(delta.arrays()[0].tolist()):
        cursors = np.full(count, -1, np.int64)
        window = aim(table, count, 2, delta.d, i, key_width, ahead, window, cursors)
        key = tuple(row[:key_width])
        place = bisect_left(rows, key)
        there = place < len(rows) and rows[place] == key
        assert cursors[large] == place or (cursors[large] == -1 and not there)
        assert (np.delete(cursors, large) == -1).all(), "small layers are searched one by one"
        found += there
    assert found >= KEYS // 4


def test_few_rows_are_not_sought_ahead() -> None:
    spine = Spine(1, 1)
    spine.insert(Block.of(np.arange(1_000).reshape(-1, 1), np.zeros(1_000, np.int64), np.ones((1_000, 1), np.int64)))
    nothing = Block(1)
    table, count = layers(spine.desc, nothing.d, nothing.d)
    assert not len(hints(table, count, 100, 0))
