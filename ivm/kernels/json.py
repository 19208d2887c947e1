"""Kernels over columns of JSON texts, each named by the address of its bytes and their number (``ivm.kernels.texts``).

The texts are valid JSON in UTF-8, so that nothing is checked. *Canonical* ones are jsonb's: no white space but one
space after a comma and a colon, keys that differ, and escapes only where a character needs one. The others, of type
json, are *loose*: the last of equal keys counts, and a key with a backslash may be any key.

A length of 0 says that there is nothing, of -1 that the kernel does not know: the caller must look in its own way.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.cache import kernel
from ivm.kernels.memory import copy_bytes, load_byte, load_word, where_bytes
from ivm.kernels.texts import stands
from ivm.rows import Bytes, Words

NO_INDEX: Final = -(2**62)
"""In the place of an array's index: none, so that no element is meant."""
NULL: Final = 0
BOOLEAN: Final = 1
NUMBER: Final = 2
STRING: Final = 3
ARRAY: Final = 4
OBJECT: Final = 5
_QUOTE: Final = 34
_BACKSLASH: Final = 92
_EACH: Final = 0x0101010101010101
_QUOTES: Final = 0x22 * _EACH
_BACKSLASHES: Final = 0x5C * _EACH
_BLANKS: Final = 0x20 * _EACH
_HIGH: Final = 0x80 * _EACH


@kernel
def _zero_byte(word: int) -> int:
    """Not 0 if one of the eight bytes is 0."""
    return (np.uint64(word) - np.uint64(_EACH)) & ~np.uint64(word) & np.uint64(_HIGH)  # type: ignore[return-value]


@kernel
def _special(word: int) -> bool:
    """Whether one of eight bytes is a quote or a backslash."""
    found = _zero_byte(np.uint64(word) ^ np.uint64(_QUOTES)) | _zero_byte(np.uint64(word) ^ np.uint64(_BACKSLASHES))  # type: ignore[arg-type]
    return found != np.uint64(0)


@kernel
def _escaped(word: int) -> bool:
    """Whether one of eight bytes may be one that a string has only as an escape."""
    below = (np.uint64(word) - np.uint64(_BLANKS)) & ~np.uint64(word) & np.uint64(_HIGH)
    return _special(word) or below != np.uint64(0)


@kernel
def _string_end(at: int, stop: int) -> int:
    """The address of the quote that ends the string whose first character is at an address."""
    while True:
        while at + 8 <= stop and not _special(load_word(at)):
            at += 8
        for _ in range(8):
            if at >= stop:
                return stop
            byte = load_byte(at)
            if byte == _QUOTE:
                return at
            at += 2 if byte == _BACKSLASH else 1


@kernel
def _skip(at: int, stop: int) -> int:
    """The address behind white space."""
    while at < stop and load_byte(at) <= 32:
        at += 1
    return at


@kernel
def _value_end(at: int, stop: int) -> int:
    """The address behind the value that begins at an address."""
    first = load_byte(at)
    if first == _QUOTE:
        return _string_end(at + 1, stop) + 1
    if first not in (91, 123):
        while at < stop:
            byte = load_byte(at)
            if byte in (44, 93, 125) or byte <= 32:
                break
            at += 1
        return at
    depth = 0
    while at < stop:
        byte = load_byte(at)
        if byte == _QUOTE:
            at = _string_end(at + 1, stop)
        elif byte in (91, 123):
            depth += 1
        elif byte in (93, 125):
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return at


@kernel
def _has_escape(at: int, stop: int) -> bool:
    """Whether a string's characters from an address to another have a backslash."""
    while at < stop:
        if at + 8 <= stop and not _special(load_word(at)):
            at += 8
        elif load_byte(at) == _BACKSLASH:
            return True
        else:
            at += 1
    return False


@kernel
def _next(at: int, stop: int) -> int:
    """The address of what follows the value that begins at an address, behind a comma if there is one."""
    at = _skip(_value_end(at, stop), stop)
    return _skip(at + 1, stop) if at < stop and load_byte(at) == 44 else at


