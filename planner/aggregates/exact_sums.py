"""Exact sums as rows (code, integer): floats split at fixed powers of 2**32, numerics per display scale.

The rows of an aggregate consolidate like any others, so a sum does not depend on the order of its input and a
retraction leaves no residue; the sum is rounded once, when read. A float limb's code is its position
(``code * 32 - bias`` is the exponent of its unit); squares have twice the exponents, hence another bias.
A numeric's code is ``scale << 16 | limb``, where limb ``COUNT`` counts the values of that scale.
NaN and the infinities are counted under separate codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ivm.rows import Words
from storage.dictionary import Dictionary
from storage.types.numeric import INLINE_SCALE, decode_numeric, mantissa_of, scale_of
from storage.types.numeric_limbs import Limbs, numeric_limbs

FLOAT_BIAS: Final = 1152
SQUARE_BIAS: Final = 2304
NAN: Final = 0x8000 << 16
INFINITY: Final = NAN + 1
NEGATIVE: Final = NAN + 2
COUNT: Final = 0xFFFF
FEW: Final = 16
"""Of up to so many numerics each is split by itself, in less time."""
_MASK: Final = np.uint64(0xFFFFFFFF)
_WIDTH: Final = np.uint64(32)

Parts = tuple[Words, Words, Words]
"""source row, code, amount; each int64[m]"""


@dataclass(frozen=True, slots=True)
class Total:
    """One group's sum: ``mantissa * base**-scale`` (base 2 for floats, 10 for numerics), or a special value."""

    mantissa: int = 0
    scale: int = 0
    special: str | None = None


def _join(parts: Sequence[Parts]) -> Parts:
    if not parts:
        none = np.zeros(0, np.int64)
        return none, none, none
    source, code, amount = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return source, code, amount


def _specials(values: NDArray[np.float64], rows: Words) -> list[Parts]:
    found: list[Parts] = []
    for mask, code in ((np.isnan(values), NAN), (values == np.inf, INFINITY), (values == -np.inf, NEGATIVE)):
        at = rows[mask]
        if len(at):
            found.append((at, np.full(len(at), code, np.int64), np.ones(len(at), np.int64)))
    return found


def _split(mantissa: NDArray[np.uint64], exponent: Words, sign: Words, rows: Words, bias: int) -> list[Parts]:
    # mantissa < 2**55, so when shifted by at most 31 bits it spans three limbs
    position = exponent + bias
    limb, shift = position >> 5, (position & 31).astype(np.uint64)
    low, high = (mantissa & _MASK) << shift, (mantissa >> _WIDTH) << shift
    pieces = (low & _MASK, (low >> _WIDTH) + (high & _MASK), high >> _WIDTH)
    found: list[Parts] = []
    for i, piece in enumerate(pieces):
        there = piece != 0
        amount = piece[there].astype(np.int64) * sign[there]
        found.append((rows[there], limb[there] + i, amount))
    return found


def _decompose(values: NDArray[np.float64]) -> tuple[NDArray[np.uint64], Words]:
    fraction, exponent = np.frexp(np.abs(values))
    return np.ldexp(fraction, 53).astype(np.uint64), exponent.astype(np.int64) - 53


def float_parts(values: NDArray[np.float64], rows: Words) -> Parts:
    """Splits doubles into limbs; zero has none."""
    finite = np.isfinite(values) & (values != 0)
    mantissa, exponent = _decompose(values[finite])
    sign = np.where(values[finite] < 0, np.int64(-1), np.int64(1))
    return _join(_specials(values, rows) + _split(mantissa, exponent, sign, rows[finite], FLOAT_BIAS))


def square_parts(values: NDArray[np.float64], rows: Words) -> Parts:
    """Splits the exact squares of doubles into limbs; NaN and the infinities are counted, not squared."""
    return product_parts(values, values, rows)


def product_parts(values: NDArray[np.float64], others: NDArray[np.float64], rows: Words) -> Parts:
    """Splits the exact products of two columns into limbs; factors that are not finite are counted."""
    there = np.isfinite(values) & np.isfinite(others)
    found = _specials(np.where(np.isfinite(values), others, values)[~there], rows[~there])
    there &= (values != 0) & (others != 0)
    mantissa, exponent = _decompose(values[there])
    factor, power = _decompose(others[there])
    half, below = np.uint64(27), np.uint64(2**27 - 1)
    low, high = mantissa & below, mantissa >> half
    times_low, times_high = factor & below, factor >> half
    at = rows[there]
    sign = np.where((values[there] < 0) == (others[there] < 0), np.int64(1), np.int64(-1))
    middle = low * times_high + high * times_low
    for product, shift in ((low * times_low, 0), (middle, 27), (high * times_high, 54)):
        found += _split(product, exponent + power + shift, sign, at, SQUARE_BIAS)
    return _join(found)


