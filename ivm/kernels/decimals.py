"""Reading of long decimals."""

from __future__ import annotations

from typing import Final

from ivm.kernels.cache import kernel
from ivm.kernels.memory import load_byte
from ivm.rows import Words

UNREAD: Final = -(2**63)
"""In the place of a mantissa."""


@kernel
def read_rounded(starts: Words, lengths: Words, places: int, mantissas: Words) -> None:
    """Reads ``[-]digits[.digits]`` as units of ``10**-places``, rounded half away from zero. ``UNREAD``
    in the place of more than 17 digits, and of what is no such number."""
    for i in range(len(starts)):
        at, stop = starts[i], starts[i] + lengths[i]
        negative = at < stop and load_byte(at) == 45
        at += int(negative)
        value, after, fine = 0, -1, at < stop
        while at < stop and fine and after < places:
            byte = load_byte(at)
            at += 1
            if byte == 46:
                after = 0
            elif 48 <= byte <= 57 and value < 10**16:
                value = 10 * value + byte - 48
                after += int(after >= 0)
            else:
                fine = False
        if fine and after == places and at < stop:
            byte = load_byte(at)
            fine = 48 <= byte <= 57
            value += int(byte >= 53)
        for _ in range(max(after, 0), places):
            fine = fine and value < 10**16
            value *= 10
        mantissas[i] = UNREAD if not fine else -value if negative else value