@kernel
def _member(at: int, stop: int, key: int, size: int, loose: bool) -> int:
    """The address of an object's value of a key, as it stands between quotes; 0: it has none, -1: not known."""
    at, found = _skip(at + 1, stop), 0
    while at < stop and load_byte(at) == _QUOTE:
        end = _string_end(at + 1, stop)
        if loose and _has_escape(at + 1, end):
            return -1
        same = end - at - 1 == size and stands(at + 1, key, size)
        at = _skip(_skip(end + 1, stop) + 1, stop)
        if same:
            found = at
            if not loose:
                break
        at = _next(at, stop)
    return found


@kernel
def _count(at: int, stop: int) -> int:
    """How many elements an array has."""
    at, count = _skip(at + 1, stop), 0
    while at < stop and load_byte(at) != 93:
        count += 1
        at = _next(at, stop)
    return count


@kernel
def _element(at: int, stop: int, index: int) -> int:
    """The address of an array's element, counted from the end if the index is negative; 0: it has none."""
    if index < 0:
        index += _count(at, stop)
    if index < 0:
        return 0
    at = _skip(at + 1, stop)
    while at < stop and load_byte(at) != 93:
        if index == 0:
            return at
        index -= 1
        at = _next(at, stop)
    return 0


@kernel
def step(
    starts: Words, lengths: Words, keys: Words, sizes: Words, indexes: Words, loose: bool, scalars: bool
) -> None:  # fmt: skip
    """Makes each value a part of it: an object's value of a key (an address, 0: none), an array's element. With
    ``scalars`` a scalar is an array of itself."""
    for i in range(len(starts)):
        if lengths[i] <= 0:
            continue
        stop = starts[i] + lengths[i]
        at = _skip(starts[i], stop)
        first, found = load_byte(at), 0
        if first == 123:
            if keys[i] != 0:
                found = _member(at, stop, keys[i], sizes[i], loose)
        elif indexes[i] != NO_INDEX:
            if first == 91:
                found = _element(at, stop, indexes[i])
            elif scalars and indexes[i] in (0, -1):
                found = at
        if found > 0:
            starts[i] = found
            lengths[i] = _value_end(found, stop) - found
        else:
            lengths[i] = found


@kernel
def _kind(first: int) -> int:
    if first == 123:
        return OBJECT
    if first == 91:
        return ARRAY
    if first == _QUOTE:
        return STRING
    if first == 110:
        return NULL
    return BOOLEAN if first in (116, 102) else NUMBER


@kernel
def kinds(starts: Words, lengths: Words, out: Words) -> None:
    """What each value is; -1: there is none."""
    for i in range(len(out)):
        out[i] = -1 if lengths[i] <= 0 else _kind(load_byte(_skip(starts[i], starts[i] + lengths[i])))


@kernel
def counts(starts: Words, lengths: Words, out: Words) -> None:
    """How many elements each array has; -1: it is no array."""
    for i in range(len(out)):
        stop = starts[i] + lengths[i]
        at = _skip(starts[i], stop)
        out[i] = _count(at, stop) if load_byte(at) == 91 else -1


@kernel
def has(starts: Words, lengths: Words, keys: Words, sizes: Words, out: Words) -> None:
    """Whether a string, as it stands between quotes, is a key of the canonical object, an element of the array, or the
    value itself."""
    for i in range(len(out)):
        at, stop, key, size = starts[i], starts[i] + lengths[i], keys[i], sizes[i]
        first, found = load_byte(at), False
        if first == 123:
            found = _member(at, stop, key, size, False) != 0
        elif first == 91:
            at += 1
            while not found and at < stop and load_byte(at) != 93:
                found = _is_string(at, stop, key, size)
                at = _next(at, stop)
        else:
            found = _is_string(at, stop, key, size)
        out[i] = int(found)


@kernel
def _is_string(at: int, stop: int, key: int, size: int) -> bool:
    return load_byte(at) == _QUOTE and _string_end(at + 1, stop) - at - 1 == size and stands(at + 1, key, size)


