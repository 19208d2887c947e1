"""Equality classes and order of words, vectorised: the keys of GROUP BY, joins, ORDER BY, min and max.

All functions take words without NULLs, int64[n]. Results for interned values are cached in the dictionary's memos.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ivm.rows import Mask, Vector, Words
from ivm.words import Kind, SqlType, Storage
from storage.dictionary import Dictionary
from storage.types.calendar import DAY
from storage.types.codec import decode, encode, float_to_word
from storage.types.definitions import DEFINITIONS
from storage.types.numeric import POWERS, inline_parts, inline_words, is_interned
from storage.types.numeric_order import Texts
from storage.types.order import BYTE_ORDERED, NOTHING, canonical, order_parts, sort_key

_FLOATS: Final = (Kind.FLOAT4, Kind.FLOAT8)
_NEGATIVE_ZERO: Final = -1
_MEMO_LIMIT: Final = 1 << 16
_EXACT_DIGITS: Final = 10**15
_FAR: Final = 9.2e18
"""Below 2**63, by more than a double's error."""
_FEW: Final = 32
"""Of up to so many values the keys are computed one by one, and remembered."""


def comparable(type: SqlType) -> bool:
    """Whether Postgres has a default order for the type."""
    if type.element is not None:
        return comparable(type.element)
    own = DEFINITIONS.get(type.kind)
    without = type.kind in (Kind.VOID, Kind.JSON) or (own is not None and not own.compared)
    return not without and all(comparable(t) for _, t in type.fields)


def needs_order_bytes(type: SqlType) -> bool:
    """Whether values with equal ``order_prefix`` may still differ in order; ``order_bytes`` then decides."""
    return type.storage is not Storage.DIRECT


def is_its_own_order(type: SqlType) -> bool:
    """Whether values order as their words do when compared as integers."""
    return type.storage is Storage.DIRECT and not type.has_equality_class and type.kind is not Kind.NUMERIC


def equality_class(type: SqlType, words: Words, dictionary: Dictionary) -> Words:
    """The canonical word of each value's equality class, of the same type."""
    if not type.has_equality_class:
        return words
    if type.kind in _FLOATS:
        return np.where(words == _NEGATIVE_ZERO, np.int64(0), words)
    if type.storage is Storage.NUMERIC:
        return _numeric_class(type, words, dictionary)
    return _by_value("equality_class", type, words, dictionary, lambda values: _classes(type, values, dictionary))


def order_prefix(type: SqlType, words: Words, dictionary: Dictionary) -> Words:
    """A word for each value that preserves order weakly: a < b implies prefix(a) <= prefix(b)."""
    if type.storage is Storage.DIRECT:
        return equality_class(type, words, dictionary)
    if type.kind in BYTE_ORDERED:
        return dictionary.arena.prefixes(np.ascontiguousarray(words))
    if type.storage is Storage.NUMERIC:
        return _numeric_prefix(type, words, dictionary)
    if type.kind is Kind.INTERVAL and len(words) > _FEW:
        totals, far = _interval_totals(words, dictionary)
        if not np.count_nonzero(far):
            return totals
    return _by_value("order_prefix", type, words, dictionary, lambda values: _prefixes(type, values))


def order_bytes(type: SqlType, words: Words, dictionary: Dictionary) -> Words:
    """The ids of bytes that compare as the values do among those of one prefix. Interns the bytes."""
    if type.kind in BYTE_ORDERED:
        return words
    assert type.storage is not Storage.DIRECT, "a DIRECT type is ordered by its prefix"
    if type.storage is Storage.NUMERIC:
        return _numeric_bytes(type, words, dictionary)
    if type.kind is Kind.INTERVAL and len(words) > _FEW:
        _, far = _interval_totals(words, dictionary)
        if not np.count_nonzero(far):
            return np.full(len(words), dictionary.intern_one(NOTHING))
    return _by_value("order_bytes", type, words, dictionary, lambda values: _bytes(type, values, dictionary))


def compare(type: SqlType, left: Words, right: Words, dictionary: Dictionary) -> Words:
    """-1, 0 or 1 for each pair, int64[n]."""
    if type.kind in BYTE_ORDERED:
        return dictionary.arena.compare(np.ascontiguousarray(left), np.ascontiguousarray(right))
    a, b = order_prefix(type, left, dictionary), order_prefix(type, right, dictionary)
    signs = (a > b).astype(np.int64) - (a < b)
    if type.storage is Storage.DIRECT:
        return signs
    ties = np.flatnonzero((signs == 0) & (left != right))
    if len(ties):
        signs[ties] = _compare_values(type, left[ties], right[ties], dictionary)
    return signs


def equal(type: SqlType, left: Words, right: Words, dictionary: Dictionary) -> Any:
    """Whether the values of each pair are equal, bool[n]."""
    return equality_class(type, left, dictionary) == equality_class(type, right, dictionary)


