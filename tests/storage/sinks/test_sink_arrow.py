"""Words → Arrow: every type, against the codec's own way of decoding, value by value."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from ivm.errors import SqlError
from ivm.rows import Vector, pack
from ivm.words import (
    BOOL,
    BYTEA,
    CHAR1,
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
    EnumType,
    Kind,
    SqlType,
)  # fmt: skip
from storage.dictionary import Dictionary
from storage.load.arrow import column_vector
from storage.load.columns import LoadColumn
from storage.sinks.arrow import SinkColumn, column_to_arrow, to_arrow
from storage.types import codec

MOOD = EnumType(20000, 20001, "mood", "mood")
MOOD.hold([(1, "sad"), (5, "happy")])
D = Decimal
CASES = [
    (BOOL, [True, False]), (INT2, [-(2**15), 2**15 - 1]), (INT4, [-(2**31), 7]), (INT8, [-(2**63), 2**63 - 1, 0]),
    (OID, [0, 2**32 - 1]), (FLOAT4, [1.5, -0.0, float("inf")]), (FLOAT8, [-1e300, 0.1, float("-inf")]),
    (SqlType(Kind.NUMERIC, 10, 2), [D("1.50"), D("-99999999.99"), D("0.00")]),
    (SqlType(Kind.NUMERIC, 38, 3), [D("1.500"), D("-1234567890123456789012345678901.123")]),
    (SqlType(Kind.NUMERIC, 2, -3), [D(99000), D(0), D(-1000)]),
    (SqlType(Kind.NUMERIC, 30, -8), [D("9" * 30 + "0" * 8)]),
    (SqlType(Kind.NUMERIC, 3, 5), [D("0.00999"), D("-0.00001")]), (SqlType(Kind.NUMERIC, 2, 38), [D("99E-38")]),
    (SqlType(Kind.NUMERIC, 18, 0), [D(-1), D(10**18 - 1)]),
    (TEXT, ["", "ä\n", "x" * 300]), (BYTEA, [b"", b"\0\xff"]), (DATE, [-2_000_000, 0, 9000]),
    (TIME, [0, 86_399_999_999]), (TIMESTAMP, [-(10**17), 0, 10**15]), (TIMESTAMPTZ, [5]),
    (SqlType(Kind.ARRAY, element=INT4), [(1, None, 3), ()]),
    (SqlType(Kind.ARRAY, element=TEXT), [("a", None), ("",)]),
]  # fmt: skip
TEXTS = [
    (SqlType(Kind.NUMERIC, 2, 39), [D("1E-39")], ["0." + "0" * 38 + "1"]),
    (SqlType(Kind.NUMERIC, 30, -9), [D(10**9)], ["1000000000"]),
    (NUMERIC, [D("1.50"), D("1.5"), D("NaN"), D("Infinity")], ["1.50", "1.5", "NaN", "Infinity"]),
    (UUID, [bytes(range(16))], ["00010203-0405-0607-0809-0a0b0c0d0e0f"]),
    (INTERVAL, [(1, 2, 3_000_000)], ["1 mon 2 days 00:00:03"]), (CHAR1, ["x"], ["x"]),
    (SqlType(Kind.JSONB), ['{"a": 1}'], ['{"a": 1}']), (SqlType(Kind.ENUM, enum=MOOD), [1, 5], ["sad", "happy"]),
]  # fmt: skip


def shown(type_: SqlType, value: object) -> object:
    """A datum as the Python value that Arrow gives."""
    array = column_to_arrow(Vector(np.zeros(0, np.int64)), "c", type_, Dictionary(bytes(16)))
    return pa.array([value], array.type).to_pylist()[0]


@pytest.mark.parametrize(("type_", "values"), CASES, ids=lambda v: str(v)[:40])
@pytest.mark.parametrize("nulls", [False, True])
def test_a_column_is_what_arrow_makes_of_its_values(type_: SqlType, values: list[object], nulls: bool) -> None:
    dictionary = Dictionary(bytes(16))
    given: list[object] = [v for value in values for v in ([value, None, value] if nulls else [value, value])]
    array = column_to_arrow(codec.encode(type_, given, dictionary), "c", type_, dictionary)
    array.validate(full=True)
    days = {Kind.DATE: 10_957, Kind.TIMESTAMP: 10_957 * 86_400_000_000, Kind.TIMESTAMPTZ: 10_957 * 86_400_000_000}
    moved = [None if v is None else v + days[type_.kind] for v in given] if type_.kind in days else given  # type: ignore[operator]
    moved = [list(v) if isinstance(v, tuple) else v for v in moved]
    plain = pa.int32() if type_.kind is Kind.DATE else pa.int64()
    wanted = pa.array(moved, plain).cast(array.type) if type_.kind in days else pa.array(moved, array.type)
    assert array.equals(wanted), (array, wanted)


@pytest.mark.parametrize(("type_", "values", "texts"), TEXTS, ids=lambda v: str(v)[:40])
def test_what_arrow_has_no_type_for_is_text(type_: SqlType, values: list[object], texts: list[str]) -> None:
    dictionary = Dictionary(bytes(16))
    array = column_to_arrow(codec.encode(type_, [*values, None], dictionary), "c", type_, dictionary)
    assert array.to_pylist() == [*texts, None]


@pytest.mark.parametrize(("type_", "values"), CASES[:-2], ids=lambda v: str(v)[:40])
def test_a_load_reads_the_same_words_back(type_: SqlType, values: list[object]) -> None:
    dictionary = Dictionary(bytes(16))
    words = codec.encode(type_, [*values, None], dictionary)
    back = column_vector(column_to_arrow(words, "c", type_, dictionary), LoadColumn("c", type_), dictionary)
    assert back.words.tolist() == words.words.tolist()
    assert back.nulls is not None
    assert back.nulls.tolist() == [False] * len(values) + [True]


def test_infinities_are_the_ends_of_their_type() -> None:
    dictionary = Dictionary(bytes(16))
    words = Vector(np.array([POSITIVE_INFINITY, NEGATIVE_INFINITY]))
    assert column_to_arrow(words, "c", TIMESTAMP, dictionary).cast(pa.int64()).to_pylist() == [2**63 - 1, 1 - 2**63]
    assert column_to_arrow(words, "c", DATE, dictionary).cast(pa.int32()).to_pylist() == [2**31 - 1, 1 - 2**31]


def test_what_a_file_cannot_hold_is_an_error_that_names_the_column() -> None:
    dictionary = Dictionary(bytes(16))
    narrow, wide = SqlType(Kind.NUMERIC, 5, 2), SqlType(Kind.NUMERIC, 30, 2)
    for type_, value, state in (
        (narrow, D("NaN"), "22003"), (wide, D("NaN"), "22003"), (TIMESTAMP, 9_223_371_331_199_999_999, "22008"),
        (SqlType(Kind.ARRAY, element=INT4), ((1, 2), (3, 4)), "0A000"),
    ):  # fmt: skip
        with pytest.raises(SqlError, match='"price"') as error:
            column_to_arrow(codec.encode(type_, [value], dictionary), "price", type_, dictionary)
        assert error.value.sqlstate == state


def test_rows_become_a_batch_by_column_names() -> None:
    dictionary = Dictionary(bytes(16))
    columns = (SinkColumn("n", ColumnType(INT4, False)), SinkColumn("t", ColumnType(TEXT)))
    vectors = [codec.encode(INT4, [1, 2], dictionary), codec.encode(TEXT, ["a", None], dictionary)]
    batch = to_arrow(pack(vectors, tuple(c.column for c in columns), 2), columns, dictionary)
    assert batch.to_pylist() == [{"n": 1, "t": "a"}, {"n": 2, "t": None}]
    assert not batch.schema.field("n").nullable
