"""Checked kernels raise at a stray access; ``tests.programs.checked`` runs these, with FRESHET_CHECKED=1."""

from __future__ import annotations

import numpy as np
import pytest

from ivm.kernels.blocks import SAME, transfer
from ivm.kernels.memory import (
    B_COUNT,
    B_ROOM,
    HEAD,
    L_COUNT,
    L_ROWS,
    address,
    block_descriptor,
    freeze,
    lay_out_block,
    trace_head,
    words_at,
)  # fmt: skip
from ivm.kernels.order import compare
from ivm.kernels.sort import sort_block
from ivm.trace.batch import Block


def block(count: int) -> Block:
    made = Block(2, 1, count)
    made.rows[:], made.times[:], made.diffs[:] = np.arange(2 * count).reshape(count, 2)[::-1], 0, 1
    made.n = count
    made.d[B_COUNT] = count
    return made


def test_a_read_past_the_end_raises() -> None:
    given, target = block(4), Block(2, 1, 8)
    assert transfer(given.d, target.d, 1, SAME, 0, 0) == 4
    given.d[B_COUNT] = 5
    target.reset()
    with pytest.raises(IndexError):
        transfer(given.d, target.d, 1, SAME, 0, 0)


def test_a_write_past_the_end_raises() -> None:
    given, target = block(4), Block(2, 1, 3)
    with pytest.raises(IndexError):
        sort_block(given.d, target.d, 0)


def test_memory_that_is_gone_may_not_be_touched() -> None:
    array = np.arange(4096)
    at = address(array)
    assert compare(at, at + 8, 0, 1, 0) == -1
    del array
    with pytest.raises(IndexError):
        compare(at, at + 8, 0, 1, 0)


def test_addresses_that_are_none() -> None:
    for at in (0, 8, -8, 2**62):
        with pytest.raises(IndexError):
            compare(at, at, 0, 1, 0)


def test_arrays_over_memory_and_moves_are_checked_to_their_last_word() -> None:
    given = Block(1, 1, 64)
    start = address(given.rows)
    assert len(words_at(start, 64)) == 64
    with pytest.raises(IndexError):
        words_at(start, 65)
    small = np.zeros(3 * 64, np.int64)
    trace = trace_head(small, 1, 1, 0, 1, 0, 64)
    trace[HEAD + L_ROWS], trace[HEAD + L_COUNT] = start, 64
    held = np.zeros(len(trace) + 3 * 65, np.int64)
    freeze(trace, held)
    trace[HEAD + L_COUNT] = 65
    with pytest.raises(IndexError):
        freeze(trace, held)


def test_an_index_out_of_range_raises() -> None:
    with pytest.raises(IndexError):
        transfer(np.zeros(2, np.int64), block(1).d, 1, SAME, 0, 0)


def test_descriptors_are_checked_in_any_mode() -> None:
    rows, times, diffs = np.zeros((4, 2), np.int64), np.zeros(4, np.int64), np.zeros((4, 1), np.int64)
    assert block_descriptor(rows, times, diffs, 4, 4)[B_ROOM] == 4
    for wrong in ((rows[:3], times, diffs, 3, 3), (rows, times, diffs, 5, 4), (rows[:, :1], times, diffs, 4, 4)):
        with pytest.raises(AssertionError):
            block_descriptor(*wrong)
    with pytest.raises(AssertionError):
        lay_out_block(np.zeros(15, np.int64), np.zeros(7, np.int64), 0, 2, 1, 4)
