"""Numerics by columns as integers of 32-bit limbs, in units of their display scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ivm.rows import Bytes, Mask, Words
from storage.dictionary import Dictionary
from storage.types.numeric import inline_parts, is_interned
from storage.types.numeric_order import LONGEST

_CHUNK: Final = 9
_BASE: Final = np.uint64(10**_CHUNK)
_POWERS: Final = np.array([10**k for k in range(_CHUNK)], np.int64)
_MASK: Final = np.uint64(0xFFFFFFFF)
_WIDTH: Final = np.uint64(32)
_AT_ONCE: Final = 4096
"""So many rows' arrays fit into a processor's cache."""


@dataclass(frozen=True, slots=True)
class Limbs:
    """Absolute values, the least limb first, uint64[n] each below 2**32. ``rows``: their places among the words."""

    rows: Words
    limbs: list[Any]
    scale: Words
    negative: Mask

    def squared(self) -> Limbs:
        """The squares, which are not negative."""
        count = len(self.limbs)
        sums: list[Any] = [np.zeros(len(self.rows), np.uint64) for _ in range(2 * count)]
        for i, one in enumerate(self.limbs):
            for j, other in enumerate(self.limbs):
                product = one * other
                sums[i + j] += product & _MASK
                sums[i + j + 1] += product >> _WIDTH
        carry = np.zeros(len(self.rows), np.uint64)
        for i, total in enumerate(sums):
            carry += total
            sums[i], carry = carry & _MASK, carry >> _WIDTH
        return Limbs(self.rows, sums, 2 * self.scale, np.zeros(len(self.rows), np.bool_))


def numeric_limbs(words: Words, dictionary: Dictionary) -> tuple[list[Limbs], Words]:
    """The limbs of numerics, in parts; the rows that are left out: NaN, infinities and long texts."""
    interned = is_interned(words)
    inline, wide = np.flatnonzero(~interned), np.flatnonzero(interned)
    mantissa, scale = inline_parts(words[inline])
    size = np.abs(mantissa).view(np.uint64)
    found = [Limbs(inline, [size & _MASK, size >> _WIDTH], scale, mantissa < 0)]
    if not len(wide):
        return found, wide
    data, offsets = dictionary.arena.packed(words[wide])
    lengths, last = np.diff(offsets), data[offsets[1:] - 1]  # the first byte may be a sign, also of an infinity
    fits = (lengths <= LONGEST) & (last >= ord("0")) & (last <= ord("9"))
    rows, begins, lengths = wide[fits], offsets[:-1][fits], lengths[fits]
    for at in range(0, len(rows), _AT_ONCE):
        part = slice(at, at + _AT_ONCE)
        found.append(_texts(rows[part], data, begins[part], lengths[part]))
    return found, wide[~fits]


def _texts(rows: Words, data: Bytes, begins: Words, lengths: Words) -> Limbs:
    """The limbs of texts of digits, with a sign and a point or without."""
    negative = data[begins] == ord("-")
    width = int(lengths.max())
    places = np.arange(width)
    inside = places < lengths[:, None]
    points = (data[np.minimum(begins[:, None] + places, len(data) - 1)] == ord(".")) & inside
    pointed = points.any(axis=1)
    scale = np.where(pointed, lengths - 1 - points.argmax(axis=1), 0)
    count = -(-width // _CHUNK)
    fromend = np.arange(count * _CHUNK)
    skipped = pointed[:, None] & (fromend >= scale[:, None])
    sources = lengths[:, None] - 1 - fromend - skipped
    there = sources >= negative[:, None]
    digits = np.where(there, data[begins[:, None] + np.maximum(sources, 0)].astype(np.int64) - ord("0"), 0)
    chunks = (digits.reshape(len(rows), count, _CHUNK) * _POWERS).sum(axis=2).astype(np.uint64)
    limbs: list[Any] = [np.zeros(len(rows), np.uint64) for _ in range(count)]
    for k in range(count - 1, -1, -1):
        carry = chunks[:, k]
        for i in range(count):
            total = limbs[i] * _BASE + carry
            limbs[i], carry = total & _MASK, total >> _WIDTH
    return Limbs(rows, limbs, scale, negative)