def bit_parts(words: Words, rows: Words, width: int) -> Parts:
    """The set bits among the ``width`` lowest of each word; a bit's code is its number."""
    at, bits = np.nonzero((words[:, None] >> np.arange(width)) & 1)
    return rows[at], bits.astype(np.int64), np.ones(len(at), np.int64)


def numeric_parts(words: Words, rows: Words, dictionary: Dictionary, squared: bool) -> Parts:
    """Splits numerics (or their squares) into limbs and a count per scale."""
    found: list[Parts] = []
    slow = np.arange(len(words))
    if len(words) > FEW:
        parts, slow = numeric_limbs(words, dictionary)
        for part in parts:
            found += _limb_parts(part.squared() if squared else part, rows)
    for i in slow.tolist():
        word = int(words[i])
        found.append(_one_numeric(int(rows[i]), decode_numeric(word, dictionary) if word & 1 else None, word, squared))
    return _join(found)


def _limb_parts(part: Limbs, rows: Words) -> list[Parts]:
    base, sign, at = part.scale << 16, np.where(part.negative, np.int64(-1), np.int64(1)), rows[part.rows]
    found: list[Parts] = [(at, base | COUNT, np.ones(len(at), np.int64))]
    for i, amount in enumerate(part.limbs):
        there = amount != 0
        found.append((at[there], base[there] | i, amount[there].astype(np.int64) * sign[there]))
    return found


def _one_numeric(row: int, value: Decimal | None, word: int, squared: bool) -> Parts:
    if value is not None and not value.is_finite():
        code = NAN if value.is_nan() else (NEGATIVE if value < 0 else INFINITY)
        codes, amounts = [code], [1]
    else:
        scale = scale_of(value) if value is not None else (word >> 1) & INLINE_SCALE
        mantissa = mantissa_of(value, scale) if value is not None else word >> 6
        if squared:
            mantissa, scale = mantissa * mantissa, scale * 2
        sign, rest, limb = (-1 if mantissa < 0 else 1), abs(mantissa), 0
        codes, amounts = [scale << 16 | COUNT], [1]
        while rest:
            codes.append(scale << 16 | limb)
            amounts.append(sign * (rest & 0xFFFFFFFF))
            rest >>= 32
            limb += 1
    return np.full(len(codes), row, np.int64), np.array(codes, np.int64), np.array(amounts, np.int64)


def _special_of(amounts: dict[int, int]) -> str | None:
    above, below = amounts.get(INFINITY, 0) > 0, amounts.get(NEGATIVE, 0) > 0
    if amounts.get(NAN, 0) > 0 or (above and below):
        return "NaN"
    if above or below:
        return "Infinity" if above else "-Infinity"
    return None


def float_total(amounts: dict[int, int], bias: int) -> Total:
    """The total of a group's limbs, ``mantissa * 2**-scale``."""
    special = _special_of(amounts)
    limbs = {code: amount for code, amount in amounts.items() if code < NAN}
    if special or not limbs:
        return Total(special=special)
    least = min(limbs)
    mantissa = sum(amount << (32 * (code - least)) for code, amount in limbs.items())
    return Total(mantissa, bias - 32 * least)


def numeric_total(amounts: dict[int, int]) -> Total:
    """The total of a group's numerics, with the largest display scale among the present values."""
    special = _special_of(amounts)
    if special:
        return Total(special=special)
    scale = max((code >> 16 for code, n in amounts.items() if code & COUNT == COUNT and n > 0), default=0)
    scale = max([scale, *(code >> 16 for code in amounts if code < NAN and code & COUNT != COUNT)])
    mantissa = 0
    for code, amount in amounts.items():
        if code < NAN and code & COUNT != COUNT:
            mantissa += (amount << (32 * (code & COUNT))) * int(10 ** (scale - (code >> 16)))
    return Total(mantissa, scale)
