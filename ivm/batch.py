"""Updates in memory: growable blocks between operators, immutable sorted batches in spines."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ivm.kernels.memory import (
    B_COUNT, B_DIFFS, B_DIFF_WIDTH, B_ROOM, B_ROWS, B_TIMES, B_WIDTH, BLOCK_WORDS, FENCE, L_COUNT, LAYER_WORDS,
)  # fmt: skip
from ivm.kernels.merge import fill_fence, uniform
from ivm.kernels.sort import sort_block

Words = NDArray[np.int64]

_ROOM: Final = 32
_KEPT_WORDS: Final = 1 << 18


def address(array: Words) -> int:
    """Where the array's first word lies."""
    return int(array.ctypes.data)


class Block:
    """A growable buffer of updates: rows int64[room, width], times int64[room], diffs int64[room, diff_width].

    Invariant: ``d`` is the descriptor that kernels get, and ``d[B_COUNT] == n`` between kernel calls.
    """

    __slots__ = ("d", "diff_width", "diffs", "n", "room", "rows", "times", "width")

    def __init__(self, width: int, diff_width: int = 1, room: int = _ROOM) -> None:
        self.width = width
        self.diff_width = diff_width
        self.n = 0
        self.d = np.zeros(BLOCK_WORDS, np.int64)
        self._allocate(room)

    def _allocate(self, room: int) -> None:
        self._set(
            np.empty((room, self.width), np.int64),
            np.empty(room, np.int64),
            np.empty((room, self.diff_width), np.int64),
        )

    def _set(self, rows: Words, times: Words, diffs: Words) -> None:
        self.rows, self.times, self.diffs = rows, times, diffs
        self.room = len(times)
        d = self.d
        d[B_COUNT] = self.n
        d[B_WIDTH] = self.width
        d[B_ROWS] = address(rows)
        d[B_TIMES] = address(times)
        d[B_DIFFS] = address(diffs)
        d[B_ROOM] = self.room
        d[B_DIFF_WIDTH] = self.diff_width

    @classmethod
    def of(cls, rows: Words, times: Words, diffs: Words) -> Block:
        """A block of these arrays, which it then owns (copied only when they are not contiguous int64)."""
        rows = np.ascontiguousarray(rows, np.int64)
        diffs = np.ascontiguousarray(diffs, np.int64).reshape(len(rows), -1 if len(rows) else diffs.size or 1)
        block = cls.__new__(cls)
        block.width = rows.shape[1]
        block.diff_width = diffs.shape[1]
        block.n = len(rows)
        block.d = np.zeros(BLOCK_WORDS, np.int64)
        block._set(rows, np.ascontiguousarray(times, np.int64), diffs)
        return block

    def reserve(self, room: int) -> None:
        """Makes room for as many updates in all; those that are there stay."""
        if room <= self.room:
            return
        n = self.n
        rows, times, diffs = self.rows, self.times, self.diffs
        self._allocate(max(room, 2 * self.room))
        self.rows[:n] = rows[:n]
        self.times[:n] = times[:n]
        self.diffs[:n] = diffs[:n]

    def grow(self) -> None:
        """Doubles the room."""
        self.reserve(2 * self.room)

    def reset(self) -> None:
        """Empties the block and keeps its buffer."""
        self.n = 0
        self.d[B_COUNT] = 0

    def clear(self) -> None:
        """Empties the block, and gives a large buffer back."""
        self.n = 0
        self.d[B_COUNT] = 0
        if self.room * (self.width + 2) > _KEPT_WORDS:
            self._allocate(_ROOM)

    def sync(self) -> int:
        """Takes the count from the descriptor after a kernel has written it."""
        self.n = int(self.d[B_COUNT])
        return self.n

    def arrays(self) -> tuple[Words, Words, Words]:
        """(rows, times, diffs) of the updates, views."""
        return self.rows[: self.n], self.times[: self.n], self.diffs[: self.n]


def sorted_block(block: Block, order: int = 0) -> Block:
    """The block's updates sorted by (row, time) and consolidated; ``order`` as in ``ivm.kernels.order``."""
    out = Block(block.width, block.diff_width, max(block.n, 1))
    sort_block(block.d, out.d, order)
    out.sync()
    return out


class Batch:
    """Immutable sorted, consolidated updates: a layer of a spine.

    A snapshot (one time, every diff 1) keeps ``times`` and ``diffs`` as one entry for all its rows. ``layer`` is what
    a trace descriptor holds of it.
    """

    __slots__ = ("diffs", "fence", "layer", "n", "rows", "times")

    def __init__(self, block: Block, fenced: bool) -> None:
        """Takes the block's arrays over; ``fenced``: whether the first word compares as an integer."""
        n = block.n
        single = n > 1 and bool(uniform(block.d))
        self.n = n
        self.rows = _cut(block.rows, n)
        self.times = block.times[:1].copy() if single else _cut(block.times, n)
        self.diffs = block.diffs[:1].copy() if single else _cut(block.diffs, n)
        self.fence: Words | None = None
        if fenced and n >= 4 * FENCE:
            self.fence = np.empty((n + FENCE - 1) // FENCE, np.int64)
            fill_fence(address(self.rows), n, block.width, self.fence)
        stride = 0 if single else 8
        self.layer = np.array(
            [n, address(self.rows), address(self.times), stride, address(self.diffs), stride * block.diff_width,
             0 if self.fence is None else address(self.fence), 1],
            np.int64,
        )  # fmt: skip
        assert len(self.layer) == LAYER_WORDS
        assert self.layer[L_COUNT] == n

    def check(self, order_words: int) -> None:
        """Asserts the invariants, for tests: strictly ascending (row, time), no zero diffs; integer order only."""
        assert order_words == 0
        times = np.broadcast_to(self.times, self.n)
        keys = [(*row, time) for row, time in zip(self.rows.tolist(), times.tolist(), strict=True)]
        assert all(a < b for a, b in zip(keys, keys[1:], strict=False))
        assert self.diffs.any(axis=1).all()


def _cut(array: Words, n: int) -> Words:
    """The first n entries without the unused room; in place where the allocator can."""
    if len(array) == n:
        return array
    if len(array) - n < max(64, n >> 3):
        return array[:n]
    return array[:n].copy()
