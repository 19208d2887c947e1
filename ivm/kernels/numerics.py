"""Arithmetic of numerics of any length, as PostgreSQL's numeric.c has it: limbs of nine digits, least first.

A numeric is a word of mantissa and scale or the id of a text (``storage.types.numeric``), whose address and length
stand beside it. A number lies in ``scratch``: how many limbs, its scale, whether it is negative, then the limbs, of
which the last is not 0. What has more than ``MOST_DIGITS`` digits or is not finite is left: a length of -1 says so.
"""

from __future__ import annotations

from typing import Final

from ivm.kernels.cache import kernel
from ivm.kernels.memory import load_byte
from ivm.kernels.numeric_codes import ABSOLUTE, ADD, CEILING, DIVIDE, FLOOR, MULTIPLY, NEGATE, ROUND, SUBTRACT
from ivm.rows import Bytes, Words

MOST_DIGITS: Final = 144
"""Of an argument, and of its scale."""
TEXT_ROOM: Final = 336
"""The bytes that a result takes at most: a sign, a point, the digits of ``_MOST_LIMBS``."""
_BASE: Final = 10**9
_DIGITS: Final = 9
_MOST_LIMBS: Final = 36
_MOST_SCALE: Final = 9 * _MOST_LIMBS - 4
_INLINE_MOST: Final = 1 << 57
_INLINE_SCALE: Final = 31
_SIGNIFICANT: Final = 16
_COUNT: Final = 0
_SCALE: Final = 1
_NEGATIVE: Final = 2
_LIMBS: Final = 3
_NUMBER: Final = _LIMBS + 2 * _MOST_LIMBS + 4
_POWERS: Final = 10
_LEFT: Final = _POWERS
_RIGHT: Final = _LEFT + _NUMBER
_RESULT: Final = _RIGHT + _NUMBER
SCRATCH: Final = _RESULT + _NUMBER


@kernel
def _prepare(scratch: Words) -> None:
    scratch[0] = 1
    for i in range(1, _POWERS):
        scratch[i] = 10 * scratch[i - 1]


@kernel
def _trim(scratch: Words, at: int, count: int) -> None:
    """Sets the count to that of the limbs without zeros in front."""
    while count > 0 and scratch[at + _LIMBS + count - 1] == 0:
        count -= 1
    scratch[at + _COUNT] = count


@kernel
def _read_text(address: int, length: int, scratch: Words, at: int) -> bool:
    negative = length > 0 and load_byte(address) == 45
    begin, stop, point = address + int(negative), address + length, address - 1
    for place in range(begin, stop):
        byte = load_byte(place)
        if byte == 46:
            point = place
        elif byte < 48 or byte > 57:
            return False
    scale = stop - 1 - point if point >= address else 0
    if stop - begin > MOST_DIGITS or scale > MOST_DIGITS:
        return False
    count, limb, digits = 0, 0, 0
    place = stop - 1
    while place >= begin:
        if place != point:
            limb += (load_byte(place) - 48) * scratch[digits]
            digits += 1
            if digits == _DIGITS:
                scratch[at + _LIMBS + count] = limb
                count, limb, digits = count + 1, 0, 0
        place -= 1
    scratch[at + _LIMBS + count] = limb
    scratch[at + _SCALE], scratch[at + _NEGATIVE] = scale, int(negative)
    _trim(scratch, at, count + 1)
    return True


@kernel
def _read(word: int, address: int, length: int, scratch: Words, at: int) -> bool:
    if word & 1:
        return _read_text(address, length, scratch, at)
    mantissa = word >> 6
    scratch[at + _SCALE], scratch[at + _NEGATIVE] = (word >> 1) & 31, int(mantissa < 0)
    size = abs(mantissa)
    scratch[at + _LIMBS], scratch[at + _LIMBS + 1] = size % _BASE, size // _BASE
    _trim(scratch, at, 2)
    return True


@kernel
def _digits(scratch: Words, at: int) -> int:
    """How many digits the limbs have; 0 of zero."""
    count = scratch[at + _COUNT]
    if count == 0:
        return 0
    top, digits = scratch[at + _LIMBS + count - 1], 1
    while digits < _DIGITS and top >= scratch[digits]:
        digits += 1
    return int((count - 1) * _DIGITS + digits)


