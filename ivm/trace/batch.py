"""Updates in memory: growable blocks between operators, immutable sorted batches in spines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from ivm.kernels.blocks import SAME, transfer
from ivm.kernels.memory import (
    B_COUNT,
    B_ROOM,
    B_ROWS,
    BLOCK_WORDS,
    FENCE,
    FILTER_BITS,
    FILTER_LEAST,
    FILTER_MOST,
    L_DIFF_STRIDE,
    L_RANKS,
    address,
    block_descriptor,
    lay_out_block,
    layer_descriptor,
)  # fmt: skip
from ivm.kernels.merge import fill_fence, fill_filter, uniform
from ivm.kernels.peaks import extend_peaks
from ivm.kernels.rank import extend_ranks
from ivm.rows import Words

_ROOM: Final = 32
BIG: Final = 1 << 15
_CUT: Final = 1 << 14
"""From this many rows on a batch keeps its unused room: pages never written take no memory."""


class Block:
    """A growable buffer of updates: rows int64[room, width], times int64[room], diffs int64[room, diff_width].

    Invariant: ``d`` is the descriptor that kernels get, and ``d[B_COUNT] == n`` between kernel calls.
    """

    __slots__ = ("_buffer", "_diffs", "_rows", "_times", "d", "diff_width", "n", "room", "width")

    def __init__(self, width: int, diff_width: int = 1, room: int = _ROOM) -> None:
        self.width = width
        self.diff_width = diff_width
        self.n = 0
        self.d = np.zeros(BLOCK_WORDS, np.int64)
        self._allocate(room)

    def _allocate(self, room: int) -> None:
        """A new buffer: rows, then times, then diffs."""
        width, diff_width = self.width, self.diff_width
        buffer = np.empty(room * (width + 1 + diff_width), np.int64)
        self._buffer: Words | None = buffer
        self._rows: Words | None = None
        self._times: Words | None = None
        self._diffs: Words | None = None
        self.room = room
        lay_out_block(buffer, self.d, self.n, width, diff_width, room)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return 8 * self.room * (self.width + 1 + self.diff_width)

    @property
    def rows(self) -> Words:
        """int64[room, width], a view."""
        if self._rows is None:
            assert self._buffer is not None
            self._rows = self._buffer[: self.room * self.width].reshape(self.room, self.width)
        return self._rows

    @property
    def times(self) -> Words:
        """int64[room], a view."""
        if self._times is None:
            assert self._buffer is not None
            start = self.room * self.width
            self._times = self._buffer[start : start + self.room]
        return self._times

    @property
    def diffs(self) -> Words:
        """int64[room, diff_width], a view."""
        if self._diffs is None:
            assert self._buffer is not None
            self._diffs = self._buffer[self.room * (self.width + 1) :].reshape(self.room, self.diff_width)
        return self._diffs

    @classmethod
    def of(cls, rows: Words, times: Words, diffs: Words) -> Block:
        """A block of these arrays, which it takes over (copied only if they are not contiguous int64)."""
        rows = np.ascontiguousarray(rows, np.int64)
        diffs = np.ascontiguousarray(diffs, np.int64).reshape(len(rows), -1 if len(rows) else diffs.size or 1)
        block = cls.__new__(cls)
        block.width = rows.shape[1]
        block.diff_width = diffs.shape[1]
        block.n = len(rows)
        times = np.ascontiguousarray(times, np.int64)
        block.room = len(times)
        block._buffer = None
        block._rows, block._times, block._diffs = rows, times, diffs
        block.d = block_descriptor(rows, times, diffs, block.n, block.room)
        return block

    @classmethod
    def over(cls, buffer: Words, width: int, diff_width: int, room: int, n: int) -> Block:
        """A block whose n updates are in a buffer with the layout of a block's own, which it takes over."""
        block = cls.__new__(cls)
        block.width, block.diff_width, block.room, block.n = width, diff_width, room, n
        block._buffer = buffer
        block._rows = block._times = block._diffs = None
        block.d = np.empty(BLOCK_WORDS, np.int64)
        lay_out_block(buffer, block.d, n, width, diff_width, room)
        return block

    @classmethod
    def apart(cls, width: int, diff_width: int, room: int) -> Block:
        """An empty block whose rows, times and diffs are separate arrays, so that one may outlive the others."""
        block = cls.of(
            np.empty((room, width), np.int64), np.empty(room, np.int64), np.empty((room, diff_width), np.int64)
        )
        block.reset()
        return block

    def reserve(self, room: int) -> None:
        """Makes room for ``room`` updates in all, keeping those it has."""
        if room <= self.room:
            return
        n = self.n
        if not n:
            self._allocate(max(room, 2 * self.room))
            return
        rows, times, diffs = self.arrays()
        self._allocate(max(room, 2 * self.room))
        self.rows[:n] = rows
        self.times[:n] = times
        self.diffs[:n] = diffs

    def grow(self) -> None:
        """Doubles the room."""
        self.reserve(2 * self.room)

    def reset(self) -> None:
        """Empties the block and keeps its buffer."""
        self.n = 0
        self.d[B_COUNT] = 0

    def clear(self) -> None:
        """Empties the block and frees a large buffer."""
        self.n = 0
        self.d[B_COUNT] = 0
        if self.room > BIG:
            self._allocate(_ROOM)

    def shifted(self, bits: int) -> Block:
        """Its updates with times shifted left by ``bits``, in a read-only block that shares this one's rows and
        diffs."""
        rows, times, diffs = self.arrays()
        block = Block.of(rows, times << bits, diffs)
        block.d[B_ROOM] = 0
        return block

    def renew(self) -> None:
        """Empties the block and leaves its buffer to the caller that took ``arrays``."""
        self.n = 0
        self._allocate(min(self.room, 1024))

    def sync(self) -> int:
        """Reads the count back from the descriptor after a kernel has written it."""
        n = self.n = int(self.d[0])
        return n

    def arrays(self) -> tuple[Words, Words, Words]:
        """(rows, times, diffs) of the updates, views."""
        return self.rows[: self.n], self.times[: self.n], self.diffs[: self.n]


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge knows of its block: the bloom filter and fence (empty: not made), sums of diffs, peaks, and whether
    all times and diffs are equal."""

    bits: Words
    fence: Words
    ranks: Words | None
    peaks: Words | None
    uniform: bool


class Batch:
    """Immutable sorted, consolidated updates: a layer of a spine.

    A snapshot (one time, every diff 1) keeps ``times`` and ``diffs`` as one entry for all its rows. ``layer`` is its
    entry in a trace descriptor.
    """

    __slots__ = ("_block", "_total", "bits", "fence", "layer", "n", "peaks", "ranks")

    def __init__(self, block: Block, fenced: bool, merged: Merged | None = None) -> None:
        """Takes over the block's arrays. ``fenced``: whether the first word compares as an integer. Cost: reading the
        block, and usually a copy; almost none if a merge supplies ``merged``."""
        n = block.n
        single = n > 64 and (bool(uniform(block.d)) if merged is None else merged.uniform)
        if single:
            block = _once(block.rows[:n].copy() if merged is None else block.rows, int(block.times[0]))
        elif block.room - n > max(64, n >> 2) and n <= _CUT:
            block = _cut(block)
        self.n = n
        self._total: int | None = None
        self._block = block
        d = block.d
        self.fence: Words | None = None
        fence = 0
        if fenced and n >= 4 * FENCE:
            if merged is None or not len(merged.fence):
                self.fence = np.empty((n + FENCE - 1) // FENCE, np.int64)
                fill_fence(d[B_ROWS], n, block.width, self.fence)
            else:
                self.fence = merged.fence
            fence = address(self.fence)
        bits = merged.bits if merged is not None and len(merged.bits) else None
        if bits is None:
            bits = filter_words(n, block.width)
            if len(bits):
                fill_filter(d[B_ROWS], n, block.width, bits)
        self.bits = bits
        self.layer = layer_descriptor(d, n, single, fence, bits)
        self.ranks: Words | None = None
        if merged is not None and merged.ranks is not None and not single:
            self._ranked(merged.ranks[: rank_words(n)].copy())
        self.peaks = None if merged is None or merged.peaks is None else merged.peaks[: rank_words(n)].copy()

    @classmethod
    def described(cls, block: Block, layer: Words, bits: Words, fence: Words) -> Batch:
        """A batch of a block, which it takes over, with this entry in a trace descriptor; ``bits`` and ``fence``, which
        may be empty, are what the entry names."""
        batch = cls.__new__(cls)
        batch.n, batch._block, batch.layer, batch.bits = block.n, block, layer, bits
        batch.fence = fence if len(fence) else None
        batch._total = batch.ranks = batch.peaks = None
        return batch

    @classmethod
    def of_rows(cls, rows: Words, fenced: bool) -> Batch:
        """A batch of ascending, distinct rows, each with diff 1, at time 0 until ``stamp``. Rows are not copied and may
        be memory-mapped from a file. Cost: reading each row for the bloom filter, if one is worthwhile."""
        block = _once(rows, 0)
        block.n = len(rows)
        return cls(block, fenced, Merged(_NO_BITS, _NO_BITS, None, None, uniform=True))

    def stamp(self, time: int) -> None:
        """Sets the time of all its updates, before anything reads them."""
        self._block.times[:] = time

    def _ranked(self, ranks: Words) -> None:
        self.ranks = ranks
        self.layer[L_RANKS] = address(ranks)

    def rank(self) -> None:
        """Makes the sums of diffs for searches by rank, if they are worthwhile and not made already.

        Cost: a pass over the updates.
        """
        if self.ranks is None and self.n > FENCE and self.layer[L_DIFF_STRIDE]:
            ranks = np.zeros(rank_words(self.n), np.int64)
            extend_ranks(self._block.d, ranks, 1)
            self._ranked(ranks)

    def peak(self, word: int) -> None:
        """Makes the peaks of a word (``ivm.kernels.peaks``), if they are not made already: always of the same word.

        Cost: a pass over the updates.
        """
        if self.peaks is None:
            peaks = np.empty(rank_words(self.n), np.int64)
            extend_peaks(self._block.d[B_ROWS], self._block.width, word, self.n, address(peaks), 1)
            self.peaks = peaks

    @property
    def rows(self) -> Words:
        """int64[n, width]."""
        return self._block.rows[: self.n]

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        once = 1 if self._block.room < self.n else self.n
        extra = len(self.bits) + (0 if self.fence is None else len(self.fence))
        return 8 * (self.n * self._block.width + once * (1 + self._block.diff_width) + extra)

    def arrays(self) -> tuple[Words, Words, Words]:
        """(rows, times, diffs), with an entry of each for every update."""
        block, n = self._block, self.n
        if block.room < n:
            return block.rows[:n], np.full(n, block.times[0]), np.full((n, block.diff_width), block.diffs[0])
        return block.rows[:n], block.times[:n], block.diffs[:n]

    def slice(self, first: int, last: int) -> tuple[Words, Words]:
        """(rows, first diffs int64[n]) of the updates first … last-1; the rows are a view."""
        block = self._block
        if block.room < self.n:
            return block.rows[first:last], np.full(last - first, block.diffs[0, 0])
        return block.rows[first:last], block.diffs[first:last, 0]

    def updates(self) -> tuple[Words, Words, Words]:
        """As ``arrays``, but times and diffs have one entry if it is that of all updates."""
        return self._block.rows[: self.n], self._block.times[: self.n], self._block.diffs[: self.n, 0]

    @property
    def total(self) -> int:
        """The sum of the first diffs. Cost: reading them, once, unless they are all alike."""
        if self._total is None:
            diffs = self._block.diffs[: self.n, 0]
            self._total = int(diffs.sum()) * (self.n if len(diffs) < self.n else 1)
        return self._total

    @property
    def at_once(self) -> bool:
        """Whether all times are equal. Cost: reading them, unless already known."""
        return self._block.room < self.n or bool((self._block.times[: self.n] == self._block.times[0]).all())

    def timeless(self, most: int) -> Iterator[Block]:
        """Its updates with all times 0, in order, in read-only blocks of up to ``most`` that share its rows."""
        block, n = self._block, self.n
        for start in range(0, n, most):
            stop = min(start + most, n)
            count = stop - start
            diffs = np.full((count, block.diff_width), block.diffs[0]) if block.room < n else block.diffs[start:stop]
            yield Block.of(block.rows[start:stop], np.zeros(count, np.int64), diffs)

    def check(self) -> None:
        """Asserts the invariants (strictly ascending, no zero diffs), for tests; words must compare as integers."""
        rows, times, diffs = self.arrays()
        keys = [(*row, time) for row, time in zip(rows.tolist(), times.tolist(), strict=True)]
        assert all(a < b for a, b in pairwise(keys))
        assert diffs.any(axis=1).all()


def rank_words(n: int) -> int:
    """How many sums a batch of n updates has for searches by rank, and how many words its peaks take."""
    return n // FENCE + 1


def filter_words(n: int, width: int) -> Words:
    """An empty bloom filter for ``n`` rows; of no words if one is not worthwhile."""
    if width == 0 or not FILTER_LEAST <= n <= FILTER_MOST:
        return _NO_BITS
    return np.zeros(1 << (n * FILTER_BITS // 64).bit_length(), np.int64)


_NO_BITS: Final = np.zeros(0, np.int64)


def _once(rows: Words, time: int) -> Block:
    """A block of rows that share one time and one diff of 1."""
    block = Block(rows.shape[1], 1, 1)
    block.times[0] = time
    block.diffs[0] = 1
    block._rows = rows
    block.d[B_ROWS] = address(rows)
    return block


def _cut(block: Block) -> Block:
    """A copy without unused room."""
    copy = Block(block.width, block.diff_width, block.n)
    copy.n = transfer(block.d, copy.d, 1, SAME, 0, 0)
    return copy
