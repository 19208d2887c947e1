"""Moving words and bits of rows: by words at once, and as one row and one bit after the other do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm.graph import Gather
from planner import gathers

BITS = st.tuples(st.integers(0, 3), st.integers(0, 63), st.integers(0, 2), st.integers(0, 63))
WORDS = st.integers(-(1 << 63), (1 << 63) - 1)


@given(
    bits=st.lists(BITS, max_size=40),
    words=st.lists(st.integers(-1, 3), min_size=3, max_size=3),
    rows=st.lists(st.lists(WORDS, min_size=4, max_size=4), min_size=1, max_size=5),
    times=st.sampled_from([1, 40]),
)
def test_bits_arrive_as_one_by_one(
    bits: list[tuple[int, int, int, int]], words: list[int], rows: list[list[int]], times: int
) -> None:
    """Few rows and many."""
    gather = Gather(tuple(words), tuple(bits))
    moved, _ = gathers.apply(gather, np.array(rows * times, np.int64))
    assert moved.tolist() == [_one_by_one(gather, row) for row in rows] * times


def _one_by_one(gather: Gather, row: list[int]) -> list[int]:
    made = [(row[w] if w >= 0 else 0) % (1 << 64) for w in gather.words]
    for word, bit, target, target_bit in gather.bits:
        made[target] |= (row[word] >> bit & 1) << target_bit
    return [m - (1 << 64) if m >> 63 else m for m in made]


@pytest.mark.parametrize("away", [0, 1, 700])
def test_many_bits_are_a_few_moves(away: int) -> None:
    """Each word's go to two words at most, however many columns a row has."""
    bits = tuple((i // 64, i % 64, (i + away) // 64, (i + away) % 64) for i in range(1600))
    assert len(gathers.moves(bits)) <= 2 * 25
