"""The kernel that lays out the digits of floats as PostgreSQL does."""

from __future__ import annotations

from typing import Final

from ivm.kernels.cache import kernel
from ivm.kernels.memory import load_byte
from ivm.rows import Bytes, Words

FLOAT_ROOM: Final = 32
"""The bytes that the longest number takes: a sign, a point, four zeros, 17 digits, an exponent."""


@kernel
def _put_digits(mantissa: int, count: int, data: Bytes, at: int, point: int) -> int:
    """Writes a number of ``count`` digits, with a point before its last ``point`` ones if there are any. Returns where
    it ends."""
    end = at + count + int(point > 0)
    place = end - 1
    for i in range(count):
        if i == point and point > 0:
            data[place] = 46
            place -= 1
        data[place] = 48 + mantissa % 10
        mantissa //= 10
        place -= 1
    return end


@kernel
def _put_zeros(data: Bytes, at: int, count: int) -> int:
    for i in range(at, at + count):
        data[i] = 48
    return at + count


@kernel
def _put(mantissa: int, scale: int, most: int, data: Bytes, at: int) -> int:
    """Writes ``mantissa * 10**-scale``. Returns where it ends."""
    count, left = 1, mantissa // 10
    while left != 0:
        count += 1
        left //= 10
    exponent = count - 1 - scale
    if exponent < -4 or exponent >= most:
        at = _put_digits(mantissa, count, data, at, count - 1)
        data[at], data[at + 1] = 101, 43 if exponent >= 0 else 45
        exponent = abs(exponent)
        return _put_digits(exponent, 3 if exponent >= 100 else 2, data, at + 2, 0)
    if exponent < 0:
        data[at], data[at + 1] = 48, 46
        at = _put_zeros(data, at + 2, -exponent - 1)
        return _put_digits(mantissa, count, data, at, 0)
    at = _put_digits(mantissa, count, data, at, max(scale, 0))
    return _put_zeros(data, at, max(-scale, 0))


@kernel
def lay_out_floats(starts: Words, lengths: Words, most: int, data: Bytes, sizes: Words) -> None:
    """Writes finite numbers, given as ``[-]digits[.digits][e[±]digits]`` of up to 18 digits, to the row's part of
    ``data`` uint8[n * FLOAT_ROOM]: with an exponent if the first digit stands for less than 10**-4 or for
    10**``most`` and more. ``sizes``: how many bytes it takes."""
    for i in range(len(starts)):
        at, stop = starts[i], starts[i] + lengths[i]
        begin = to = i * FLOAT_ROOM
        if load_byte(at) == 45:
            data[to] = 45
            to += 1
            at += 1
        mantissa, scale, fraction = 0, 0, 0
        while at < stop and load_byte(at) != 101:
            byte = load_byte(at)
            at += 1
            if byte == 46:
                fraction = 1
                continue
            mantissa = 10 * mantissa + byte - 48
            scale += fraction
        if at < stop:
            at += 1
            negative = load_byte(at) == 45
            at += int(load_byte(at) in (43, 45))
            exponent = 0
            while at < stop:
                exponent = 10 * exponent + load_byte(at) - 48
                at += 1
            scale += exponent if negative else -exponent
        if mantissa == 0:
            scale = 0
        while mantissa != 0 and mantissa % 10 == 0:
            mantissa //= 10
            scale -= 1
        sizes[i] = _put(mantissa, scale, most, data, to) - begin
