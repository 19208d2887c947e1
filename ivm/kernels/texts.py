"""Kernels over columns of UTF-8 values, each named by the address of its bytes and their number.

The addresses lie in an arena or in an array that the caller keeps alive. A *character* is a code point; the bytes are
valid UTF-8, so that it begins at every byte that is not 10xxxxxx, and bytes below 128 are characters of their own.
"""

from __future__ import annotations

from typing import Final

from ivm.kernels.arena import bytes_of, is_reserved, length_of, resolve
from ivm.kernels.cache import kernel
from ivm.kernels.memory import copy_bytes, load_byte, load_word, where_bytes
from ivm.rows import Bytes, Words

_HIGH: Final = -0x7F7F7F7F7F7F7F80
"""The highest bit of each of eight bytes: 0x8080808080808080 as an int64."""
DECIMAL_ROOM: Final = 40
"""The bytes that the longest number takes that ``write_decimals`` writes: a sign, a point, 31 digits or a word's."""


@kernel
def locate(descriptor: Words, ids: Words, starts: Words, lengths: Words) -> int:
    """Where the values of ids lie. Returns how many ids are unknown."""
    unknown = 0
    for i in range(len(ids)):
        slot = resolve(descriptor, ids[i])
        if slot == 0 or is_reserved(slot):
            unknown += 1
            starts[i] = lengths[i] = 0
        else:
            starts[i], lengths[i] = bytes_of(slot), length_of(slot)
    return unknown


@kernel
def join(starts: Words, lengths: Words, width: int, offsets: Words, data: Bytes) -> None:
    """Writes rows of ``width`` values, which lie row by row in ``starts`` and ``lengths``, to their offsets."""
    base = where_bytes(data)
    for row in range(len(offsets) - 1):
        at = base + offsets[row]
        for i in range(row * width, (row + 1) * width):
            copy_bytes(at, starts[i], lengths[i])
            at += lengths[i]


@kernel
def _continues(address: int) -> bool:
    return (load_byte(address) & 0xC0) == 0x80


@kernel
def _characters(address: int, length: int) -> int:
    count, at = 0, 0
    while at + 8 <= length:
        if (load_word(address + at) & _HIGH) == 0:
            count += 8
        else:
            for i in range(at, at + 8):
                count += not _continues(address + i)
        at += 8
    for i in range(at, length):
        count += not _continues(address + i)
    return count


@kernel
def characters(starts: Words, lengths: Words, out: Words) -> None:
    """How many characters each value has."""
    for i in range(len(out)):
        out[i] = _characters(starts[i], lengths[i])


@kernel
def _size(address: int, length: int, count: int) -> int:
    """The bytes of the first ``count`` characters."""
    at = 0
    while count > 0 and at < length:
        if count >= 8 and at + 8 <= length and (load_word(address + at) & _HIGH) == 0:
            at += 8
            count -= 8
            continue
        at += 1
        while at < length and _continues(address + at):
            at += 1
        count -= 1
    return at


@kernel
def cut(starts: Words, lengths: Words, skipped: Words, taken: Words) -> None:
    """Makes each value ``taken`` characters of it after the first ``skipped`` ones."""
    for i in range(len(starts)):
        before = _size(starts[i], lengths[i], skipped[i])
        starts[i] += before
        lengths[i] = _size(starts[i], lengths[i] - before, taken[i])


@kernel
def stands(address: int, wanted: int, length: int) -> bool:
    for i in range(length):  # noqa: SIM110 (numba compiles no generators in all())
        if load_byte(address + i) != load_byte(wanted + i):
            return False
    return True


@kernel
def _find(address: int, length: int, begin: int, wanted: int, size: int) -> int:
    """The first place from ``begin`` on where the wanted bytes are, -1: none. Cost: O(length * size)."""
    if size == 0:
        return begin
    first = load_byte(wanted)
    for at in range(begin, length - size + 1):
        if load_byte(address + at) == first and stands(address + at + 1, wanted + 1, size - 1):
            return at
    return -1


@kernel
def find(starts: Words, lengths: Words, begins: Words, wanted: Words, sizes: Words, out: Words) -> None:
    """Where the bytes ``wanted`` (addresses, of ``sizes`` bytes) are in each value, from byte ``begins`` on; -1:
    nowhere. A negative begin stays."""
    for i in range(len(out)):
        out[i] = -1 if begins[i] < 0 else _find(starts[i], lengths[i], begins[i], wanted[i], sizes[i])


