"""Equality classes and order of words against a plain comparison of the values."""

from __future__ import annotations

import math
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm.words import FLOAT8, INT4, INTERVAL, NUMERIC, TEXT, Kind, SqlType
from planner.expr import ordering
from storage.dictionary import Dictionary
from storage.types.codec import encode
from storage.types.order import interval_total
from tests.storage.types.test_codec import DECIMALS, INTERVALS, TEXTS, array_of

DAY = 86_400_000_000
ODD = (
    "NaN Infinity -Infinity 1E+400 -1E+400 1E-400 0.1 0.10 0.10000000000000001 0.1000000000000000055511151231257827 "
    "12345678901234567 12345678901234568 0 0.00"
)
NUMERICS = DECIMALS | st.sampled_from([Decimal(t) for t in ODD.split()])
NEAR = st.tuples(st.integers(-3, 3), st.integers(-90, 90), st.sampled_from([0, DAY, -DAY, 30 * DAY, 1, -1]))


def numeric_rank(value: Decimal) -> tuple[int, Decimal]:
    return (1, Decimal(0)) if value.is_nan() else (0, value)


def float_rank(value: float) -> tuple[int, float]:
    return (1, 0.0) if math.isnan(value) else (0, value)


def array_rank(value: tuple[int | None, ...]) -> list[tuple[int, int]]:
    return [(1, 0) if v is None else (0, v) for v in value]


def text_rank(value: str) -> bytes:
    return value.encode()


def char_rank(value: str) -> bytes:
    return value.rstrip(" ").encode()


CASES: list[tuple[SqlType, st.SearchStrategy[Any], Any]] = [
    (NUMERIC, NUMERICS, numeric_rank),
    (FLOAT8, st.floats() | st.sampled_from([0.0, -0.0]), float_rank),
    (INTERVAL, INTERVALS | NEAR, interval_total),
    (TEXT, TEXTS, text_rank),
    (
        SqlType(Kind.BPCHAR),
        st.sampled_from(["a", "a ", "a  ", "ab", "", "abcdefgh", "abcdefgh ", "abcdefghi"]),
        char_rank,
    ),
    (array_of(INT4), st.lists(st.none() | st.integers(-3, 3), max_size=4).map(tuple), array_rank),
    (array_of(TEXT), st.lists(st.text("ab", max_size=3), max_size=3).map(tuple), lambda v: [x.encode() for x in v]),
    (array_of(NUMERIC), st.lists(DECIMALS, max_size=2).map(tuple), list),
]


@pytest.mark.parametrize(
    ("type", "values", "rank"), CASES, ids=[f"{t.kind.value}{i}" for i, (t, _, _) in enumerate(CASES)]
)
def test_order_and_equality(type: SqlType, values: st.SearchStrategy[Any], rank: Any) -> None:
    dictionary = Dictionary(b"0123456789abcdef")

    @given(st.lists(values, min_size=1, max_size=12))
    def check(datums: list[Any]) -> None:
        words = encode(type, datums, dictionary).words
        left, right = np.repeat(words, len(words)), np.tile(words, len(words))
        signs = ordering.compare(type, left, right, dictionary).tolist()
        equal = ordering.equal(type, left, right, dictionary).tolist()
        prefixes = ordering.order_prefix(type, words, dictionary).tolist()
        needs_bytes = type is not FLOAT8
        rest = dictionary.lookup(ordering.order_bytes(type, words, dictionary)) if needs_bytes else [b""] * len(words)
        keys = list(zip(prefixes, rest, strict=True))
        if type.kind is Kind.BPCHAR:
            keys = [(p, r.rstrip(b" ")) for p, r in keys]
        at = 0
        for a, key in zip(datums, keys, strict=True):
            for b, other in zip(datums, keys, strict=True):
                wanted = (rank(a) > rank(b)) - (rank(a) < rank(b))
                assert signs[at] == wanted, (a, b)
                assert equal[at] == (wanted == 0), (a, b)
                assert (key > other) - (key < other) == wanted, (a, b)
                at += 1

    check()


@given(st.lists(NUMERICS, min_size=1, max_size=20))
def test_equality_class_is_canonical(datums: list[Decimal]) -> None:
    dictionary = Dictionary(b"0123456789abcdef")
    words = encode(NUMERIC, datums, dictionary).words
    once = ordering.equality_class(NUMERIC, words, dictionary)
    assert (ordering.equality_class(NUMERIC, once, dictionary) == once).all()


@pytest.mark.parametrize("far", [False, True])
def test_many_intervals_order_as_few(far: bool) -> None:
    random, dictionary = Random(3), Dictionary(b"0123456789abcdef")
    values = [(random.randint(-90, 90), random.randint(-900, 900), random.randint(-DAY, DAY)) for _ in range(200)]
    values += [(0, 30, 0), (1, 0, 0), (0, 29, DAY), *[(2**31 - 1, 2**31 - 1, 2**63 - 1)] * far]
    words = encode(INTERVAL, values, dictionary).words
    few = [words[at : at + 10] for at in range(0, len(words), 10)]
    for order in (ordering.order_prefix, ordering.order_bytes):
        expected = np.concatenate([order(INTERVAL, part, dictionary) for part in few])
        assert order(INTERVAL, words, dictionary).tolist() == expected.tolist()