@kernel
def _append_zeros(scratch: Words, at: int, zeros: int) -> bool:
    """Multiplies by a power of ten; false if the number gets too long."""
    count, whole, factor = scratch[at + _COUNT], zeros // _DIGITS, scratch[zeros % _DIGITS]
    if count == 0 or zeros == 0:
        return True
    if count + whole + 1 > _MOST_LIMBS:
        return False
    carry = 0
    for i in range(at + _LIMBS, at + _LIMBS + count):
        product = scratch[i] * factor + carry
        carry = product // _BASE
        scratch[i] = product - carry * _BASE
    scratch[at + _LIMBS + count] = carry
    if whole > 0:
        for i in range(at + _LIMBS + count, at + _LIMBS - 1, -1):
            scratch[i + whole] = scratch[i]
        for i in range(at + _LIMBS, at + _LIMBS + whole):
            scratch[i] = 0
    _trim(scratch, at, count + whole + 1)
    return True


@kernel
def _add_one(scratch: Words, at: int) -> None:
    i, stop = at + _LIMBS, at + _LIMBS + scratch[at + _COUNT]
    while i < stop and scratch[i] == _BASE - 1:
        scratch[i] = 0
        i += 1
    if i < stop:
        scratch[i] += 1
    else:
        scratch[i] = 1
        scratch[at + _COUNT] += 1


@kernel
def _align(scratch: Words) -> bool:
    """Gives both arguments the greater scale."""
    left, right = scratch[_LEFT + _SCALE], scratch[_RIGHT + _SCALE]
    scratch[_LEFT + _SCALE] = scratch[_RIGHT + _SCALE] = max(left, right)
    if left < right:
        return _append_zeros(scratch, _LEFT, right - left)
    return _append_zeros(scratch, _RIGHT, left - right)


@kernel
def _is_less(scratch: Words, one: int, other: int) -> bool:
    """Whether a number's limbs are less than another's."""
    count = scratch[one + _COUNT]
    if count != scratch[other + _COUNT]:
        return bool(count < scratch[other + _COUNT])
    for i in range(count - 1, -1, -1):
        difference = scratch[one + _LIMBS + i] - scratch[other + _LIMBS + i]
        if difference != 0:
            return bool(difference < 0)
    return False


@kernel
def _add(scratch: Words, sign: int) -> bool:
    if not _align(scratch):
        return False
    negative = scratch[_RIGHT + _NEGATIVE] if sign > 0 else 1 - scratch[_RIGHT + _NEGATIVE]
    larger, smaller, step = _LEFT, _RIGHT, 1
    scratch[_RESULT + _NEGATIVE] = scratch[_LEFT + _NEGATIVE]
    if _is_less(scratch, _LEFT, _RIGHT):
        larger, smaller = _RIGHT, _LEFT
        scratch[_RESULT + _NEGATIVE] = negative
    if scratch[_LEFT + _NEGATIVE] != negative:
        step = -1
    count, fewer, carry = scratch[larger + _COUNT], scratch[smaller + _COUNT], 0
    for i in range(_LIMBS, _LIMBS + count):
        limb = scratch[larger + i] + carry
        if i < _LIMBS + fewer:
            limb += step * scratch[smaller + i]
        carry = 1 if limb >= _BASE else -1 if limb < 0 else 0
        scratch[_RESULT + i] = limb - carry * _BASE
    scratch[_RESULT + _LIMBS + count] = carry
    scratch[_RESULT + _SCALE] = scratch[_LEFT + _SCALE]
    _trim(scratch, _RESULT, count + 1)
    return True


@kernel
def _multiply(scratch: Words) -> bool:
    many, others = scratch[_LEFT + _COUNT], scratch[_RIGHT + _COUNT]
    for i in range(many + others):
        scratch[_RESULT + _LIMBS + i] = 0
    for i in range(many):
        factor, carry = scratch[_LEFT + _LIMBS + i], 0
        to = _RESULT + _LIMBS + i
        for j in range(others):
            limb = factor * scratch[_RIGHT + _LIMBS + j] + scratch[to + j] + carry
            carry = limb // _BASE
            scratch[to + j] = limb - carry * _BASE
        scratch[to + others] = carry
    scratch[_RESULT + _SCALE] = scratch[_LEFT + _SCALE] + scratch[_RIGHT + _SCALE]
    scratch[_RESULT + _NEGATIVE] = scratch[_LEFT + _NEGATIVE] ^ scratch[_RIGHT + _NEGATIVE]
    _trim(scratch, _RESULT, many + others)
    return bool(scratch[_RESULT + _SCALE] <= _MOST_SCALE)


