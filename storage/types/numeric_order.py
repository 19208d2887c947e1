"""The order of wide numerics by columns: as ``storage.types.order.numeric_parts``, from their texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from ivm.rows import Bytes, Mask, Words
from storage.dictionary import Dictionary
from storage.types.numeric import INLINE_SCALE, inline_parts, is_interned
from storage.types.order import NOTHING

LONGEST: Final = 48
"""The most bytes of a text that are laid out side by side with others; what is longer is left to the value form."""
_MANTISSA_DIGITS: Final = 18
_AT_ONCE: Final = 2048
"""So many rows' arrays fit into a processor's cache."""
_ZERO: Final = ord("0")
_BIAS: Final = 1 << 31


class Digits(NamedTuple):
    """Decimal texts taken apart. ``digits``: ASCII uint8[n, width], from the first that is not 0 on, followed by zeros;
    ``many``: how many there are up to the last that is not 0; ``exponent``: of the first one."""

    digits: Bytes
    many: Words
    exponent: Words
    negative: Mask


class Texts:
    """The texts of numerics. ``rows``: those taken here; ``left``: NaN, infinities and long texts."""

    def __init__(self, words: Words, dictionary: Dictionary) -> None:
        self._words, self._dictionary = words, dictionary
        interned = is_interned(words)
        wide = np.flatnonzero(interned)
        self._data, offsets = dictionary.arena.packed(words[wide])
        last = self._data[offsets[1:] - 1]  # the first byte may be a sign, also that of an infinity
        fits = (np.diff(offsets) <= LONGEST) & (last >= _ZERO) & (last <= ord("9"))
        self._begins, self._lengths = offsets[:-1][fits], np.diff(offsets)[fits]
        self.rows, self.left = np.concatenate([wide[fits], np.flatnonzero(~interned)]), wide[~fits]

    def nearest(self) -> Any:
        """The floats nearest to the ``rows``, float64[n]."""
        return np.concatenate([np.zeros(0), *(_floats(texts) for texts in self._portions())])

    def keys(self) -> Words:
        """For the ``rows``, the ids of the bytes that order those of one nearest float."""
        parts = (
            _keys(_digits(texts), _digits(_shortest(_floats(texts))), self._dictionary) for texts in self._portions()
        )
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def _portions(self) -> Iterator[Bytes]:
        wide = len(self._begins)
        for i in range(0, wide, _AT_ONCE):
            yield _matrix(self._data, self._begins[i : i + _AT_ONCE], self._lengths[i : i + _AT_ONCE])
        for i in range(wide, len(self.rows), _AT_ONCE):
            yield _inline(*inline_parts(self._words[self.rows[i : i + _AT_ONCE]]))


def _inline(mantissa: Words, scale: Words) -> Bytes:
    """The texts of inline numerics, with zeros in front."""
    width = _MANTISSA_DIGITS + INLINE_SCALE
    digits = np.zeros((len(mantissa), width), np.uint8)
    rest = np.abs(mantissa)
    for i in range(_MANTISSA_DIGITS):
        rest, digits[:, width - 1 - i] = rest // 10, rest % 10
    point = width - scale[:, None]
    places = np.arange(width + 1)
    places = np.minimum(places - (places > point), width - 1)
    texts = np.take_along_axis(digits + np.uint8(_ZERO), places, axis=1)
    np.put_along_axis(texts, point, ord("."), axis=1)
    texts[mantissa < 0, 0] = ord("-")
    return texts


def _floats(texts: Bytes) -> Any:
    return texts.view(f"S{texts.shape[1]}")[:, 0].astype(np.float64) + 0.0


def _matrix(data: Bytes, begins: Words, lengths: Words) -> Bytes:
    """Texts side by side, each followed by NULs: uint8[n, width]."""
    width = max(int(lengths.max(initial=0)), 1)
    within = np.arange(width) < lengths[:, None]
    places = np.minimum(begins[:, None] + np.arange(width), max(len(data) - 1, 0))
    return np.where(within, data[places], np.uint8(0))


def _shortest(values: Any) -> Bytes:
    """The shortest texts of floats."""
    texts: Bytes = values.astype("S32").view(np.uint8).reshape(len(values), 32)
    return texts


def _digits(texts: Bytes) -> Digits:
    """Takes texts apart: digits with at most a sign, a point and (of a float) an exponent. Changes them."""
    n, width = texts.shape
    exponent = np.zeros(n, np.int64)
    marked = texts == ord("e")
    rows = np.flatnonzero(marked.any(axis=1))
    if len(rows):
        at = marked[rows].argmax(axis=1)
        after = np.minimum(at[:, None] + np.arange(1, 6), width - 1)
        powers = np.where(at[:, None] + np.arange(1, 6) < width, texts[rows[:, None], after], np.uint8(0))
        exponent[rows] = np.ascontiguousarray(powers).view("S5")[:, 0].astype(np.int64)
        texts[rows] = np.where(np.arange(width) < at[:, None], texts[rows], np.uint8(0))
    negative: Mask = texts[:, 0] == ord("-")
    length = (texts != 0).sum(axis=1)
    points = texts == ord(".")
    point = np.where(points.any(axis=1), points.argmax(axis=1), length)
    digit = (texts > _ZERO) & (texts <= ord("9"))
    begin = digit.argmax(axis=1)
    last = width - 1 - digit[:, ::-1].argmax(axis=1)
    exponent += np.where(begin < point, point - begin - 1, point - begin)
    places = begin[:, None] + np.arange(width)
    places += (begin < point)[:, None] & (places >= point[:, None])
    inside = places <= last[:, None]
    found = np.where(inside, np.take_along_axis(texts, np.minimum(places, width - 1), axis=1), np.uint8(_ZERO))
    zero = ~digit.any(axis=1)
    found[zero] = _ZERO
    exponent[zero] = 0
    return Digits(found, np.where(zero, 0, inside.sum(axis=1)), exponent, negative & ~zero)


def _keys(values: Digits, others: Digits, dictionary: Dictionary) -> Words:
    """The ids of the bytes by which values compare with others that have the same nearest float, whose shortest text
    ``others`` are."""
    side = _compared(values, others)
    sign = np.where(values.negative, -1, 1)
    n, width = values.digits.shape
    out = np.empty((n, width + 7), np.uint8)
    out[:, 0] = np.where(side > 0, 0x81, 0x7F)
    out[:, 1] = np.where(sign > 0, 0x81, 0x7F)
    out[:, 2:6] = (values.exponent + _BIAS).astype(">u4").view(np.uint8).reshape(n, 4)
    out[:, 6:-1] = values.digits
    out[:, 2:][sign < 0] = 255 - out[:, 2:][sign < 0]
    lengths = 6 + values.many
    ends = np.flatnonzero(sign < 0)
    out[ends, lengths[ends]] = 255
    lengths = lengths + (sign < 0)
    equal = side == 0
    out[equal, : len(NOTHING)] = np.frombuffer(NOTHING, np.uint8)
    lengths[equal] = len(NOTHING)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return dictionary.arena.intern(out[np.arange(width + 7) < lengths[:, None]], offsets)


def _compared(left: Digits, right: Digits) -> Words:
    """-1, 0 or 1 for each pair of the same sign, or zero."""
    width = max(left.digits.shape[1], right.digits.shape[1])
    difference = _wide(left.digits, width) - _wide(right.digits, width)
    first = (difference != 0).argmax(axis=1)
    by_digits = np.sign(np.take_along_axis(difference, first[:, None], axis=1)[:, 0])
    size = np.where(left.exponent == right.exponent, by_digits, np.sign(left.exponent - right.exponent))
    size = np.where(left.many == 0, -(right.many > 0).astype(np.int64), np.where(right.many == 0, 1, size))
    return np.where(left.negative | right.negative, -size, size).astype(np.int64)


def _wide(digits: Bytes, width: int) -> Any:
    padded = np.full((len(digits), width), _ZERO, np.int16)
    padded[:, : digits.shape[1]] = digits
    return padded
