"""Copies of long values by pieces. One call that copies 100 MB holds Python's lock for 50 ms, in which nobody else is
answered; between two pieces others take their turn."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from io import BytesIO
from typing import Final

import numpy as np
from numpy.typing import NDArray

LONG: Final = 1 << 20
PIECE: Final = 1 << 18


def decoded(data: bytes) -> str:
    """``data.decode()``. Python extends a text in place, if nobody else has it."""
    decode, view, out = codecs.getincrementaldecoder("utf-8")().decode, memoryview(data), ""
    for at in range(0, len(data), PIECE):
        out += decode(view[at : at + PIECE])
    return out + decode(b"", final=True)


def encoded(text: str) -> bytes:
    """``text.encode()``."""
    out = BytesIO()
    for at in range(0, len(text), PIECE):
        out.write(text[at : at + PIECE].encode())
    return out.getvalue()


def copied(data: NDArray[np.uint8]) -> bytes:
    """``data.tobytes()``."""
    if len(data) <= LONG:
        return data.tobytes()
    out = BytesIO()
    for at in range(0, len(data), PIECE):
        out.write(data[at : at + PIECE].data)
    return out.getvalue()


def laid_out(values: Sequence[bytes]) -> NDArray[np.uint8]:
    """The values one after the other, in an array of their own."""
    if max(map(len, values), default=0) <= LONG:
        return np.frombuffer(bytearray(b"".join(values)), np.uint8)
    data = np.empty(sum(map(len, values)), np.uint8)
    start = 0
    for value in values:
        for at in range(0, len(value), PIECE):
            stop = min(at + PIECE, len(value))
            data[start + at : start + stop] = np.frombuffer(value, np.uint8, stop - at, at)
        start += len(value)
    return data
