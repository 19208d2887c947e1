"""Vector forms of functions of numerics whose words hold them. Others, and what fails, are left to the functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ivm.rows import Mask, Words, plain
from planner.expr.functions.table import CallSite, Made, VectorForm
from storage.text_columns import interned, of_parts
from storage.types.numeric import INLINE_LIMIT, INLINE_SCALE, POWERS, aligned, inline_parts, inline_words

_MOST_SCALE = 1000


def _parts(words: Words) -> tuple[Words, Words, Mask]:
    """(mantissas, scales, which are ids); an id's are 1 and 0."""
    mantissas, scales = inline_parts(words)
    wide = (words & 1) != 0
    if np.count_nonzero(wide):
        mantissas, scales = np.where(wide, 1, mantissas), np.where(wide, 0, scales)
    return mantissas, scales, wide


def _checked(mantissas: Words, scales: Words | int, rest: Mask) -> Made:
    """Results, which are in range of a word; those that a numeric's word does not hold are left."""
    far = (mantissas >= INLINE_LIMIT) | (mantissas < -INLINE_LIMIT) | (np.asarray(scales) > INLINE_SCALE)
    return Made(inline_words(mantissas, scales), None, rest | far)


def _leading(mantissas: Words, scales: Words) -> tuple[Words, Words]:
    """``division._leading`` of each."""
    size = np.abs(mantissas)
    digits = np.searchsorted(POWERS, size, side="right")
    weight = (digits - 1 - scales) // 4
    wanted = digits - scales - 4 * weight
    more = np.maximum(wanted - digits, 0)
    first = size // POWERS[np.maximum(digits - wanted, 0)] * POWERS[more]
    zero = size == 0
    return np.where(zero, 0, weight), np.where(zero, 0, first)


def divided(site: CallSite, left: Words, right: Words) -> Made:
    """``/``: its scale as PostgreSQL's ``select_div_scale`` has it."""
    from ivm.kernels import decimals

    (m1, s1, far), (m2, s2, wide) = _parts(left), _parts(right)
    (weight1, first1), (weight2, first2) = _leading(m1, s1), _leading(m2, s2)
    weight = weight1 - weight2 - (first1 <= first2)
    scales = np.minimum(np.maximum.reduce([16 - weight * 4, s1, s2]), _MOST_SCALE)
    places = scales + s2 - s1
    rest = far | wide | (m2 == 0) | (places > decimals.MOST_PLACES)
    if np.count_nonzero(rest):
        m1, m2 = np.where(rest, 0, m1), np.where(rest, 1, m2)
        places, scales = np.where(rest, 0, places), np.where(rest, 0, scales)
    count = len(left)
    data, words = np.zeros(count * decimals.QUOTIENT_ROOM, np.uint8), np.zeros(count, np.int64)
    starts, lengths = np.zeros(count, np.int64), np.zeros(count, np.int64)
    m1, m2, places, given = map(plain, (m1, m2, places, scales))
    decimals.divide(m1, m2, places, given, data, words, starts, lengths)
    texts = np.flatnonzero(lengths)
    if len(texts):
        words[texts] = interned(site.context.dictionary, of_parts(data, starts, lengths).rows(texts))
    return Made(words, None, rest)


def remainder(_site: CallSite, left: Words, right: Words) -> Made:
    (m1, s1, far), (m2, s2, wide) = _parts(left), _parts(right)
    scales = np.maximum(s1, s2)
    (m1, lost1), (m2, lost2) = aligned(m1, scales - s1), aligned(m2, scales - s2)
    rest = far | wide | lost1 | lost2 | (m2 == 0)
    return _checked(np.fmod(m1, np.where(rest, 1, m2)), scales, rest)


def cut(half: bool) -> VectorForm:
    """round (half away from zero) and trunc."""

    def form(_site: CallSite, words: Words, digits: Words | None = None) -> Made:
        mantissas, scales, rest = _parts(words)
        wanted = np.zeros(len(words), np.int64) if digits is None else digits
        dropped = scales - wanted  # digits; fewer than none where zeros are to come
        rest = rest | (np.abs(dropped) > 17) | (wanted < -17)
        unit = POWERS[np.where(rest, 0, np.maximum(dropped, 0))]
        up: Words = unit // 2 if half else 0 * unit
        size: Words = (np.abs(mantissas) + up) // unit
        # zeros after the point, or before it in the place of the digits that are gone
        zeros = np.where(dropped < 0, np.minimum(-dropped, wanted), np.maximum(-wanted, 0))
        places: Words = np.where(rest, 0, np.maximum(zeros, 0))
        grown, lost = aligned(size, places)
        return _checked(np.where(mantissas < 0, -grown, grown), np.maximum(wanted, 0), rest | lost)

    return form


def whole(change: Callable[[Words, Words], Words]) -> VectorForm:
    """floor and ceil: ``change`` of mantissas and the units that they count."""

    def form(_site: CallSite, words: Words) -> Made:
        mantissas, scales, rest = _parts(words)
        rest = rest | (scales > 18)
        return _checked(change(mantissas, POWERS[np.where(rest, 0, scales)]), 0, rest)

    return form
