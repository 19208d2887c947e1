"""Published arrangements: immutable versions that any thread may read without a lock."""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.between import between
from ivm.kernels.memory import HEAD, L_COUNT, L_TIME_STRIDE, L_TIMES, LAYER_WORDS, T_LAYERS, T_SHAPE, address
from ivm.kernels.read import collect, lookup, lookup_one
from ivm.rows import Words, plain
from ivm.trace.batch import Batch, Block
from ivm.trace.ranges import Layer
from ivm.trace.shards import sorted_block
from ivm.trace.spine import Spine


class Version:
    """An arrangement as it was when it was published.

    ``width`` and ``key_width`` are in words; ``since`` is the least readable ordinal, ``upper`` the newest ordinal at
    publication. Diffs have one word.
    """

    __slots__ = ("_batches", "desc", "key_width", "order_address", "order_words", "since", "upper", "width")

    def __init__(self, spine: Spine, upper: int) -> None:
        self.width = spine.width
        self.key_width = spine.key_width
        self.since = spine.since
        self.upper = upper
        self.order_words = spine.order_words
        self.order_address = spine.order
        self.desc, self._batches = spine.frozen()

    @property
    def batches(self) -> tuple[Batch, ...]:
        """The layers above the small one."""
        return self._batches

    @property
    def count(self) -> int:
        """How many updates are held: an upper bound on the rows at any time."""
        return int(self.desc[HEAD + L_COUNT]) + sum(batch.n for batch in self._batches)

    def total(self, at: int) -> int | None:
        """How many rows there are at ``at``, which is not before the newest update; None: it is. Cost: reading the
        small layer, and once the diffs of each other one."""
        if at < self.upper:
            return None
        small = int(self.desc[HEAD + L_COUNT])
        return int(self.desc[len(self.desc) - small :].sum()) + sum(batch.total for batch in self._batches)

    def rows_at(self, at: int) -> tuple[Words, Words]:
        """(rows int64[m, width] in the arrangement's order, diffs int64[m], none 0) accumulated over times <= ``at``.

        Cost: all updates held, a copy when there is one sorted layer.
        """
        block = Block(self.width, 1, max(self.count, 1))
        collect(self.desc, block.d, at, max(at, self.upper))
        block.sync()
        rows, _, diffs = sorted_block(block, self.order_address).arrays()
        return rows, diffs[:, 0]

    def rows_in_place(self, at: int) -> tuple[Words, Words] | None:
        """The same without a copy, of rows that must not be changed; None: they are not in one piece that came at one
        time."""
        if self.desc[HEAD + L_COUNT] or len(self._batches) != 1 or self.desc[T_SHAPE]:
            return None
        rows, times, diffs = self._batches[0].updates()
        if len(times) > 1 or times[0] > at:
            return None
        return plain(rows), np.full(len(rows), diffs[0]) if len(diffs) == 1 else diffs

    def lookup(self, keys: Words, at: int) -> tuple[Words, Words, Words]:
        """(rows, diffs, index of each row's key in ``keys``) accumulated over times <= ``at``, rows in order.

        ``keys`` int64[k, key_width]. Cost: a seek for each key and layer, and what is found.
        """
        count = len(keys)
        if count == 1 and self.key_width == 1 and (one := self.lookup_one(int(keys[0, 0]), at)) is not None:
            return one, np.ones(len(one), np.int64), np.zeros(len(one), np.int64)
        sought = Block.of(keys, np.zeros(count, np.int64), np.ones((count, 1), np.int64))
        block = Block(self.width, 1, 64)
        while not lookup(self.desc, sought.d, block.d, at):
            block.reset()
            block.grow()
        block.sync()
        rows, index, diffs = sorted_block(block, self.order_address).arrays()
        return rows, diffs[:, 0], index

    def lookup_one(self, key: int, at: int) -> Words | None:
        """The row with a key of one word at ``at``, int64[0 or 1, width]; None: there are several, or it has been
        counted otherwise than once. Cost: a seek for each layer, without a block."""
        held = np.empty(1 + _FEW * (self.width + 1), np.int64)
        held[0] = key
        count = lookup_one(self.desc, held, _FEW, at)
        if count > 1 or count < 0 or (count and held[1 + _FEW * self.width] != 1):
            return None
        return held[1 : 1 + count * self.width].reshape(count, self.width)

    def between(self, lows: Words, highs: Words, at: int) -> tuple[Words, Words, Words]:
        """As ``lookup``, of all keys from each of ``lows`` to its counterpart in ``highs``, as words compare; the index
        is that of the range, and a row is found in each range that has it."""
        count = len(lows)
        first, last = (Block.of(k, np.zeros(count, np.int64), np.ones((count, 1), np.int64)) for k in (lows, highs))
        block = Block(self.width, 1, 64)
        while not between(self.desc, first.d, last.d, block.d, at):
            block.reset()
            block.grow()
        block.sync()
        rows, index, diffs = sorted_block(block, self.order_address).arrays()
        return rows, diffs[:, 0], index

    def layers(self) -> tuple[Layer, ...] | None:
        """The updates held, for ``Range``; None: their order is not that of their words, or times have rounds."""
        if self.order_words is not None or self.desc[T_SHAPE]:
            return None
        small, width = int(self.desc[HEAD + L_COUNT]), self.width
        held = self.desc[HEAD + LAYER_WORDS * int(self.desc[T_LAYERS]) :]
        rows, times, diffs = np.split(held, (small * width, small * (width + 1)))
        above = (Layer(*batch.updates()) for batch in self._batches)
        return (Layer(rows.reshape(small, width), times, diffs), *above)

    def timeless(self) -> Words:
        """A trace descriptor of the same contents with every time 0. Keep this version alive while using it."""
        desc = self.desc.copy()
        for k in range(int(desc[T_LAYERS])):
            at = HEAD + LAYER_WORDS * k
            desc[at + L_TIMES] = address(_ZERO)
            desc[at + L_TIME_STRIDE] = 0
        return desc


LATEST: Final = 2**62
"""After every update that a version can hold."""
_FEW: Final = 32
"""The most rows of one key that ``lookup_one`` looks at before they are accumulated. A row that changes often has
several."""
_ZERO: Final = np.zeros(1, np.int64)
