"""A pytest plugin for checked kernels: gaps that no kernel may touch around every block's rows, times and diffs."""

from __future__ import annotations

from typing import Final

import numpy as np
from hypothesis import settings

from ivm.kernels.cache import CHECKED
from ivm.kernels.memory import address
from ivm.kernels.shadow import mark
from ivm.trace.batch import Block
from tests.support.profiles import NAME

GAP: Final = 8
"""Words; what precedes the buffer and what follows it are gaps too."""


def allocate(block: Block, room: int) -> None:
    """``Block._allocate`` with gaps."""
    sizes = (room * block.width, room, room * block.diff_width)
    buffer = np.full(sum(sizes) + 4 * GAP, 0x5AFE_5AFE_5AFE_5AFE, np.int64)
    mark(int(buffer.ctypes.data), buffer.nbytes, 0)  # an array of a kernel may have been there
    starts = (GAP, 2 * GAP + sizes[0], 3 * GAP + sizes[0] + sizes[1])
    rows, times, diffs = (buffer[start : start + size] for start, size in zip(starts, sizes, strict=True))
    block._buffer = buffer
    block._rows, block._times = rows.reshape(room, block.width), times
    block._diffs = diffs.reshape(room, block.diff_width)
    block.room = room
    block.d[:] = (block.n, block.width, address(rows), address(times), address(diffs), room, block.diff_width)


settings.load_profile(NAME)
assert CHECKED, "FRESHET_CHECKED=1"
Block._allocate = allocate  # type: ignore[method-assign]
