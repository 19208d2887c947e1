"""Encodes result rows as DataRow messages, without a Python object per value.

A column's value in each row is a slice of one shared byte buffer: ``starts[c, i]`` and ``lengths[c, i]``, -1 for NULL.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ivm.kernels.cache import kernel

INTEGER_WIDTH = 20
"""The number of characters of the longest int64."""


@kernel
def format_integers(
    words: NDArray[np.int64], out: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> None:
    """Formats each word in decimal, right-aligned in its ``INTEGER_WIDTH`` bytes of ``out``."""
    for i in range(words.shape[0]):
        value = words[i]
        end = (i + 1) * 20
        at = end
        negative = value < 0
        # the least int64 has no positive counterpart, an unsigned word has
        rest = np.uint64(0) - np.uint64(value) if negative else np.uint64(value)
        while True:
            quotient = rest // np.uint64(10)
            at -= 1
            out[at] = np.uint8(48) + np.uint8(rest - quotient * np.uint64(10))
            rest = quotient
            if rest == np.uint64(0):
                break
        if negative:
            at -= 1
            out[at] = 45
        starts[i] = at
        lengths[i] = end - at


@kernel
def message_bytes(lengths: NDArray[np.int64]) -> int:
    """The size in bytes of all DataRow messages for values of these lengths, int64[columns, rows]."""
    columns, rows = lengths.shape
    total: int = rows * (7 + 4 * columns)
    for c in range(columns):
        for i in range(rows):
            if lengths[c, i] > 0:
                total += lengths[c, i]
    return total


@kernel
def assemble(
    data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], out: NDArray[np.uint8]
) -> int:
    """Writes the DataRow messages to ``out``, which has ``message_bytes(lengths)`` bytes; returns how many were
    written."""
    columns, rows = lengths.shape
    at = 0
    for i in range(rows):
        size = 6 + 4 * columns
        for c in range(columns):
            if lengths[c, i] > 0:
                size += lengths[c, i]
        out[at] = 68
        at = _put_int32(out, at + 1, size)
        out[at] = (columns >> 8) & 255
        out[at + 1] = columns & 255
        at += 2
        for c in range(columns):
            length = lengths[c, i]
            at = _put_int32(out, at, length)
            start = starts[c, i]
            for k in range(length):
                out[at + k] = data[start + k]
            if length > 0:
                at += length
    return at


@kernel
def _put_int32(out: NDArray[np.uint8], at: int, value: int) -> int:
    out[at] = (value >> 24) & 255
    out[at + 1] = (value >> 16) & 255
    out[at + 2] = (value >> 8) & 255
    out[at + 3] = value & 255
    return at + 4
