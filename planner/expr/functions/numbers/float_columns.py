"""Vector forms of functions of floats. What fails, or might, is left to the functions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ivm.rows import Mask, Words, plain
from ivm.words import NUMERIC, Kind
from planner.expr.functions.table import CallSite, Made, VectorForm
from storage.text_columns import decimals
from storage.types.codec import float_to_word, word_to_float
from storage.types.float_columns import float_texts
from storage.types.numeric import INLINE_LIMIT, POWERS, inline_words

Floats = NDArray[np.float64]


def square_root(_site: CallSite, words: Words) -> Made:
    values = word_to_float(plain(words))
    rest: Mask = values < 0
    return Made(float_to_word(np.sqrt(np.where(rest, 0.0, values))), None, rest)


def by_library(function: Callable[[float], float], covers: Callable[[Floats], Mask]) -> VectorForm:
    """A function of the C library, which numpy's own may differ from in the last bit, where it is known not to fail."""

    def form(_site: CallSite, words: Words) -> Made:
        values = word_to_float(plain(words))
        rest = ~covers(values)
        found = np.array(list(map(function, np.where(rest, 1.0, values).tolist())))
        return Made(float_to_word(found), None, rest)

    return form


def power(_site: CallSite, left: Words, right: Words) -> Made | None:
    bases, exponents = word_to_float(plain(left)), word_to_float(plain(right))
    rest = ~(np.isfinite(bases) & np.isfinite(exponents)) | ((bases == 0) & (exponents < 0))
    rest |= (bases < 0) & (exponents != np.floor(exponents))
    given = np.where(rest, 1.0, bases).tolist(), np.where(rest, 1.0, exponents).tolist()
    try:
        found = np.array(list(map(math.pow, *given)))
    except OverflowError:
        return None
    return Made(float_to_word(found), None, rest | ((found == 0) & (bases != 0)))


def to_numeric(site: CallSite, words: Words) -> Made | None:
    """A cast: the digits that the type guarantees.

    They are the shortest ones that read as the number, or these rounded, unless what is lost is half a unit of the last
    digit: no shorter number, and none as short that is nearer, lies between the number and the shortest digits.
    """
    if site.result != NUMERIC:
        return None
    narrow = site.args[0].kind is Kind.FLOAT4
    texts, rest = float_texts(word_to_float(plain(words)), narrow)
    mantissas, scales = decimals(texts)
    size = np.abs(mantissas)
    dropped = np.maximum(np.searchsorted(POWERS, size, side="right") - (6 if narrow else 15), 0)
    unit = POWERS[dropped]
    rest = rest | (scales < dropped) | ((dropped > 0) & (2 * (size % unit) == unit))
    size, scales = (size + unit // 2) // unit, scales - dropped
    while np.count_nonzero(longer := (scales > 0) & (size % 10 == 0)):
        size, scales = np.where(longer, size // 10, size), scales - longer
    rest |= size >= INLINE_LIMIT
    return Made(inline_words(np.where(mantissas < 0, -size, size), np.maximum(scales, 0)), None, rest)
