"""Sorting a pass's updates and putting them into a spine's small layer, in one call."""

from __future__ import annotations

from ivm.kernels.cache import kernel
from ivm.kernels.memory import T_ROOM
from ivm.kernels.merge import insert_small
from ivm.kernels.sort import sort_block
from ivm.rows import Words


@kernel
def arrange(source: Words, out: Words, trace: Words, order: int) -> int:
    """Sorts the source into ``out`` as ``sort_block`` does, then inserts a small ``out`` into the trace if it can.

    Returns twice the updates in ``out``, and 1 more when they are in the trace.
    """
    count = sort_block(source, out, order)
    return 2 * count + int(count == 0 or put_small(trace, out))


@kernel
def put_small(trace: Words, block: Words) -> bool:
    """Inserts a sorted, consolidated block of at most half the small layer's room; False when it cannot."""
    return bool(2 * block[0] <= trace[T_ROOM] and insert_small(trace, block) >= 0)
