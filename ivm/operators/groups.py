"""Groups for a reducer: the segments that a kernel gathers in a pass, and what turns results into updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ivm.kernels.reduce import differences_partial, differences_total
from ivm.rows import Words
from ivm.trace.batch import Block
from ivm.trace.shards import sort_into
from ivm.trace.spine import Spine


class Groups:
    """The segments of a pass (``ivm.kernels.reduce``): ``heads`` with their keys, times and signs, and the values."""

    __slots__ = ("heads", "offsets", "vals")

    def __init__(self, key_width: int, val_width: int, diff_width: int) -> None:
        self.heads = Block(key_width, 2)
        self.offsets = Block(1)
        self.vals = Block(val_width, diff_width)

    def reserve(self, count: int) -> None:
        """Makes room for this many segments and values."""
        self.heads.reserve(count + 8)
        self.offsets.reserve(self.heads.room + 1)
        self.vals.reserve(count + 8)

    def grow(self) -> None:
        """Doubles the room."""
        self.heads.grow()
        self.offsets.reserve(self.heads.room + 1)
        self.vals.grow()

    def gather(
        self, given: Sequence[Words], stats: Words, kernel: Callable[..., bool | None], *options: object
    ) -> None:
        """Calls a kernel until it has room in the three blocks, that is, until it does not return False."""
        while kernel(*given, self.heads.d, self.offsets.d, self.vals.d, *options, stats) is False:
            self.grow()

    def clear(self) -> None:
        """Empties the blocks and frees large buffers."""
        for block in (self.heads, self.offsets, self.vals):
            block.clear()

    def found(self) -> tuple[Words, Words, Words, Words, Words]:
        """(which, keys, offsets, values, diffs): the non-empty segments as a ``Reducer`` gets them, and their
        indexes."""
        heads = self.heads.sync()
        self.vals.sync()
        offsets = self.offsets.rows[: heads + 1, 0]
        full = np.nonzero(offsets[1:] > offsets[:-1])[0]
        keys, _, _ = self.heads.arrays()
        vals, _, diffs = self.vals.arrays()
        if len(full) < heads:
            keys = keys[full]
            offsets = np.append(offsets[full], offsets[-1])
        return full, keys, offsets, vals, diffs

    def differences(self, segment: Words, vals: Words, unsorted: Block, out: Block, order: int) -> None:
        """Outside loops: puts results of segments into ``out``, by the segments' signs, sorted. ``unsorted`` is empty,
        and is left so."""
        count = len(segment)
        unsorted.reserve(2 * count)
        unsorted.n = differences_total(
            self.heads.d, np.ascontiguousarray(segment, np.int64), _matrix(vals, count), unsorted.d
        )
        out.reserve(unsorted.n)
        out.n = sort_into(unsorted, out, order)
        unsorted.clear()

    def corrections(self, segment: Words, vals: Words, spine: Spine, nothing: Words, out: Block) -> None:
        """Inside loops: puts results of segments minus what the spine has into ``out``, sorted."""
        count = len(segment)
        ascending = np.argsort(segment, kind="stable")
        which = np.ascontiguousarray(segment[ascending], np.int64)
        rows = _matrix(_matrix(vals, count)[ascending], count)
        unsorted = Block(spine.width, 1, 2 * count + 32)
        while not differences_partial(self.heads.d, which, rows, spine.desc, nothing, unsorted.d):
            unsorted.grow()
        out.reserve(unsorted.sync())
        out.n = sort_into(unsorted, out, spine.order)


def _matrix(vals: Words, count: int) -> Words:
    """A reducer's values as a contiguous int64 matrix."""
    return np.ascontiguousarray(vals, np.int64).reshape(count, -1 if count else (vals.shape[-1] or 1))
