"""Spines: layers of batches, merged with fuel.

Layer 0 is a small buffer that is updated in place (512 rows; with 64, spilling cost more than the moves saved). When it
is full it is merged with the batch of the first level, in one call of a kernel as long as that batch is small. Above it
are levels of capacity ``ROOM * RATIO**(k+1)``, each holding one batch or the merge of two. A batch that arrives at
an occupied level starts a merge there. Every insertion then spends fuel in proportion to its size on each merge in
progress, so that no insertion pays for a cascade. A merge that is not done when the next batch arrives at its level is
finished first. A merged batch too large for its level moves up, one that compaction has shrunk moves down. After
TimelyDataflow/differential-dataflow, ``spine_fueled.rs``; batches need not be adjacent in time here, since nothing
reads a spine by ranges of time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

import numpy as np

from ivm.kernels.blocks import SAME
from ivm.kernels.memory import (
    B_COUNT,
    B_ROWS,
    FENCE,
    HEAD,
    L_COUNT,
    LAYER_WORDS,
    T_DIFF_WIDTH,
    T_KEY_WIDTH,
    T_LAYERS,
    T_SINCE,
    T_WIDTH,
    address,
    freeze,
    trace_head,
    where,
)  # fmt: skip
from ivm.kernels.merge import (
    M_DONE,
    M_LEFT,
    M_MIXED,
    M_RIGHT,
    MERGE_WORDS,
    compact,
    fill_fence,
    fill_filter,
    insert_small,
    merge,
    spill,
)  # fmt: skip
from ivm.kernels.peaks import extend_peaks
from ivm.kernels.rank import extend_ranks
from ivm.kernels.read import collect
from ivm.kernels.shards import cut_merge
from ivm.rows import Words
from ivm.trace.batch import BIG, Batch, Block, Merged, filter_words, rank_words
from ivm.trace.shards import copied, merge_parts, sorted_block
from ivm.workers import MERGED, parts

ROOM: Final = 512
_DIRECT: Final = 256
_PORTION: Final = 64
_SPARE: Final = 16
"""With less room than this in the small layer it is spilled between steps, which costs less than in one."""
_AT_ONCE: Final = 4096
RATIO: Final = 8
EVERYTHING: Final = 2**62
MOST_FILLED: Final = 8
"""The most large layers that ``fill`` leaves."""


class Merge:
    """Two batches becoming one: both stay readable until it is done."""

    __slots__ = (
        "_peaked", "_ranked", "bits", "block", "fence", "left", "peaks", "ranks", "right", "since", "state", "trace",
    )  # fmt: skip

    def __init__(
        self, left: Batch, right: Batch, head: Words, since: int, fenced: bool, ranked: bool, peaked: bool
    ) -> None:  # fmt: skip
        self.left = left
        self.right = right
        self.since = since
        self.state = np.zeros(MERGE_WORDS, np.int64)
        self.trace = np.concatenate([head[:HEAD], left.layer, right.layer])
        most = left.n + right.n
        make = Block if most <= _AT_ONCE else Block.apart  # a large batch may keep only its rows
        self.block = make(int(head[T_WIDTH]), int(head[T_DIFF_WIDTH]), most)
        self.bits = filter_words(most, self.block.width)
        self.fence = np.empty((most + FENCE - 1) // FENCE if fenced else 0, np.int64)
        self.ranks = np.zeros(rank_words(most), np.int64) if ranked else None
        self._ranked = 1
        self.peaks = np.zeros(rank_words(most), np.int64) if peaked else None
        self._peaked = 1

    def work(self, fuel: int) -> int:
        """Continues the merge: reads at least ``fuel`` updates, or all that are left. Returns how many."""
        number = parts(min(fuel, self.left.n + self.right.n), MERGED)
        read = -1
        if number > 1:
            read = self._in_parts(fuel, number)
        if read < 0:
            read = merge(
                self.trace, HEAD, HEAD + LAYER_WORDS, self.block.d, self.state, fuel, self.since, self.bits, self.fence
            )
        if self.ranks is not None:
            self._ranked = int(extend_ranks(self.block.d, self.ranks, self._ranked))
        if self.peaks is not None:
            d, word = self.block.d, int(self.trace[T_KEY_WIDTH])
            peaks = address(self.peaks)
            self._peaked = int(extend_peaks(d[B_ROWS], self.block.width, word, d[B_COUNT], peaks, self._peaked))
        return int(read)

    def _in_parts(self, fuel: int, number: int) -> int:
        """``work`` in parallel, cut between rows, each part into a region of its own. Returns -1, having done nothing,
        if that is not worthwhile."""
        i, j = int(self.state[M_LEFT]), int(self.state[M_RIGHT])
        fuel = min(fuel, self.left.n - i + self.right.n - j)
        lefts, rights = np.zeros((2, number + 1), np.int64)
        if parts(fuel, MERGED) == 1:
            return -1
        if not cut_merge(self.trace, HEAD, HEAD + LAYER_WORDS, i, j, fuel, lefts, rights):
            return -1
        block = self.block
        at = int(block.d[B_COUNT])
        self.state[M_MIXED] |= merge_parts(self.trace, lefts, rights, block, at, self.since)
        self._describe(at, int(block.d[B_COUNT]))
        done = lefts[-1] == self.left.n and rights[-1] == self.right.n
        self.state[M_LEFT], self.state[M_RIGHT], self.state[M_DONE] = lefts[-1], rights[-1], done
        return int((lefts[-1] - i) + (rights[-1] - j))

    def _describe(self, start: int, stop: int) -> None:
        """Adds updates start … stop − 1 to the filter and the fence."""
        rows, width = int(self.block.d[B_ROWS]), self.block.width
        if len(self.bits):
            fill_filter(rows + 8 * width * start, stop - start, width, self.bits)
        if len(self.fence):
            first, end = (start + FENCE - 1) // FENCE, (stop + FENCE - 1) // FENCE
            fill_fence(rows + 8 * width * FENCE * first, stop - start, width, self.fence[first:end])

    def batch(self, fenced: bool) -> Batch:
        """The merged batch, once it is done."""
        self.block.sync()
        return Batch(self.block, fenced, Merged(self.bits, self.fence, self.ranks, self.peaks, not self.state[M_MIXED]))

    @property
    def done(self) -> bool:
        """Whether nothing is left to read."""
        return bool(self.state[M_DONE])


class Level:
    """One batch, or a merge of two."""

    __slots__ = ("batch", "merge")

    def __init__(self) -> None:
        self.batch: Batch | None = None
        self.merge: Merge | None = None


class Spine:
    """The updates of one arrangement. ``desc`` is the trace descriptor that kernels get, valid until the next insert;
    ``cell`` holds its address. ``merging``: whether a merge is in progress.

    Cost of an insert of n updates: O(n log) amortised, and at most ``most_merged`` at once.
    """

    FUEL: ClassVar[int] = 20
    READ_ONLY: ClassVar[bool] = False
    """Whether its batches belong to another spine, which merges them."""

    __slots__ = (
        "_head", "_levels", "_paid", "_small", "_unpaid", "_view", "cell", "changed", "desc", "diff_width", "fenced",
        "key_width", "merged", "merging", "node", "order", "order_words", "parts", "peak_cell", "peaked", "peaks",
        "ranked", "shape", "since_word", "watch", "width",
    )  # fmt: skip

    def __init__(
        self,
        width: int,
        key_width: int,
        shape: int = 0,
        diff_width: int = 1,
        order: Words | None = None,
        since_word: Words | None = None,
    ) -> None:
        """``order``: see ``ivm.kernels.order``; None if all words compare as integers. ``since_word``: int64[1],
        shared: the since, an ordinal to which lesser times may be advanced."""
        self.width = width
        self.key_width = key_width
        self.shape = shape
        self.diff_width = diff_width
        self.since_word = np.zeros(1, np.int64) if since_word is None else since_word
        self.merged = 0
        self.merging = False
        self.ranked = False
        self.peaked = False
        self.peaks = np.zeros(0, np.int64)
        self.peak_cell = np.zeros(1, np.int64)
        self.node = -1
        self.changed = False
        self.watch: list[Spine] | None = None
        self.order_words = order
        self.order = 0 if order is None else address(order)
        # Without keys there is nothing to search for, and a position found by fences would skip rows.
        self.fenced = key_width > 0 and (order is None or order[1] == 0)
        self._levels: list[Level] = []
        self._paid = 0
        self._unpaid = 0
        self.parts: tuple[Batch, ...] = ()
        self.cell = np.zeros(1, np.int64)
        self.desc = self._renew_small()
        self._refresh()

    def _renew_small(self) -> Words:
        """Starts an empty small layer in a new buffer. Returns the first words of the descriptor."""
        width, diff_width = self.width, self.diff_width
        self._small = np.empty(ROOM * (width + 1 + diff_width), np.int64)
        head = self._head = trace_head(
            self._small, width, self.key_width, self.shape, diff_width, self.order, ROOM
        )  # fmt: skip
        return head

    def _refresh(self) -> None:
        """Rebuilds the descriptor after the set of batches has changed."""
        parts: list[Batch] = []
        self.merging = False
        for level in self._levels:
            if level.batch is not None:
                parts.append(level.batch)
            if level.merge is not None:
                parts += (level.merge.left, level.merge.right)
                self.merging = True
        head = self._head
        head[T_LAYERS] = 1 + len(parts)
        head[T_SINCE] = where(self.since_word)
        head[HEAD + L_COUNT] = self.desc[HEAD + L_COUNT]
        self.parts = tuple(parts)
        if self.peaked:
            self._list_peaks()
        self.describe(np.concatenate([head, *(part.layer for part in parts)]))

    def rank(self) -> None:
        """Keeps sums of diffs for searches by rank from now on. Cost: a pass over all updates on the first call."""
        if not self.ranked:
            self.ranked = True
            for part in self.parts:
                part.rank()
            self._refresh()

    def peak(self) -> None:
        """Keeps the peaks of the word behind the key from now on; ``peak_cell`` holds their address. Cost: as of
        ``rank``."""
        if not self.peaked:
            self.peaked = True
            self._list_peaks()

    def _list_peaks(self) -> None:
        """Lists the address of each layer's peaks, making those that batches lack; the small layer has none."""
        for part in () if self.READ_ONLY else self.parts:
            part.peak(self.key_width)
        made = [part.peaks for part in self.parts]
        self.peaks = np.array([0, *(0 if peaks is None else address(peaks) for peaks in made)], np.int64)
        self.peak_cell[0] = address(self.peaks)

    def describe(self, desc: Words) -> None:
        """Installs a descriptor."""
        self.desc = desc
        self._view = desc.data  # faster for single words
        self.cell[0] = where(desc)

    @property
    def nbytes(self) -> int:
        """Memory held by its updates, in bytes, including the output so far of merges in progress."""
        written = sum(level.merge.block.sync() for level in self._levels if level.merge is not None)
        small = int(self.desc[HEAD + L_COUNT])
        return 8 * (small + written) * (self.width + 1 + self.diff_width) + sum(part.nbytes for part in self.parts)

    @property
    def count(self) -> int:
        """How many updates are held, counting the inputs of unfinished merges."""
        return int(self.desc[HEAD + L_COUNT]) + sum(part.n for part in self.parts)

    @property
    def only(self) -> Batch | None:
        """The batch that holds everything, if one does."""
        return self.parts[0] if len(self.parts) == 1 and not self.desc[HEAD + L_COUNT] else None

    @property
    def since(self) -> int:
        """The since: times up to this ordinal may be advanced to it."""
        return int(self.since_word[0])

    def move(self, since_word: Words, cell: Words) -> None:
        """Moves to another dataflow: reads its since, and its arena's descriptor, from these cells from now on."""
        self.since_word = since_word
        self.desc[T_SINCE] = address(since_word)
        if self.order_words is not None:
            self.order_words[0] = address(cell)

    def touched(self, count: int) -> None:
        """Notes that a kernel has put ``count`` updates into the small layer, or is about to.

        Merges get most of their fuel here, in small portions, so that spilling the layer does not cost all of it.
        """
        if not self.changed and self.watch is not None:
            self.changed = True
            self.watch.append(self)
        self._unpaid += count
        if self._unpaid >= _PORTION:
            self._paid += self._unpaid
            if self._work(self.FUEL * self._unpaid):
                self._refresh()
            self._unpaid = 0

    def placed(self) -> None:
        """Notes that kernels have put updates into the small layer without ``touched``. Call it between kernel
        calls."""
        if not self.changed and self.watch is not None:
            self.changed = True
            self.watch.append(self)
        count = self._view[HEAD + L_COUNT]
        if self.merging and count - self._paid - self._unpaid >= _PORTION:
            self.touched(count - self._paid - self._unpaid)
        if count > ROOM - _SPARE and 2 * compact(self.desc) > ROOM:
            self._spill()

    def insert(self, block: Block, lasting: bool = False) -> None:
        """Adds a sorted, consolidated block; a large one is copied and becomes a batch.

        ``lasting``: a large block will not be written to again, so it need not be copied if mostly full."""
        n = block.n
        self.touched(n if n <= _DIRECT else 0)
        if n <= _DIRECT:
            if insert_small(self.desc, block.d) >= 0:
                return
            self._spill()
            insert_small(self.desc, block.d)
            return
        if lasting and n > BIG and n >= block.room - (block.room >> 3):
            self.adopt(Batch(Block.of(*block.arrays()), self.fenced))
            return
        copy = Block(self.width, self.diff_width, n)
        copy.n = copied(block, copy, 1, SAME, 0, 0)
        self.adopt(Batch(copy, self.fenced))

    def adopt(self, batch: Batch) -> None:
        """Adds a batch as it is."""
        self._work(self.FUEL * batch.n)
        if self.ranked:
            batch.rank()
        self._place(batch, _level_of(batch.n))
        self._refresh()

    def fill(self, blocks: Iterable[Block]) -> None:
        """Adds sorted, consolidated blocks, which must not be written to again, to an empty spine.

        Large blocks are not merged here: they become layers, two of a size on a level, and their merges proceed with
        later insertions and between steps. So filling from many runs costs little more than a copy; until then reads
        search a few more layers. Cost: a pass over the blocks, and merging whatever exceeds ``MOST_FILLED`` layers.
        """
        batches: list[Batch] = []
        for block in blocks:
            if block.n > BIG:
                batches.append(Batch(block, self.fenced))
            else:
                self.insert(block, True)
        while len(batches) > MOST_FILLED:
            batches.sort(key=lambda batch: -batch.n)
            merge = Merge(batches.pop(), batches.pop(), self.desc, self.since, self.fenced, False, False)
            self.merged += merge.work(EVERYTHING)
            batches.append(merge.batch(self.fenced))
        batches.sort(key=lambda batch: batch.n)
        for batch in batches:
            if self.ranked:
                batch.rank()
            k = _level_of(batch.n)
            while k < len(self._levels) and self._levels[k].merge is not None:
                k += 1
            self._place(batch, k)
        self._refresh()

    def _spill(self) -> None:
        """Turns the small layer into a batch."""
        if self._work(self.FUEL * max(ROOM - self._paid, 0)):
            self._refresh()
        self._paid = self._unpaid = 0
        first = self._levels[0] if self._levels else None
        if first is not None and first.merge is None and first.batch is not None and self._spill_into(first):
            return
        n = int(compact(self.desc))
        if n:
            block = Block.over(self._small, self.width, self.diff_width, ROOM, n)
            self._renew_small()
            self.desc[HEAD + L_COUNT] = 0
            batch = Batch(block, self.fenced)
            if self.ranked:
                batch.rank()
            self._place(batch, 0)
        self._refresh()

    def _spill_into(self, first: Level) -> bool:
        """``_spill`` into the batch of the first level, which is the trace's second layer. False, having done nothing,
        if that is too large for one call.

        Published versions have a copy of the small layer, and of the descriptor, which are written to in place.
        """
        assert first.batch is not None
        most = first.batch.n + self._view[HEAD + L_COUNT]
        if most > _AT_ONCE or self.ranked or self.peaked:
            return False
        block = Block(self.width, self.diff_width, most)
        bits = filter_words(most, self.width)
        fence = np.empty((most + FENCE - 1) // FENCE if self.fenced else 0, np.int64)
        n = block.n = int(spill(self.desc, block.d, bits, fence))
        self.merged += most
        if most - n > max(64, n >> 2):
            self.desc[HEAD + L_COUNT] = 0
            first.batch = Batch(block, self.fenced) if n else None
            self._refresh()
        else:
            layer = self.desc[HEAD + LAYER_WORDS : HEAD + 2 * LAYER_WORDS].copy()
            first.batch = Batch.described(block, layer, bits, fence)
            self.parts = (first.batch, *self.parts[1:])
        return True

    def _work(self, fuel: int) -> bool:
        """Continues all merges. Returns whether one of them is done."""
        settled = False
        for k in range(len(self._levels) - 1, -1, -1):
            level = self._levels[k]
            if level.merge is not None:
                self.merged += level.merge.work(fuel)
                if level.merge.done:
                    self._settle(k)
                    settled = True
        return settled

    def lend(self, fuel: int) -> int:
        """Continues the largest merge in progress, between steps. Returns how many updates it has read: at least about
        ``fuel``, or all that were left; 0 when nothing is being merged. The merged batch finds its level free."""
        for k in range(len(self._levels) - 1, -1, -1):
            merge = self._levels[k].merge
            if merge is not None:
                read = merge.work(fuel)
                self.merged += read
                if merge.done:
                    self._settle(k)
                    self.touched(0)
                    self._refresh()
                return max(read, 1)
        return 0

    def _place(self, batch: Batch, k: int) -> None:
        """Puts a batch on level k; a merge in progress there is finished first."""
        while len(self._levels) <= k:
            self._levels.append(Level())
        level = self._levels[k]
        if level.merge is not None:
            self.merged += level.merge.work(EVERYTHING)
            self._settle(k)
        if level.merge is None and level.batch is None:
            level.batch = batch
        elif level.merge is None:
            assert level.batch is not None
            level.merge = Merge(level.batch, batch, self.desc, self.since, self.fenced, self.ranked, self.peaked)
            level.batch = None
            if level.merge.left.n + level.merge.right.n <= _AT_ONCE:
                self.merged += level.merge.work(EVERYTHING)
                self._settle(k)
        else:
            self._place(batch, k)

    def _settle(self, k: int) -> None:
        """Moves a finished merge's batch to the level of its size."""
        level = self._levels[k]
        assert level.merge is not None
        merge, level.merge = level.merge, None
        if merge.block.sync() == 0:
            return
        batch = merge.batch(self.fenced)
        if self.ranked:
            batch.rank()
        fitting = _level_of(batch.n)
        if fitting > k:
            self._place(batch, k + 1)
        elif fitting < k - 1:
            self._place(batch, fitting)
        else:
            level.batch = batch

    def forget(self) -> None:
        """Drops all contents; the spine must not be used after this."""
        self._levels = []
        self.parts = ()

    def compact(self) -> None:
        """Merges everything into one batch. Cost: reading all updates."""
        if self.count == 0:
            return
        block = self.contents(self.since)
        self.desc[HEAD + L_COUNT] = 0
        self._levels = []
        self._paid = self._unpaid = 0
        self.touched(0)
        if block.n:
            self.adopt(Batch(block, self.fenced))
        else:
            self._refresh()

    def contents(self, since: int) -> Block:
        """All updates with ordinals raised to ``since``, sorted and consolidated, in a new block."""
        block = Block(self.width, self.diff_width, max(self.count, 1))
        collect(self.desc, block.d, EVERYTHING, since)
        block.sync()
        return sorted_block(block, self.order)

    def frozen(self) -> tuple[Words, tuple[Batch, ...]]:
        """The contents of a published version: (the descriptor followed by a copy of the small layer, the batches)."""
        desc = self.desc
        held = np.empty(len(desc) + int(desc[HEAD + L_COUNT]) * (self.width + 1 + self.diff_width), np.int64)
        freeze(desc, held)
        return held, self.parts


def most_merged(updates: int, levels: int) -> int:
    """The most updates that merges read when ``updates`` are inserted at once into a spine of ``levels`` levels; they
    exceed it only by the rest of a group of equal rows, which is never split."""
    return levels * (Spine.FUEL * (updates + ROOM + _PORTION) + _AT_ONCE)


def lend(spines: list[Spine], fuel: int) -> None:
    """Continues merges, starting with the last of the spines, until about ``fuel`` updates are read. Spines with no
    merges left are removed from the list."""
    while spines and fuel > 0:
        read = spines[-1].lend(fuel)
        if not read:
            spines.pop()
        fuel -= read


def _level_of(n: int) -> int:
    """The least level whose capacity is at least n."""
    k = 0
    room = RATIO * ROOM
    while room < n:
        room *= RATIO
        k += 1
    return k