@kernel
def uncover(starts: Words, lengths: Words, out: Words) -> int:
    """Makes each string what is between its quotes. ``out``: 1 for a string with escapes, -1 for null, otherwise 0.
    Returns how many bytes the strings with escapes have."""
    total = 0
    for i in range(len(out)):
        out[i] = 0
        if lengths[i] <= 0:
            continue
        first = load_byte(starts[i])
        if first == 110:
            out[i] = -1
        elif first == _QUOTE:
            starts[i] += 1
            lengths[i] -= 2
            if _has_escape(starts[i], starts[i] + lengths[i]):
                out[i] = 1
                total += lengths[i]
    return total


@kernel
def _hexadecimal(byte: int) -> int:
    return byte - 48 if byte <= 57 else (byte | 32) - 87


@kernel
def _plain(byte: int) -> int:
    """The character that a backslash and a letter stand for."""
    if byte == 110:
        return 10
    if byte == 116:
        return 9
    if byte == 114:
        return 13
    if byte == 98:
        return 8
    return 12 if byte == 102 else byte


@kernel
def unescape(starts: Words, lengths: Words, which: Words, data: Bytes) -> None:
    """Writes the characters of the strings that ``uncover`` has found escapes in to ``data``, and names them there. One
    with a code above 127, or 0, gets the length -1."""
    to = 0
    base = where_bytes(data)
    for i in range(len(which)):
        if which[i] != 1:
            continue
        at, stop, begin = starts[i], starts[i] + lengths[i], to
        while at < stop and to >= 0:
            byte = load_byte(at)
            at += 1
            if byte == _BACKSLASH:
                byte = load_byte(at)
                at += 1
                if byte == 117:
                    byte = 0
                    for place in range(at, at + 4):
                        byte = 16 * byte + _hexadecimal(load_byte(place))
                    at += 4
                    if byte == 0 or byte > 127:
                        to = -1
                        break
                else:
                    byte = _plain(byte)
            data[to] = byte
            to += 1
        starts[i] = base + begin
        lengths[i] = to - begin if to >= 0 else -1
        to = max(to, begin)


@kernel
def _size(byte: int) -> int:
    """How many bytes a byte takes in a string."""
    if byte >= 32:
        return 2 if byte in (_QUOTE, _BACKSLASH) else 1
    return 2 if byte in (8, 9, 10, 12, 13) else 6


@kernel
def quoted_sizes(starts: Words, lengths: Words, out: Words) -> None:
    """How many bytes each text takes as a JSON string, quotes included."""
    for i in range(len(out)):
        at, stop, size = starts[i], starts[i] + lengths[i], 2
        while at < stop:
            if at + 8 <= stop and not _escaped(load_word(at)):
                at += 8
                size += 8
            else:
                size += _size(load_byte(at))
                at += 1
        out[i] = size


@kernel
def _digit(value: int) -> int:
    return value + 48 if value < 10 else value + 87


@kernel
def quote(starts: Words, lengths: Words, offsets: Words, data: Bytes) -> None:
    """Writes each text as a JSON string to its offset."""
    base = where_bytes(data)
    for i in range(len(starts)):
        to = offsets[i]
        data[to] = _QUOTE
        to += 1
        if offsets[i + 1] - offsets[i] == lengths[i] + 2:
            copy_bytes(base + to, starts[i], lengths[i])
            to += lengths[i]
        else:
            for at in range(starts[i], starts[i] + lengths[i]):
                byte = load_byte(at)
                size = _size(byte)
                if size == 1:
                    data[to] = byte
                    to += 1
                    continue
                data[to] = _BACKSLASH
                if size == 2:
                    data[to + 1] = _letter(byte)
                else:
                    data[to + 1], data[to + 2], data[to + 3] = 117, 48, 48
                    data[to + 4], data[to + 5] = _digit(byte >> 4), _digit(byte & 15)
                to += size
        data[to] = _QUOTE


@kernel
def _letter(byte: int) -> int:
    """What stands behind the backslash of an escape of two bytes."""
    if byte == 10:
        return 110
    if byte == 9:
        return 116
    if byte == 13:
        return 114
    if byte == 8:
        return 98
    return 102 if byte == 12 else byte