def _compare_values(type: SqlType, left: Words, right: Words, dictionary: Dictionary) -> list[int]:
    pairs = zip(_sort_keys(type, left, dictionary), _sort_keys(type, right, dictionary), strict=True)
    return [(a > b) - (a < b) for a, b in pairs]


def _sort_keys(type: SqlType, words: Words, dictionary: Dictionary) -> list[bytes]:
    return [sort_key(type, v) for v in decode_words(type, words, dictionary)]


def decode_words(type: SqlType, words: Words, dictionary: Dictionary) -> list[Any]:
    """The datums of words without NULLs."""
    return decode(type, Vector(words), dictionary)


def _classes(type: SqlType, values: list[Any], dictionary: Dictionary) -> Words:
    return encode(type, [canonical(type, v) for v in values], dictionary).words


def _bytes(type: SqlType, values: list[Any], dictionary: Dictionary) -> Words:
    return dictionary.intern([order_parts(type, v)[1] for v in values])


def _prefixes(type: SqlType, values: list[Any]) -> Words:
    return np.array([order_parts(type, v)[0] for v in values], np.int64)


def _by_value(
    name: str, type: SqlType, words: Words, dictionary: Dictionary, compute: Callable[[list[Any]], Words]
) -> Words:
    """Computes once per distinct word and memoises."""
    memo: dict[int, int] = dictionary.memos.setdefault((name, type), {})
    keys: list[int] = words.tolist()
    known = [memo.get(k) for k in keys]
    if None not in known:
        return np.array(known, np.int64)
    missing = list(dict.fromkeys(k for k, v in zip(keys, known, strict=True) if v is None))
    values = decode_words(type, np.array(missing, np.int64), dictionary)
    found = dict(zip(missing, compute(values).tolist(), strict=True))
    if len(memo) + len(found) > _MEMO_LIMIT:
        memo.clear()
    if len(found) <= _MEMO_LIMIT:
        memo.update(found)
    return np.array([found[k] if v is None else v for k, v in zip(keys, known, strict=True)], np.int64)


def _interval_totals(words: Words, dictionary: Dictionary) -> tuple[Words, Mask]:
    """``interval_total`` of each, and those that may be out of a word's range."""
    parts = dictionary.arena.packed(np.ascontiguousarray(words))[0]
    months, days, micros = parts[: 24 * len(words)].view(">i8").reshape(-1, 3).astype(np.int64).T
    far: Mask = ~(np.abs((months * 30.0 + days) * DAY + micros) < _FAR)
    return np.where(far, 0, (months * 30 + days) * DAY + micros), far


def _numeric_class(type: SqlType, words: Words, dictionary: Dictionary) -> Words:
    mantissa, scale = inline_parts(words)
    wide = is_interned(words)
    shorter = (scale > 0) & ~wide & (mantissa % 10 == 0)
    while np.count_nonzero(shorter):
        mantissa = np.where(shorter, mantissa // 10, mantissa)
        scale = scale - shorter
        shorter = (scale > 0) & ~wide & (mantissa % 10 == 0)
    result = inline_words(mantissa, scale)
    rows = np.flatnonzero(wide)
    if len(rows):
        result[rows] = words[rows]
        data, offsets = dictionary.arena.packed(words[rows])
        rows = rows[data[offsets[1:] - 1] == ord("0")]  # others have no zeros to drop
    if len(rows):
        result[rows] = _by_value(
            "equality_class", type, words[rows], dictionary, lambda values: _classes(type, values, dictionary)
        )
    return result


def _numeric_prefix(type: SqlType, words: Words, dictionary: Dictionary) -> Words:
    mantissa, scale = inline_parts(words)
    # both exact in a double, so that their quotient is the correctly rounded value
    exact = ~is_interned(words) & (np.abs(mantissa) < 2**53) & (scale <= 18)
    result = float_to_word(mantissa / POWERS[np.minimum(scale, 18)].astype(np.float64) + 0.0)
    rows = np.flatnonzero(~exact)
    if len(rows) > _FEW:
        texts = Texts(words[rows], dictionary)
        result[rows[texts.rows]] = float_to_word(texts.nearest())
        rows = rows[texts.left]
    if len(rows):
        result[rows] = _by_value("order_prefix", type, words[rows], dictionary, lambda values: _prefixes(type, values))
    return result


def _numeric_bytes(type: SqlType, words: Words, dictionary: Dictionary) -> Words:
    mantissa, _ = inline_parts(words)
    rows = np.flatnonzero(is_interned(words) | (np.abs(mantissa) >= _EXACT_DIGITS))
    if not len(rows):
        return np.full(len(words), dictionary.intern_one(NOTHING))
    result = np.full(len(words), dictionary.intern_one(NOTHING) if len(rows) < len(words) else 0)
    if len(rows) > _FEW:
        texts = Texts(words[rows], dictionary)
        result[rows[texts.rows]] = texts.keys()
        rows = rows[texts.left]
    if len(rows):
        result[rows] = _by_value(
            "order_bytes", type, words[rows], dictionary, lambda values: _bytes(type, values, dictionary)
        )
    return result
