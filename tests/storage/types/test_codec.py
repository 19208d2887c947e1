"""Datums ↔ words: decode inverts encode, one identity has one word, DIRECT words keep the order."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm.words import (
    BOOL,
    BYTEA,
    CHAR1,
    DATE,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    UUID,
    Kind,
    SqlType,
)  # fmt: skip
from storage.dictionary import Dictionary
from storage.types.arrays import bounded, lower_bounds
from storage.types.codec import decode, decode_one, encode, encode_one, float_to_word, word_to_float
from storage.types.numeric import INLINE_LIMIT, is_interned

SECRET = b"0123456789abcdef"


def array_of(element: SqlType) -> SqlType:
    return SqlType(Kind.ARRAY, element=element)


DECIMALS = st.builds(
    lambda mantissa, scale: Decimal(mantissa).scaleb(-scale),
    st.integers(-(10**25), 10**25)
    | st.sampled_from([INLINE_LIMIT, INLINE_LIMIT - 1, -INLINE_LIMIT, -INLINE_LIMIT - 1]),
    st.integers(0, 40),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
INTERVALS = st.tuples(
    st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
)
INTS = st.integers(-(2**31), 2**31 - 1)
DATUMS: list[tuple[SqlType, st.SearchStrategy[Any]]] = [
    (BOOL, st.booleans()),
    (INT2, st.integers(-(2**15), 2**15 - 1)),
    (INT4, INTS),
    (INT8, st.integers(-(2**63), 2**63 - 1)),
    (DATE, INTS),
    (TIMESTAMP, st.integers(-(2**63), 2**63 - 1)),
    (FLOAT8, st.floats(allow_nan=False)),
    (NUMERIC, DECIMALS),
    (SqlType(Kind.NUMERIC, 10, 3), st.integers(-(10**10) + 1, 10**10 - 1).map(lambda m: Decimal(m).scaleb(-3))),
    (SqlType(Kind.NUMERIC, 3, -2), st.integers(-999, 999).map(lambda m: Decimal(m * 100))),
    (TEXT, TEXTS),
    (CHAR1, st.sampled_from(["", "a", "Z"])),
    (BYTEA, st.binary(max_size=20)),
    (UUID, st.binary(min_size=16, max_size=16)),
    (INTERVAL, INTERVALS),
    (array_of(INT4), st.lists(st.none() | INTS, max_size=5).map(tuple)),
    (array_of(TEXT), st.lists(st.lists(st.none() | TEXTS, min_size=2, max_size=2).map(tuple), max_size=3).map(tuple)),
    (array_of(INT4), st.builds(bounded, st.lists(INTS, max_size=5).map(tuple), st.tuples(st.integers(-9, 9)))),
    (array_of(INTERVAL), st.builds(bounded, st.just(((1, 2, 3),)), st.tuples(st.integers(-(2**31), 9)))),
    (array_of(INTERVAL), st.lists(st.none() | INTERVALS, max_size=3).map(tuple)),
    (array_of(NUMERIC), st.lists(DECIMALS, max_size=3).map(tuple)),
]


def same(a: Any, b: Any) -> bool:
    """Equal, with the same text: 1.0 is not 1.00 here."""
    if isinstance(a, Decimal):
        return str(a.copy_abs() if a.is_zero() else a) == str(b)
    if isinstance(a, tuple):
        return lower_bounds(a, 1) == lower_bounds(b, 1) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return bool(a == b)


@pytest.mark.parametrize(("type", "values"), DATUMS, ids=[f"{t.kind.value}{i}" for i, (t, _) in enumerate(DATUMS)])
def test_decode_inverts_encode(type: SqlType, values: st.SearchStrategy[Any]) -> None:
    dictionary = Dictionary(SECRET)

    @given(st.lists(st.none() | values, max_size=20))
    def check(datums: list[Any]) -> None:
        vector = encode(type, datums, dictionary)
        back = decode(type, vector, dictionary)
        for datum, got, word in zip(datums, back, vector.words.tolist(), strict=True):
            assert (datum is None and got is None and word == 0) or same(datum, got)
            if datum is not None:
                assert encode_one(type, datum, dictionary) == word
                assert same(datum, decode_one(type, word, dictionary))

    check()


@given(DECIMALS, DECIMALS)
def test_a_numeric_has_one_word(a: Decimal, b: Decimal) -> None:
    dictionary = Dictionary(SECRET)
    x, y = encode_one(NUMERIC, a, dictionary), encode_one(NUMERIC, b, dictionary)
    assert (x == y) == same(a, b) or (a.is_zero() and b.is_zero())
    small = -a.as_tuple().exponent <= 31 and -INLINE_LIMIT <= int(a.scaleb(-a.as_tuple().exponent)) < INLINE_LIMIT
    assert bool(is_interned(np.array([x]))[0]) == (not small)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_special_numerics(text: str) -> None:
    dictionary = Dictionary(SECRET)
    assert str(decode_one(NUMERIC, encode_one(NUMERIC, Decimal(text), dictionary), dictionary)) == text


@given(st.lists(DECIMALS, max_size=5))
def test_many_numerics_are_as_each(values: list[Decimal]) -> None:
    """Also those about the longest that a word holds, and those that are written with an exponent."""
    dictionary = Dictionary(SECRET)
    edge = (INLINE_LIMIT - 1, INLINE_LIMIT, -INLINE_LIMIT, -INLINE_LIMIT - 1, 10**16, 10**17 - 1, 10**17, 0)
    values += [Decimal(m).scaleb(-s) for m in edge for s in (0, 1, 9, 16, 17, 18, 31, 32)]
    values += [Decimal(text) for text in ("-0", "-0.00", "1E+3", "-1.5E+2", "1E-7", "NaN", "Infinity", "-Infinity")]
    each = [encode_one(NUMERIC, value, dictionary) for value in values]
    assert encode(NUMERIC, values, dictionary).words.tolist() == each


def test_nan_in_a_scaled_numeric_sorts_last() -> None:
    type = SqlType(Kind.NUMERIC, 18, 0)
    dictionary = Dictionary(SECRET)
    nan = encode_one(type, Decimal("NaN"), dictionary)
    assert nan > encode_one(type, Decimal(10**18 - 1), dictionary)
    assert decode_one(type, nan, dictionary).is_nan()


@given(st.floats(), st.floats())
def test_float_words_keep_order(a: float, b: float) -> None:
    x, y = float_to_word(np.array([a, b])).tolist()
    if math.isnan(a) or math.isnan(b):
        assert (x >= y) == (math.isnan(a) or (x == y))
    elif a != b:
        assert (x < y) == (a < b)
    else:
        assert (x == y) == (math.copysign(1, a) == math.copysign(1, b))
    back = word_to_float(np.array([x, y]))
    assert same(a, back[0].item()) or math.isnan(a)