@kernel
def _scaled(scratch: Words, at: int, count: int, factor: int) -> int:
    """Multiplies limbs by a small number; returns what does not fit in them."""
    carry = 0
    for i in range(at, at + count):
        product = scratch[i] * factor + carry
        carry = product // _BASE
        scratch[i] = product - carry * _BASE
    return carry


@kernel
def _divided(scratch: Words, at: int, divisor: int) -> int:
    """Divides a number by one of a single limb; returns the rest."""
    rest, count = 0, scratch[at + _COUNT]
    for i in range(at + _LIMBS + count - 1, at + _LIMBS - 1, -1):
        dividend = rest * _BASE + scratch[i]
        scratch[i] = dividend // divisor
        rest = dividend - scratch[i] * divisor
    _trim(scratch, at, count)
    return rest


@kernel
def _guess(scratch: Words, top: int, divisor: int, many: int) -> int:
    """A limb of a quotient, at most 1 too great (Knuth, The Art of Computer Programming 2, 4.3.1, D3). ``top``: the
    place of the dividend's limb above the divisor's first one, which is at least half of the base; ``many``: limbs of
    the divisor."""
    first, second = scratch[divisor + many - 1], scratch[divisor + many - 2]
    dividend = scratch[top] * _BASE + scratch[top - 1]
    found = dividend // first
    rest = dividend - found * first
    while found >= _BASE or found * second > rest * _BASE + scratch[top - 2]:
        found -= 1
        rest += first
        if rest >= _BASE:
            break
    return int(found)


@kernel
def _take(scratch: Words, at: int, divisor: int, many: int, factor: int) -> bool:
    """Subtracts ``factor`` times the divisor's limbs from limbs; whether it was once too often, which is undone."""
    borrow = 0
    for i in range(many):
        limb = scratch[at + i] - factor * scratch[divisor + i] + borrow
        borrow = limb // _BASE
        scratch[at + i] = limb - borrow * _BASE
    scratch[at + many] += borrow
    if scratch[at + many] >= 0:
        return False
    carry = 0
    for i in range(many):
        limb = scratch[at + i] + scratch[divisor + i] + carry
        carry = 1 if limb >= _BASE else 0
        scratch[at + i] = limb - carry * _BASE
    scratch[at + many] += carry
    return True


@kernel
def _quotient(scratch: Words) -> bool:
    """The whole quotient of the arguments' limbs into the result; of the left one the rest remains, times what the
    right one was multiplied by, too. Returns whether twice the rest is at least the divisor."""
    count, many = scratch[_LEFT + _COUNT], scratch[_RIGHT + _COUNT]
    scratch[_RESULT + _COUNT] = 0
    if many == 1:
        for i in range(count):
            scratch[_RESULT + _LIMBS + i] = scratch[_LEFT + _LIMBS + i]
        scratch[_RESULT + _COUNT] = count
        divisor = scratch[_RIGHT + _LIMBS]
        rest = _divided(scratch, _RESULT, divisor)
        scratch[_LEFT + _LIMBS] = rest
        _trim(scratch, _LEFT, 1)
        return bool(2 * rest >= divisor)
    if count >= many:
        factor = _BASE // (scratch[_RIGHT + _LIMBS + many - 1] + 1)
        scratch[_LEFT + _LIMBS + count] = _scaled(scratch, _LEFT + _LIMBS, count, factor)
        _scaled(scratch, _RIGHT + _LIMBS, many, factor)
        for place in range(count - many, -1, -1):
            at = _LEFT + _LIMBS + place
            found = _guess(scratch, at + many, _RIGHT + _LIMBS, many)
            if _take(scratch, at, _RIGHT + _LIMBS, many, found):
                found -= 1
            scratch[_RESULT + _LIMBS + place] = found
        _trim(scratch, _RESULT, count - many + 1)
        _trim(scratch, _LEFT, many)
        scratch[_RIGHT + _SCALE] = factor
    else:
        scratch[_RIGHT + _SCALE] = 1
    for i in range(scratch[_LEFT + _COUNT], many):
        scratch[_LEFT + _LIMBS + i] = 0
    return _is_half(scratch, many)