@kernel
def split(starts: Words, lengths: Words, wanted: Words, sizes: Words, fields: Words) -> None:
    """Makes each value its n-th part (from 1) between delimiters, which are not empty; nothing if it has none."""
    for i in range(len(starts)):
        begin = 0
        for _ in range(fields[i] - 1):
            begin = _find(starts[i], lengths[i], begin, wanted[i], sizes[i])
            if begin < 0:
                break
            begin += sizes[i]
        if begin < 0:
            lengths[i] = 0
            continue
        end = _find(starts[i], lengths[i], begin, wanted[i], sizes[i])
        starts[i] += begin
        lengths[i] = (lengths[i] if end < 0 else end) - begin


@kernel
def count_found(starts: Words, lengths: Words, wanted: Words, sizes: Words, out: Words) -> None:
    """How often the wanted bytes, which are not empty, are in each value, without overlaps."""
    for i in range(len(out)):
        count, at = 0, _find(starts[i], lengths[i], 0, wanted[i], sizes[i])
        while at >= 0:
            count += 1
            at = _find(starts[i], lengths[i], at + sizes[i], wanted[i], sizes[i])
        out[i] = count


@kernel
def replace(
    starts: Words,
    lengths: Words,
    wanted: Words,
    sizes: Words,
    new: Words,
    new_sizes: Words,
    offsets: Words,
    data: Bytes,
) -> None:
    """Writes each value with ``new`` in the place of what is wanted to its offset."""
    base = where_bytes(data)
    for i in range(len(starts)):
        to, begin = base + offsets[i], 0
        while True:
            at = _find(starts[i], lengths[i], begin, wanted[i], sizes[i])
            end = lengths[i] if at < 0 else at
            copy_bytes(to, starts[i] + begin, end - begin)
            to += end - begin
            if at < 0:
                break
            copy_bytes(to, new[i], new_sizes[i])
            to += new_sizes[i]
            begin = at + sizes[i]


@kernel
def strip(starts: Words, lengths: Words, unwanted: Words, left: bool, right: bool) -> None:
    """Takes bytes, those below 128 for which ``unwanted`` int64[128] is not 0, from the ends of each value."""
    for i in range(len(starts)):
        start, stop = starts[i], starts[i] + lengths[i]
        while left and start < stop:
            byte = load_byte(start)
            if byte >= 128 or unwanted[byte] == 0:
                break
            start += 1
        while right and start < stop:
            byte = load_byte(stop - 1)
            if byte >= 128 or unwanted[byte] == 0:
                break
            stop -= 1
        starts[i], lengths[i] = start, stop - start


@kernel
def write_decimals(mantissas: Words, scales: Words, data: Bytes, lengths: Words) -> None:
    """Writes ``mantissa * 10**-scale`` with that many digits after the point, right-aligned in the row's part
    of ``data`` uint8[n * DECIMAL_ROOM]; ``lengths``: how many bytes it takes."""
    for i in range(len(mantissas)):
        rest, scale = mantissas[i], scales[i]
        stop = (i + 1) * DECIMAL_ROOM
        at, written = stop, 0
        while written <= scale or rest != 0:
            if written == scale and scale > 0:
                at -= 1
                data[at] = 46
            quotient = rest // 10
            digit = rest - quotient * 10
            if rest < 0 and digit != 0:  # towards zero, so that the least integer needs no absolute value
                digit = 10 - digit
                quotient += 1
            at -= 1
            data[at] = 48 + digit
            rest = quotient
            written += 1
        if mantissas[i] < 0:
            at -= 1
            data[at] = 45
        lengths[i] = stop - at


@kernel
def read_decimals(starts: Words, lengths: Words, mantissas: Words, scales: Words) -> None:
    """Reads an optional sign and 1 to 18 digits, with a point between two of them or without one; any other value has
    the scale -1."""
    for i in range(len(starts)):
        at, stop = starts[i], starts[i] + lengths[i]
        negative = False
        if at < stop and (load_byte(at) == 45 or load_byte(at) == 43):
            negative = load_byte(at) == 45
            at += 1
        value, digits, point = 0, 0, -1
        plain = at < stop
        while plain and at < stop:
            byte = load_byte(at)
            if byte == 46 and point < 0 and digits > 0 and at + 1 < stop:
                point = digits
            elif 48 <= byte <= 57 and digits < 18:
                value = value * 10 + byte - 48
                digits += 1
            else:
                plain = False
            at += 1
        mantissas[i] = -value if negative else value
        scales[i] = -1 if not plain else 0 if point < 0 else digits - point
