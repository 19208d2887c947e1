"""Decimals digit by digit: division where mantissas fit in words, and reading of long ones."""

from __future__ import annotations

from typing import Final

from ivm.kernels.cache import kernel
from ivm.kernels.memory import Bytes, load_byte
from ivm.rows import Words

QUOTIENT_ROOM: Final = 96
"""The bytes that a quotient takes at most: 19 digits, ``MOST_PLACES`` more, a point and a sign."""
MOST_PLACES: Final = 72
_MANY: Final = 9
_TEN_TO_MANY: Final = 10**9
_SMALL: Final = 1 << 33
"""Below it a rest times 10**9 fits in a word."""
UNREAD: Final = -(2**63)
"""In the place of a mantissa."""
_INLINE_MOST: Final = 1 << 57
_INLINE_SCALE: Final = 31


@kernel
def _write(data: Bytes, at: int, count: int, value: int) -> None:
    """Writes a number's last ``count`` digits from a byte on."""
    for i in range(at + count - 1, at - 1, -1):
        data[i] = value % 10
        value //= 10


@kernel
def _digits(data: Bytes, at: int, numerator: int, denominator: int, places: int) -> None:
    """Writes 19 digits of the quotient of two positive integers and ``places`` more, rounded half up; bytes 0 to 9."""
    _write(data, at, 19, numerator // denominator)
    rest = numerator % denominator
    to, stop = at + 19, at + 19 + places
    while to < stop:
        if stop - to >= _MANY and denominator < _SMALL:
            rest *= _TEN_TO_MANY
            _write(data, to, _MANY, rest // denominator)
            to += _MANY
        else:
            rest *= 10
            data[to] = rest // denominator
            to += 1
        rest %= denominator
    if 2 * rest >= denominator:
        to -= 1
        while data[to] == 9:
            data[to] = 0
            to -= 1
        data[to] += 1


@kernel
def divide(
    left: Words, right: Words, places: Words, scales: Words, data: Bytes, words: Words, starts: Words, lengths: Words
) -> None:
    """``left * 10**places / right``, rounded half away from zero, as a numeric of these scales: its word where it is
    inline, then ``lengths`` is 0; else its text, of ``lengths`` bytes from ``starts`` on in ``data`` uint8[n *
    QUOTIENT_ROOM]. No divisor is 0; all are less than 2**57 in size; at most MOST_PLACES places, at least as many as
    the scale."""
    for i in range(len(left)):
        base = i * QUOTIENT_ROOM + 2
        count = 19 + places[i]
        _digits(data, base, abs(left[i]), abs(right[i]), places[i])
        first = base
        while first < base + count and data[first] == 0:
            first += 1
        negative = (left[i] < 0) != (right[i] < 0) and first < base + count
        mantissa = 0
        if base + count - first <= 18:
            for at in range(first, base + count):
                mantissa = mantissa * 10 + data[at]
        lengths[i] = 0
        fits = base + count - first <= 18 and mantissa < _INLINE_MOST + (1 if negative else 0)
        if fits and scales[i] <= _INLINE_SCALE:
            words[i] = (-mantissa if negative else mantissa) * 64 + scales[i] * 2
            continue
        point = base + count - scales[i]
        first = min(first, point - 1)
        start = first - (scales[i] > 0)
        for at in range(start, point - (scales[i] > 0)):
            data[at] = data[at + (scales[i] > 0)]
        for at in range(start, base + count):
            data[at] += 48
        if scales[i] > 0:
            data[point - 1] = 46
        if negative:
            start -= 1
            data[start] = 45
        starts[i], lengths[i] = start, base + count - start


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