@kernel
def _is_half(scratch: Words, many: int) -> bool:
    """Whether twice the left argument's limbs, as many as the right one's, are at least those."""
    carry = 0
    for i in range(many - 1, -1, -1):
        difference = carry * _BASE + 2 * scratch[_LEFT + _LIMBS + i] - scratch[_RIGHT + _LIMBS + i]
        if difference > 0:
            return True
        if difference < -1:
            return False
        carry = difference
    return carry == 0


@kernel
def _weight(scratch: Words, at: int) -> int:
    """The weight of the first digit in base 10000."""
    digits = _digits(scratch, at)
    return (digits - 1 - scratch[at + _SCALE]) // 4 if digits > 0 else 0


@kernel
def _first(scratch: Words, at: int) -> int:
    """The first digit in base 10000."""
    digits = _digits(scratch, at)
    if digits == 0:
        return 0
    adjusted = digits - 1 - scratch[at + _SCALE]
    wanted, last = adjusted - 4 * (adjusted // 4) + 1, at + _LIMBS + scratch[at + _COUNT] - 1
    above = (digits - 1) % _DIGITS + 1  # digits of the last limb
    if above >= wanted:
        return int(scratch[last] // scratch[above - wanted])
    below = scratch[last - 1] // scratch[_DIGITS - wanted + above] if digits > _DIGITS else 0
    return int(scratch[last] * scratch[wanted - above] + below)


@kernel
def _divide(scratch: Words) -> bool:
    weight = _weight(scratch, _LEFT) - _weight(scratch, _RIGHT)
    weight -= int(_first(scratch, _LEFT) <= _first(scratch, _RIGHT))
    left, right = scratch[_LEFT + _SCALE], scratch[_RIGHT + _SCALE]
    scale = max(_SIGNIFICANT - 4 * weight, left, right, 0)
    if scratch[_RIGHT + _COUNT] == 0 or scale > _MOST_SCALE or not _append_zeros(scratch, _LEFT, scale + right - left):
        return False
    scratch[_RESULT + _NEGATIVE] = scratch[_LEFT + _NEGATIVE] ^ scratch[_RIGHT + _NEGATIVE]
    scratch[_RESULT + _SCALE] = scale
    if _quotient(scratch):
        _add_one(scratch, _RESULT)
    return True


@kernel
def _modulo(scratch: Words) -> bool:
    if scratch[_RIGHT + _COUNT] == 0 or not _align(scratch):
        return False
    scale, several = scratch[_LEFT + _SCALE], scratch[_RIGHT + _COUNT] > 1
    _quotient(scratch)
    if several:
        _trim(scratch, _LEFT, scratch[_RIGHT + _COUNT])
        _divided(scratch, _LEFT, scratch[_RIGHT + _SCALE])
    for i in range(scratch[_LEFT + _COUNT]):
        scratch[_RESULT + _LIMBS + i] = scratch[_LEFT + _LIMBS + i]
    scratch[_RESULT + _COUNT], scratch[_RESULT + _SCALE] = scratch[_LEFT + _COUNT], scale
    scratch[_RESULT + _NEGATIVE] = scratch[_LEFT + _NEGATIVE]
    return True


@kernel
def _drop(scratch: Words, at: int, digits: int, how: int) -> None:
    """Takes digits, at least one, from a number's end, rounding it."""
    whole, part, count = (digits - 1) // _DIGITS, (digits - 1) % _DIGITS, scratch[at + _COUNT]
    lost = 0
    if whole >= count:
        lost = int(count > 0)
        scratch[at + _COUNT] = last = 0
    else:
        for i in range(at + _LIMBS, at + _LIMBS + whole):
            lost |= scratch[i]
        for i in range(at + _LIMBS + whole, at + _LIMBS + count):
            scratch[i - whole] = scratch[i]
        scratch[at + _COUNT] = count - whole
        lost |= _divided(scratch, at, scratch[part])
        last = _divided(scratch, at, 10)
    negative = scratch[at + _NEGATIVE] != 0
    inexact = lost != 0 or last != 0
    if (
        (how == ROUND and last >= 5)
        or (how == FLOOR and negative and inexact)
        or (how == CEILING and not negative and inexact)
    ):
        _add_one(scratch, at)


@kernel
def _cut(scratch: Words, places: int, how: int) -> bool:
    """The left argument with so many digits behind the point, fewer than none before it."""
    at, scale = _LEFT, scratch[_LEFT + _SCALE]
    if places > MOST_DIGITS:
        return False
    if places >= scale:
        scratch[at + _SCALE] = places
        return _append_zeros(scratch, at, places - scale)
    places = max(places, -2 * MOST_DIGITS)
    _drop(scratch, at, scale - places, how)
    scratch[at + _SCALE] = max(places, 0)
    return _append_zeros(scratch, at, max(-places, 0))


@kernel
def _write_text(scratch: Words, at: int, data: Bytes, to: int) -> int:
    """Writes a number as PostgreSQL prints it. Returns how many bytes it takes."""
    scale = scratch[at + _SCALE]
    digits = max(_digits(scratch, at), scale + 1)
    negative = int(scratch[at + _NEGATIVE] != 0 and scratch[at + _COUNT] > 0)
    length = negative + digits + int(scale > 0)
    if negative:
        data[to] = 45
    place, limb = to + length - 1, 0
    for i in range(digits):
        if i % _DIGITS == 0:
            which = i // _DIGITS
            limb = scratch[at + _LIMBS + which] if which < scratch[at + _COUNT] else 0
        if i == scale and scale > 0:
            data[place] = 46
            place -= 1
        data[place] = 48 + limb % 10
        limb //= 10
        place -= 1
    return int(length)


@kernel
def _write(scratch: Words, at: int, row: int, data: Bytes, to: int, words: Words, lengths: Words) -> int:
    """A row's result: a word, then its length is 0, or a text. Returns where the next text goes."""
    count, lengths[row] = scratch[at + _COUNT], 0
    if count <= 2 and scratch[at + _SCALE] <= _INLINE_SCALE:
        mantissa = 0
        for i in range(count - 1, -1, -1):
            mantissa = mantissa * _BASE + scratch[at + _LIMBS + i]
        if scratch[at + _NEGATIVE] != 0:
            mantissa = -mantissa
        if -_INLINE_MOST <= mantissa < _INLINE_MOST:
            words[row] = mantissa * 64 + scratch[at + _SCALE] * 2
            return to
    lengths[row] = _write_text(scratch, at, data, to)
    return int(to + lengths[row])


@kernel
def compute(
    operation: int, left: Words, left_starts: Words, left_lengths: Words, right: Words, right_starts: Words,
    right_lengths: Words, scratch: Words, data: Bytes, words: Words, starts: Words, lengths: Words,
) -> None:  # fmt: skip
    """Sums, differences, products, quotients or remainders. ``data`` is uint8[n * TEXT_ROOM], ``scratch``
    int64[SCRATCH]. A row's result is a word if ``lengths`` is 0, else a text of so many bytes from ``starts`` on in
    ``data``; -1: it is left."""
    _prepare(scratch)
    to = 0
    for i in range(len(left)):
        starts[i], lengths[i], words[i] = to, -1, 0
        if not _read(left[i], left_starts[i], left_lengths[i], scratch, _LEFT):
            continue
        if not _read(right[i], right_starts[i], right_lengths[i], scratch, _RIGHT):
            continue
        if operation in (ADD, SUBTRACT):
            fine = _add(scratch, 1 if operation == ADD else -1)
        elif operation == MULTIPLY:
            fine = _multiply(scratch)
        elif operation == DIVIDE:
            fine = _divide(scratch)
        else:
            fine = _modulo(scratch)
        if fine:
            to = _write(scratch, _RESULT, i, data, to, words, lengths)


@kernel
def change(
    how: int, left: Words, left_starts: Words, left_lengths: Words, places: Words, scratch: Words, data: Bytes,
    words: Words, starts: Words, lengths: Words,
) -> None:  # fmt: skip
    """Rounded numerics, or those with the other sign or none; the rest as of ``compute``. ``places``: digits that
    remain behind the point."""
    _prepare(scratch)
    to = 0
    for i in range(len(left)):
        starts[i], lengths[i], words[i] = to, -1, 0
        if not _read(left[i], left_starts[i], left_lengths[i], scratch, _LEFT):
            continue
        if how in (NEGATE, ABSOLUTE):
            scratch[_LEFT + _NEGATIVE] = 1 - scratch[_LEFT + _NEGATIVE] if how == NEGATE else 0
        elif not _cut(scratch, places[i], how):
            continue
        to = _write(scratch, _LEFT, i, data, to, words, lengths)
