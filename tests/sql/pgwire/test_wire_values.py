# ruff: noqa: E501 (tables of cases)
"""Text and binary formats of values: round trips, the bulk path against the small one, exact sums as a law."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivm.errors import SqlError
from ivm.rows import RowSet, Vector, pack, unpack
from ivm.words import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NEGATIVE_INFINITY,
    NUMERIC,
    OID,
    POSITIVE_INFINITY,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    ColumnType,
    Kind,
    SqlType,
)
from planner.aggregates.accumulable import Accumulation
from planner.aggregates.components import AggregateCall
from planner.aggregates.reducers import Accumulate
from sql.catalog.column_types import array_of, parse_type
from sql.pgwire.binary import decode_binary, encode_binary
from sql.pgwire.values import column_formats, decode_parameter, encode_rows
from storage.dictionary import Dictionary
from storage.types import codec
from storage.types.arrays import bounded
from storage.types.text import format_datum, parse_datum, parse_rows, parse_text
from storage.types.text_array import leaf_test, parse_array, parse_plain_array
from storage.types.type_names import format_type, type_from_oid, type_oid, typmod
from tests.support.profiles import scaled

DICTIONARY = Dictionary(bytes(16))
STAMPS = st.integers(-211_813_488_000_000_000, 9_223_371_331_199_999_999) | st.sampled_from(
    [POSITIVE_INFINITY, NEGATIVE_INFINITY]
)
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=6) | st.integers(-(10**40), 10**40).map(
    Decimal
) | st.sampled_from([Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity"), Decimal("0.0001"), Decimal("10000")])  # fmt: skip
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
INTERVALS = st.tuples(
    st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
)
DATUMS: dict[SqlType, st.SearchStrategy[Any]] = {
    BOOL: st.booleans(),
    INT2: st.integers(-(2**15), 2**15 - 1),
    INT4: st.integers(-(2**31), 2**31 - 1),
    INT8: st.integers(-(2**63), 2**63 - 1),
    OID: st.integers(0, 2**32 - 1),
    FLOAT8: st.floats(allow_nan=False),
    FLOAT4: st.floats(allow_nan=False, width=32),
    NUMERIC: DECIMALS,
    TEXT: TEXTS,
    BYTEA: st.binary(max_size=20),
    DATE: st.integers(-2_451_545, 2_145_031_948) | st.sampled_from([POSITIVE_INFINITY, NEGATIVE_INFINITY]),
    TIME: st.integers(0, 86_400_000_000),
    TIMESTAMP: STAMPS,
    TIMESTAMPTZ: STAMPS,
    INTERVAL: INTERVALS,
    UUID: st.binary(min_size=16, max_size=16),
    array_of(INT4): st.builds(
        bounded,
        st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=4).map(tuple),
        st.tuples(st.sampled_from([1, 0, 2, -(2**31)])),
    ),
    array_of(TEXT): st.lists(st.none() | TEXTS, max_size=4).map(tuple),
    array_of(INTERVAL): st.lists(st.none() | INTERVALS, max_size=3).map(tuple),
}


def same(left: Any, right: Any) -> bool:
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return str(left) == str(right) or (left == right and left.as_tuple().exponent == right.as_tuple().exponent)
    return bool(left == right)


@pytest.mark.parametrize("type_", DATUMS, ids=format_type)
def test_text_and_binary_are_inverses(type_: SqlType) -> None:
    @settings(max_examples=scaled(60))
    @given(DATUMS[type_])
    def law(datum: Any) -> None:
        text = format_datum(type_, datum)
        assert same(parse_datum(type_, text), parse_datum(type_, text))
        if type_ != NUMERIC:
            assert parse_datum(type_, text) == datum
        else:
            assert format_datum(type_, parse_datum(type_, text)) == text
        read = decode_binary(type_, encode_binary(type_, datum))
        assert format_datum(type_, read) == text

    law()


@pytest.mark.parametrize("type_", DATUMS, ids=format_type)
def test_types_by_oid(type_: SqlType) -> None:
    assert type_from_oid(type_oid(type_), typmod(type_)) == type_
    assert parse_type(format_type(type_)) == type_


def test_typmods() -> None:
    for name in (
        "numeric(10,2)",
        "numeric(2,-3)",
        "numeric(3,5)",
        "numeric(1000,-1000)",
        "numeric(1,1000)",
        "character varying(7)",
        "character(3)",
        "timestamp(3) without time zone",
        "interval(2)",
    ):
        type_ = parse_type(name)
        assert format_type(type_) == name
        assert type_from_oid(type_oid(type_), typmod(type_)) == type_
    for wrong, state in (("numeric(0)", "22023"), ("nosuch", "42704"), ("money", "0A000"), ("varchar(0)", "22023")):
        with pytest.raises(SqlError) as caught:
            parse_type(wrong)
        assert caught.value.sqlstate == state


def rows_of(count: int) -> RowSet:
    types = (INT8, INT4, TEXT, FLOAT8, NUMERIC, DATE, TIMESTAMP, BOOL, array_of(INT4), SqlType(Kind.NUMERIC, 9, 2))
    schema = tuple(ColumnType(t, i % 2 == 0) for i, t in enumerate(types))
    columns: list[list[Any]] = [
        [None if i % 7 == 3 else (-1) ** i * (2**63 - 1 - i) for i in range(count)],
        [i * 7919 - 5 for i in range(count)],
        [None if i % 5 == 2 else f"row é {i}" for i in range(count)],
        [i / 3 for i in range(count)],
        [None if i % 4 == 1 else Decimal(i) / 8 for i in range(count)],
        [i * 37 - 9000 for i in range(count)],
        [None if i % 3 == 1 else i * 1_234_567_890_123 for i in range(count)],
        [i % 2 == 0 for i in range(count)],
        [None if i % 6 == 0 else (i, None) for i in range(count)],
        [Decimal(i).scaleb(-2) - 1 for i in range(count)],
    ]
    vectors = [codec.encode(t, c, DICTIONARY) for t, c in zip(types, columns, strict=True)]
    return RowSet(pack(vectors, schema, count), schema)


@pytest.mark.parametrize("formats", [[], [1], [0, 1] * 5])
def test_bulk_equals_small(formats: list[int]) -> None:
    rows = rows_of(90)
    bulk = encode_rows(rows, formats, DICTIONARY)
    small = b"".join(
        encode_rows(RowSet(rows.rows[i : i + 9], rows.schema), formats, DICTIONARY) for i in range(0, 90, 9)
    )
    assert bulk == small
    at = messages = 0
    while at < len(bulk):
        assert bulk[at : at + 1] == b"D"
        at += 1 + struct.unpack_from("!i", bulk, at + 1)[0]
        messages += 1
    assert (at, messages) == (len(bulk), 90)


NUMERICS = st.lists(DECIMALS | st.integers(-99, 99).map(Decimal) | st.none(), min_size=25, max_size=40)


@settings(max_examples=scaled(60))
@given(NUMERICS, st.booleans())
def test_numerics_are_written_from_their_words(values: list[Decimal | None], whole: bool) -> None:
    if whole:
        values = [None if v is None or not v.is_finite() else Decimal(int(v)) for v in values]
    schema = (ColumnType(NUMERIC, True),)
    rows = RowSet(pack([codec.encode(NUMERIC, values, DICTIONARY)], schema, len(values)), schema)
    texts = [None if v is None else format_datum(NUMERIC, v).encode() for v in values]
    wanted = b"".join(
        b"D" + struct.pack("!ihi", 10 + len(t or b""), 1, -1 if t is None else len(t)) + (t or b"") for t in texts
    )
    assert encode_rows(rows, (), DICTIONARY) == wanted
    few = b"".join(encode_rows(RowSet(rows.rows[i : i + 9], schema), (), DICTIONARY) for i in range(0, len(values), 9))
    assert few == wanted


def test_rows_without_columns_and_formats() -> None:
    empty = RowSet(np.zeros((30, 0), np.int64), ())
    assert encode_rows(empty, [], DICTIONARY) == b"D\0\0\0\x06\0\0" * 30
    assert column_formats([1], 3) == [1, 1, 1]
    with pytest.raises(SqlError):
        column_formats([1, 0], 3)


def test_parameters() -> None:
    assert decode_parameter(INT4, 0, b"42") == 42
    assert decode_parameter(INT4, 1, b"\0\0\0*") == 42
    for type_, format_, data, state in (
        (INT4, 0, b"4x", "22P02"), (INT4, 1, b"\0", "22P03"), (TEXT, 0, b"\xff", "22021"), (INT4, 7, b"", "08P01"),
        (TEXT, 0, b"a\0", "22021"), (array_of(INT4), 1, b"\0\0\0\x01", "22P03"),
    ):  # fmt: skip
        with pytest.raises(SqlError) as caught:
            decode_parameter(type_, format_, data)
        assert caught.value.sqlstate == state


def test_bulk_parse_equals_one_by_one() -> None:
    cases: list[tuple[SqlType, list[str | None]]] = [
        (INT4, [str(i * i - 7) for i in range(30)] + [None]),
        (INT8, ["9223372036854775807"] * 9),
        (DATE, [f"20{i:02d}-02-03" for i in range(40)]),
        (TIMESTAMP, [f"20{i:02d}-02-03 04:05:0{i % 10}" for i in range(40)] + [None]),
        (TEXT, [f"é{i}" for i in range(20)]),
    ]
    for type_, texts in cases:
        bulk = codec.decode(type_, parse_text(type_, texts, DICTIONARY), DICTIONARY)
        assert bulk == [None if t is None else parse_datum(type_, t) for t in texts]


@settings(max_examples=scaled(300))
@given(st.text('0123456789-+,{} "\\nulNULab\t٣', max_size=14), st.sampled_from([INT2, INT4, INT8, TEXT]))
def test_plain_arrays_parse_as_all_do(inside: str, element: SqlType) -> None:
    text = "{" + inside + "}"
    try:
        slow: Any = parse_array(text, lambda part: parse_datum(element, part), leaf_test(element.kind))
    except SqlError as error:
        slow = error.sqlstate
    fast = parse_plain_array(element.kind, text)
    assert fast is None or fast == slow


def test_arrays_of_numbers_and_words_are_plain() -> None:
    assert parse_plain_array(Kind.INT2, "{1,-2,32767}") == (1, -2, 32767)
    assert parse_plain_array(Kind.INT2, "{32768}") is None
    assert parse_plain_array(Kind.TEXT, "{R01,b-c}") == ("R01", "b-c")


def test_bulk_parse_refuses_what_numpy_would_take() -> None:
    for type_, wrong in (
        (DATE, "-123-05-06"),
        (DATE, "2024-02-30"),
        (INT4, "1_000"),
        (INT4, "٣"),
        (TIMESTAMP, "2024-01-01 1:02:03 "),
    ):
        texts: list[str | None] = [format_datum(type_, 0)] * 10 + [wrong]
        _, failures = parse_rows(type_, texts, DICTIONARY)
        assert [row for row, _ in failures] == ([10] if type_ != TIMESTAMP else [])


def test_parse_rows_tells_each_failure() -> None:
    texts: list[str | None] = ["1"] * 9 + ["x", None, "2147483648"]
    vector, failures = parse_rows(INT4, texts, DICTIONARY)
    assert [(row, error.sqlstate) for row, error in failures] == [(9, "22P02"), (11, "22003")]
    assert vector.nulls is not None
    assert vector.nulls.tolist() == [False] * 9 + [True] * 3


def totals(call: AggregateCall, values: list[Any], kept: list[bool]) -> Any:
    """The aggregate of the kept values, where the others were added and retracted again."""
    layout = Accumulation((call,))
    column = codec.encode(call.types[0], values, DICTIONARY)
    made = layout.expand([column], len(values), DICTIONARY)
    source = made.source if made.source is not None else np.arange(len(values))
    sums: dict[int, Any] = {}
    for signs in (np.ones(len(values), np.int64), np.array([0 if k else -1 for k in kept], np.int64)):
        for slot, weights in zip(made.slots.tolist(), made.weights * signs[source][:, None], strict=True):
            sums[slot] = sums.get(slot, 0) + weights
    slots = sorted(slot for slot, weights in sums.items() if weights.any())
    if not slots:
        return None
    vals = np.array(slots, np.int64).reshape(-1, 1) if layout.val_width else np.zeros((len(slots), 0), np.int64)
    reduced = Accumulate(layout, DICTIONARY)(
        np.zeros((1, 0), np.int64), np.array([0, len(slots)]), vals, np.array([sums[s] for s in slots], np.int64)
    )
    if not len(reduced.vals):
        return "error"
    return codec.decode(layout.schema[0].type, unpack(reduced.vals, layout.schema)[0], DICTIONARY)[0]


FLOATS = st.lists(st.tuples(st.floats(-1e300, 1e300), st.booleans()), min_size=1, max_size=12)


@settings(max_examples=scaled(150))
@given(FLOATS)
def test_float_sums_are_exact_and_forget_what_is_retracted(rows: list[tuple[float, bool]]) -> None:
    kept = [Fraction(v) for v, k in rows if k]
    got = totals(AggregateCall("sum(float8)", (0,), (FLOAT8,)), [v for v, _ in rows], [k for _, k in rows])
    assert got == (float(sum(kept)) if kept else None)
    deviation = totals(AggregateCall("var_pop(float8)", (0,), (FLOAT8,)), [v for v, _ in rows], [k for _, k in rows])
    if kept:
        mean = sum(kept) / len(kept)
        try:
            wanted: Any = float(sum((v - mean) ** 2 for v in kept) / len(kept))
        except OverflowError:
            wanted = "error"
        assert deviation == wanted or math.isclose(deviation, wanted, rel_tol=1e-15)


NUMBERS = st.lists(
    st.tuples(st.integers(-(10**25), 10**25), st.integers(0, 30), st.booleans()), min_size=1, max_size=10
)


@settings(max_examples=scaled(100))
@given(NUMBERS)
def test_numeric_sums_keep_value_and_scale(rows: list[tuple[int, int, bool]]) -> None:
    values = [parse_datum(NUMERIC, f"{Fraction(m)}e-{s}") for m, s, _ in rows]
    got = totals(AggregateCall("sum(numeric)", (0,), (NUMERIC,)), values, [k for _, _, k in rows])
    kept = [(m, s) for m, s, k in rows if k]
    if not kept:
        assert got is None
        return
    assert Fraction(got) == sum(Fraction(m, 10**s) for m, s in kept)
    assert -got.as_tuple().exponent == max(s for _, s in kept)


@settings(max_examples=scaled(100))
@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.booleans()), min_size=1, max_size=10))
def test_integer_sums_are_128_bit(rows: list[tuple[int, bool]]) -> None:
    values, kept = [v for v, _ in rows], [k for _, k in rows]
    got = totals(AggregateCall("sum(int8)", (0,), (INT8,)), values, kept)
    wanted = [v for v, k in rows if k]
    assert got == (sum(wanted) if wanted else None)
    square = totals(AggregateCall("var_pop(int8)", (0,), (INT8,)), values, kept)
    if wanted:
        mean = Fraction(sum(wanted), len(wanted))
        exact = sum((v - mean) ** 2 for v in wanted) / len(wanted)
        assert abs(Fraction(square) - exact) <= Fraction(1, 10 ** max(-square.as_tuple().exponent, 0))


def test_negative_counts_give_nothing() -> None:
    layout = Accumulation((AggregateCall("sum(int4)", (0,), (INT4,)), AggregateCall("count(*)", (), ())))
    made = layout.expand([Vector(np.array([5, 6]))], 2, DICTIONARY)
    diffs = np.array([-made.weights[0], made.weights[1] * 3])
    reduced = Accumulate(layout, DICTIONARY)(
        np.zeros((2, 0), np.int64), np.array([0, 1, 2]), np.zeros((2, 0), np.int64), diffs
    )
    assert reduced.segment.tolist() == [1]
    assert reduced.vals.tolist() == [[18, 3, 0]]


def test_character_types_apply_their_length() -> None:
    assert parse_datum(parse_type("bpchar(5)"), "ab") == "ab   "
    assert parse_datum(parse_type("varchar(2)"), "ab   ") == "ab"
    with pytest.raises(SqlError) as caught:
        parse_datum(parse_type("varchar(2)"), "abc")
    assert caught.value.sqlstate == "22001"
