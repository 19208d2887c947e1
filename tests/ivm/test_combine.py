"""Many updates that add up to few: sorting and consolidating gives the same as a hash table of sums."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ivm.kernels.combine import COMBINED, combine, most_groups
from ivm.kernels.memory import SPREAD
from ivm.kernels.sort import sort_block
from ivm.rows import Words
from ivm.trace.batch import Block

COUNT = COMBINED + COMBINED // 4


def updates(groups: Words, diff_width: int, seed: int) -> Block:
    """``COUNT`` updates of the groups, at three times; those of the first group cancel out."""
    random = np.random.default_rng(seed)
    rows = np.concatenate([groups, groups[random.integers(0, len(groups), COUNT - len(groups))]])
    diffs = random.integers(-2, 3, (COUNT, diff_width))
    times = random.integers(5, 8, COUNT)
    same = (rows == rows[0]).all(axis=1)
    for time in range(5, 8):
        chosen = np.flatnonzero(same & (times == time))
        if len(chosen):
            diffs[chosen[-1]] -= diffs[chosen].sum(axis=0)
    return Block.of(rows, times, diffs)


def oracle(given: Block) -> list[tuple[int, ...]]:
    sums: dict[tuple[int, ...], Words] = {}
    rows, times, diffs = given.arrays()
    for row, time, diff in zip(rows.tolist(), times.tolist(), diffs, strict=True):
        key = (*row, time)
        sums[key] = sums[key] + diff if key in sums else diff
    return [(*key, *total.tolist()) for key, total in sorted(sums.items()) if total.any()]


def sorted_rows(given: Block) -> list[tuple[int, ...]]:
    target = Block(given.width, given.diff_width, given.n)
    target.n = int(sort_block(given.d, target.d, 0))
    rows, times, diffs = target.arrays()
    return [tuple(words) for words in np.column_stack([rows, times, diffs]).tolist()]


def is_combined(given: Block) -> bool:
    groups = Block(given.width, given.diff_width, most_groups(given.n))
    return bool(combine(given.d, groups.d))


def wide(count: int, width: int) -> Words:
    return np.random.default_rng(count).integers(-(2**63), 2**63 - 1, (count, width), endpoint=True)


KINDS = {
    "few ids": wide(7, 1),
    "few wide rows": wide(900, 3),
    "as many as it takes": wide(most_groups(COUNT) // 3, 1),
    "whole numbers": np.arange(-400, 400).reshape(-1, 1),
    "doubles": np.arange(800, dtype=np.float64).view(np.int64).reshape(-1, 1),
    "zeros and ones": np.array([[a, b] for a in (0, 1) for b in (0, -1)], np.int64),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("diff_width", [1, 3])
def test_few_groups_are_added_up_before_they_are_sorted(kind: str, diff_width: int) -> None:
    given = updates(KINDS[kind], diff_width, len(kind))
    assert is_combined(given)
    assert sorted_rows(given) == oracle(given)


def test_rows_without_columns_are_added_up() -> None:
    given = Block.of(np.zeros((COUNT, 0), np.int64), np.arange(COUNT) % 5, np.ones((COUNT, 1), np.int64))
    assert is_combined(given)
    assert sorted_rows(given) == oracle(given)


def test_many_groups_are_sorted_as_they_are() -> None:
    given = updates(wide(COUNT // 2, 1), 1, 3)
    assert not is_combined(given)
    assert sorted_rows(given) == oracle(given)


def test_words_that_are_made_to_meet_in_one_slot_end_it() -> None:
    """A client may choose colliding integers: hashing must not then cost more than sorting."""
    inverse = pow(SPREAD % 2**64, -1, 2**64)
    words = [k * inverse % 2**64 for k in range(3000)]
    groups = np.array(words, np.uint64).view(np.int64).reshape(-1, 1)
    random = np.random.default_rng(1)
    rows = groups[random.integers(0, len(groups), COUNT)]
    given = Block.of(rows, np.zeros(COUNT, np.int64), np.ones((COUNT, 1), np.int64))
    assert not is_combined(given)
    found = sorted_rows(given)
    assert Counter({row[0]: row[-1] for row in found}) == Counter(rows[:, 0].tolist())
