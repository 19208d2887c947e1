"""Numeric values ↔ words. ``ivm.words`` describes the tagged layout; this module decides which value takes which form.

A numeric's identity is its value with its display scale, and each identity has exactly one word: inline if ``0 <= scale
<= 31`` and ``-2**57 <= mantissa < 2**57``, otherwise the id of its text as Postgres prints it (``NaN``, ``Infinity``,
``-Infinity``, digits). In a DIRECT numeric(p, s), NaN is the word ``DIRECT_NAN``, which sorts last as it should;
infinities are not allowed there, as in Postgres.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

import numpy as np

from ivm.rows import Mask, Words
from ivm.words import SqlType
from storage.dictionary import Dictionary

INLINE_SCALE: Final = 31
INLINE_LIMIT: Final = 2**57
_INLINE_DIGITS: Final = 18
DIRECT_NAN: Final = 2**63 - 1
WIDE: Final = Context(prec=150_000, rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999, traps=[])
"""Enough digits that no value in Postgres's range is rounded."""
_ONE: Final = Decimal(1)
POWERS: Final = np.array([10**k for k in range(19)], np.int64)
_ALIGNED: Final = INLINE_LIMIT // POWERS[:18]
SCALE_BITS: Final = 63
"""The mask of an inline word's bits for scale and tag."""


def inline_parts(words: Words) -> tuple[Words, Words]:
    """Mantissas and scales of inline words."""
    return words >> 6, (words >> 1) & 31


def inline_words(mantissa: Words, scale: Words | int) -> Words:
    """The words of values that fit inline (not checked)."""
    return (mantissa << np.int64(6)) | (np.asarray(scale, np.int64) << np.int64(1))


def is_interned(words: Words) -> Mask:
    """Which words are dictionary ids."""
    interned: Mask = (words & 1) != 0
    return interned


def aligned(mantissa: Words, places: Words | int) -> tuple[Words, Mask]:
    """Inline mantissas with ``places`` zeros appended, and a mask of those that no longer fit inline."""
    few = np.minimum(places, 17)
    return mantissa * POWERS[few], (places > 17) | (np.abs(mantissa) > _ALIGNED[few])


def scale_of(value: Decimal) -> int:
    """The display scale of a finite value."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return max(-exponent, 0)


def mantissa_of(value: Decimal, scale: int) -> int:
    """A finite value as an integer in units of 10**-scale, truncated."""
    return int(WIDE.scaleb(value, scale))


def from_parts(mantissa: int, scale: int) -> Decimal:
    """``mantissa * 10**-scale`` with that display scale (scale >= 0)."""
    return WIDE.scaleb(Decimal(mantissa), -scale)


def encode_numeric(value: Decimal, dictionary: Dictionary) -> int:
    """The word of a value as an unconstrained numeric."""
    if value.is_finite():
        exponent = value.as_tuple().exponent
        if exponent > 0:  # type: ignore[operator]
            value = WIDE.quantize(value, _ONE)
            exponent = 0
        scale = -int(exponent)
        # making an integer of many digits is slow, so check their number first
        if scale <= INLINE_SCALE and value.adjusted() + scale < _INLINE_DIGITS:
            mantissa = mantissa_of(value, scale)
            if -INLINE_LIMIT <= mantissa < INLINE_LIMIT:
                return mantissa << 6 | scale << 1
    return dictionary.intern_one(numeric_text(value).encode())


def encode_numerics(values: Sequence[Decimal], dictionary: Dictionary) -> list[int]:
    """``encode_numeric`` of many values: the digits of a short one are read from its text, in a third of the time."""
    words = []
    for value in values:
        text = str(value)
        whole, _, rest = text.partition(".")
        try:
            short = len(text) < _INLINE_DIGITS
            word = int(whole + rest) << 6 | len(rest) << 1 if short else encode_numeric(value, dictionary)
        except ValueError:  # NaN, infinity, and an exponent
            word = encode_numeric(value, dictionary)
        words.append(word)
    return words


def decode_numeric(word: int, dictionary: Dictionary) -> Decimal:
    """The value of a word of an unconstrained numeric."""
    if word & 1:
        return Decimal(dictionary.lookup_one(word).decode())
    return WIDE.scaleb(Decimal(word >> 6), -(word >> 1 & 31))


def numeric_text(value: Decimal) -> str:
    """A value as Postgres prints it."""
    if value.is_finite():
        return f"{value.copy_abs() if value.is_zero() else value:f}"
    return "NaN" if value.is_nan() else ("-Infinity" if value < 0 else "Infinity")


def word_text(word: int, dictionary: Dictionary) -> bytes:
    """The text of an unconstrained numeric's word as Postgres prints it; interned values are stored in this form."""
    if word & 1:
        return dictionary.lookup_one(word)
    scale, mantissa = word >> 1 & 31, word >> 6
    if not scale:
        return b"%d" % mantissa
    whole, rest = divmod(abs(mantissa), 10**scale)
    return b"%s%d.%0*d" % (b"-" if mantissa < 0 else b"", whole, scale, rest)


def encode_direct(value: Decimal, type: SqlType) -> int:
    """The word of a value that fits into a DIRECT numeric(p, s)."""
    if value.is_nan():
        return DIRECT_NAN
    word = mantissa_of(value, type.scale or 0)
    assert abs(word) < 10 ** (type.precision or 0), "a numeric that does not fit its column"
    return word


def decode_direct(word: int, type: SqlType) -> Decimal:
    """The value of a word of a DIRECT numeric(p, s)."""
    if word == DIRECT_NAN:
        return Decimal("NaN")
    return from_parts(word, type.scale or 0)
