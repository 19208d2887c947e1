"""Timestamps in Python: packing of (ordinal, round, …) as in ``ivm.kernels.times``, with checked widths."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.kernels.times import MAX_DEPTH, ROUND_BITS

PRIORITIES: Final = 64
"""As many as a word can have bit lengths."""
MAX_ORDINALS: Final = tuple((1 << (63 - depth * ROUND_BITS[depth])) - 1 for depth in range(MAX_DEPTH + 1))


def check_depth(depth: int) -> None:
    """Raises 0A000 for loops nested too deeply."""
    if depth > MAX_DEPTH:
        raise unsupported(f"recursion nested more than {MAX_DEPTH} deep")


def check_ordinal(ordinal: int, depth: int) -> None:
    """Raises 54001 when an ordinal does not fit beside the rounds of a dataflow of this depth."""
    if not 0 <= ordinal <= MAX_ORDINALS[depth]:
        raise SqlError("54001", f"time {ordinal} is out of range in a dataflow with {depth} nested loops")


def pack(ordinal: int, *rounds: int) -> int:
    """The packed time of a vector."""
    depth = len(rounds)
    bits = ROUND_BITS[depth]
    time = ordinal
    for r in rounds:
        assert 0 <= r < 1 << bits
        time = time << bits | r
    return time


def unpack(time: int, depth: int) -> tuple[int, ...]:
    """The vector (ordinal, round, …) of a packed time."""
    bits = ROUND_BITS[depth]
    mask = (1 << bits) - 1
    rounds = tuple((time >> (bits * (depth - 1 - k))) & mask for k in range(depth))
    return (time >> (depth * bits), *rounds)


def enter_vector(vector: int, depth: int) -> int:
    """The loop vector of ``depth`` one scope further in, at round 0."""
    return pack(*unpack(vector, depth), 0) if depth else 0


def leave_vector(vector: int, depth: int) -> int:
    """The loop vector of ``depth`` one scope further out."""
    return pack(*unpack(vector, depth)[:-1]) if depth > 1 else 0


def priority_stride(depth: int) -> int:
    """The rounds that each of ``PRIORITIES`` gets before the next one comes, in loops nested so deep.

    Three quarters of the rounds and more are left to the last priority; an earlier one that needs more than its own
    goes on beside the next.
    """
    return 1 << min(12, ROUND_BITS[depth] - 8)


def max_round(depth: int) -> int:
    """The last round that fits at this depth."""
    return (1 << ROUND_BITS[depth]) - 1
