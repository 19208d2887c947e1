"""Loads: Arrow types against SQL types, Parquet files, and which files may be read."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivm.errors import SqlError
from ivm.rows import unpack
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
    NUMERIC,
    OID,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Kind,
    SqlType,
)  # fmt: skip
from storage.dictionary import Dictionary
from storage.load.arrow import check_type, column_vector
from storage.load.columnar import ColumnarFormat, ColumnarSource
from storage.load.columns import LoadColumn, load_schema
from storage.load.paths import LocalFiles, RemoteFiles, locate, resolve_path
from storage.load.source import read_here
from storage.sorted_rows import Run
from storage.types import codec
from tests.support.profiles import scaled

SECRET = b"0123456789abcdef"
VARCHAR3 = SqlType(Kind.VARCHAR, 3)
CHAR3 = SqlType(Kind.BPCHAR, 3)
THOUSANDS, THOUSANDS6, MILLIONTHS = (SqlType(Kind.NUMERIC, *size) for size in ((2, -3), (2, -6), (3, 5)))
MONEY = SqlType(Kind.NUMERIC, 10, 2)
WIDE = SqlType(Kind.NUMERIC, 30, 4)
INTS = SqlType(Kind.ARRAY, element=INT4)
TEXTS = SqlType(Kind.ARRAY, element=TEXT)
JSONB = SqlType(Kind.JSONB)
BIG = Decimal("12345678901234567890.12")
DAY = 86_400_000_000
NOON = datetime(2024, 2, 29, 12, 0, 0, 250)
SINCE_2000 = (NOON - datetime(2000, 1, 1)).days * DAY + DAY // 2 + 250


def loaded(array: pa.Array, type_: SqlType, nullable: bool = True) -> list[Any]:
    dictionary = Dictionary(SECRET)
    check_type(array.type, LoadColumn("c", type_, nullable))
    vector = column_vector(array, LoadColumn("c", type_, nullable), dictionary)
    assert vector.words.dtype == np.int64
    assert len(vector.words) == len(array)
    return codec.decode(type_, vector, dictionary)


def state(array: pa.Array, type_: SqlType, nullable: bool = True) -> str:
    with pytest.raises(SqlError) as raised:
        loaded(array, type_, nullable)
    assert '"c"' in f"{raised.value.message} {raised.value.detail}", "the column is named"
    return raised.value.sqlstate


ACCEPTED = [
    (pa.array([True, None, False]), BOOL, [True, None, False]),
    (pa.array([1, None, -3], pa.int8()), INT2, [1, None, -3]),
    (pa.array([2**31 - 1, -(2**31)], pa.int64()), INT4, [2**31 - 1, -(2**31)]),
    (pa.array([2**63 - 1], pa.uint64()), INT8, [2**63 - 1]),
    (pa.array([2**32 - 1], pa.uint32()), OID, [2**32 - 1]),
    (pa.array([Decimal(7), None], pa.decimal128(20, 0)), INT8, [7, None]),
    (pa.array([1.5, None, math.inf, -0.0], pa.float32()), FLOAT8, [1.5, None, math.inf, -0.0]),
    (pa.array([2**53 + 1]), FLOAT8, [float(2**53)]),
    (pa.array([0.1, -math.inf]), FLOAT4, [float(np.float32(0.1)), -math.inf]),
    (pa.array([Decimal("1.10"), None], pa.decimal128(10, 2)), MONEY, [Decimal("1.10"), None]),
    (pa.array([Decimal("-1.1")], pa.decimal128(10, 1)), MONEY, [Decimal("-1.10")]),
    (pa.array([Decimal("1.005"), Decimal("-1.005")], pa.decimal128(10, 3)), MONEY, [Decimal("1.01"), Decimal("-1.01")]),
    (pa.array([Decimal("12345.6"), Decimal("-500"), None], pa.decimal128(10, 1)), THOUSANDS,
     [Decimal(12000), Decimal(-1000), None]),
    (pa.array([Decimal("1.23E+6")], pa.decimal128(3, -4)), THOUSANDS6, [Decimal(1_000_000)]),
    (pa.array([99499, -500]), THOUSANDS, [Decimal(99000), Decimal(-1000)]),
    (pa.array([1500.5, math.nan]), THOUSANDS, [Decimal(2000), "NaN"]),
    (pa.array([Decimal("0.00123"), Decimal("-0.00999")], pa.decimal128(5, 5)), MILLIONTHS,
     [Decimal("0.00123"), Decimal("-0.00999")]),
    (pa.array([Decimal("0.009994")], pa.decimal128(7, 6)), MILLIONTHS, [Decimal("0.00999")]),
    (pa.array([0, None]), MILLIONTHS, [Decimal("0.00000"), None]),
    (pa.array([12, -5]), MONEY, [Decimal("12.00"), Decimal("-5.00")]),
    (pa.array([0.1, math.nan]), MONEY, [Decimal("0.10"), "NaN"]),
    (pa.array([Decimal("1.10"), BIG]), NUMERIC, [Decimal("1.10"), BIG]),
    (pa.array([5, -(2**60)]), NUMERIC, [Decimal(5), Decimal(-(2**60))]),
    (pa.array([2**64 - 1], pa.uint64()), NUMERIC, [Decimal(2**64 - 1)]),
    (pa.array([Decimal("1.23456")]), WIDE, [Decimal("1.2346")]),
    (pa.array([7]), WIDE, [Decimal("7.0000")]),
    (pa.array(["a", None, "", "ü" * 3, "a"]), TEXT, ["a", None, "", "ü" * 3, "a"]),
    (pa.array(["a", None, "b", "a"]).dictionary_encode(), TEXT, ["a", None, "b", "a"]),
    (pa.array(["zz", "x"], pa.large_string()), TEXT, ["zz", "x"]),
    (pa.array(["zz", None], pa.string_view()), TEXT, ["zz", None]),
    (pa.array(["äöü", "ab   "]), VARCHAR3, ["äöü", "ab "]),
    (pa.array(["a", None]), CHAR3, ["a  ", None]),
    (pa.array([b"\0\xff", None]), BYTEA, [b"\0\xff", None]),
    (pa.array(["12345678-1234-5678-1234-567812345678"]), UUID, [bytes.fromhex("12345678123456781234567812345678")]),
    (pa.array([b"0123456789abcdef"], pa.binary(16)), UUID, [b"0123456789abcdef"]),
    (pa.array([date(2000, 1, 2), None, date(1999, 12, 31)]), DATE, [1, None, -1]),
    (pa.array([date(2000, 1, 2)], pa.date64()), DATE, [1]),
    (pa.array([date(2000, 1, 2)]), TIMESTAMP, [DAY]),
    (pa.array([NOON, None], pa.timestamp("us")), TIMESTAMP, [SINCE_2000, None]),
    (pa.array([NOON], pa.timestamp("ns")), TIMESTAMP, [SINCE_2000]),
    (pa.array([1500, -1500, 1499], pa.timestamp("ns")), TIMESTAMP, [x - 10957 * DAY for x in (2, -1, 1)]),
    (pa.array([NOON.replace(microsecond=0)], pa.timestamp("s")), TIMESTAMP, [SINCE_2000 - 250]),
    (pa.array([NOON], pa.timestamp("us")), SqlType(Kind.TIMESTAMP, 4), [SINCE_2000 + 50]),
    (pa.array([NOON.replace(tzinfo=UTC)], pa.timestamp("us", "UTC")), TIMESTAMPTZ, [SINCE_2000]),
    (pa.array([time(1, 0, 0, 7)], pa.time64("us")), TIME, [3_600_000_007]),
    (pa.array([time(1)], pa.time32("s")), TIME, [3_600_000_000]),
    (pa.array([None, None], pa.null()), TEXT, [None, None]),
    (pa.array([], pa.string()), TEXT, []),
    (pa.array(["x", "skip", None, "y"])[2:], TEXT, [None, "y"]),
    (pa.array([Decimal("9.99"), Decimal("1.25")], pa.decimal128(5, 2))[1:], MONEY, [Decimal("1.25")]),
    (pa.array([[1, None], None, [], [2**31 - 1]]), INTS, [(1, None), None, (), (2**31 - 1,)]),
    (pa.array([["ü", None], ["", "ü"], None], pa.large_list(pa.string()))[1:], TEXTS, [("", "ü"), None]),
    (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int16(), 2)), INTS, [(1, 2), None, (3, 4)]),
    (pa.array([[date(2000, 1, 2)], [None]]), SqlType(Kind.ARRAY, element=DATE), [(1,), (None,)]),
    (pa.array(["{a,NULL,b}", None]), TEXTS, [("a", None, "b"), None]),
    (pa.array([7, None, -DAY], pa.duration("us")), INTERVAL, [(0, 0, 7), None, (0, 0, -DAY)]),
    (pa.array([1500], pa.duration("ns")), INTERVAL, [(0, 0, 1)]),
    (pa.array(["1 mon 2 days"]), INTERVAL, [(1, 2, 0)]),
    (pa.array([{"b": 1, "a": [{"x": None}]}, None]), JSONB, ['{"a": [{"x": null}], "b": 1}', None]),
    (pa.array([[("k", 1.5), ("a", math.nan)], [], None], pa.map_(pa.string(), pa.float64())), JSONB,
     ['{"a": "NaN", "k": 1.5}', "{}", None]),
    (pa.array([[(7, b"\xff")]], pa.map_(pa.int32(), pa.binary())), JSONB, ['{"7": "\\\\xff"}']),
    (pa.array([[[1], []], None]), JSONB, ["[[1], []]", None]),
    (pa.array([{"at": 1, "d": Decimal("1.50"), "t": True}], pa.struct(
        [("at", pa.timestamp("ns")), ("d", pa.decimal128(5, 2)), ("t", pa.bool_())])), JSONB,
     ['{"d": 1.50, "t": true, "at": "1970-01-01T00:00:00"}']),
]  # fmt: skip


@pytest.mark.parametrize(("array", "type_", "expected"), ACCEPTED)
def test_values_arrive(array: pa.Array, type_: SqlType, expected: list[Any]) -> None:
    assert list(map(str, loaded(array, type_))) == list(map(str, expected))


@pytest.mark.parametrize(
    ("array", "type_", "expected"),
    [
        (pa.array([2**15]), INT2, "22003"),
        (pa.array([-(2**31) - 1]), INT4, "22003"),
        (pa.array([2**63], pa.uint64()), INT8, "22003"),
        (pa.array([-1]), OID, "22003"),
        (pa.array([1e39]), FLOAT4, "22003"),
        (pa.array([10**8]), MONEY, "22003"),
        (pa.array([math.inf]), MONEY, "22003"),
        (pa.array([Decimal("99999999.995")]), MONEY, "22003"),
        (pa.array([10**30], pa.decimal128(38, 0)), WIDE, "22003"),
        (pa.array([99500]), THOUSANDS, "22003"),
        (pa.array([Decimal("0.01")], pa.decimal128(5, 5)), MILLIONTHS, "22003"),
        (pa.array(["abcd"]), VARCHAR3, "22001"),
        (pa.array(["a\0b"]), TEXT, "22021"),
        (pa.array(["not one"]), UUID, "22P02"),
        (pa.array([2**62], pa.timestamp("s")), TIMESTAMP, "22008"),
        (pa.array([-(2**63)], pa.timestamp("us")), TIMESTAMP, "22008"),
        (pa.array([-(2**31)], pa.int32()).cast(pa.date32()), DATE, "22008"),
        (pa.array([1.5]), INT4, "42804"),
        (pa.array(["1"]), INT4, "42804"),
        (pa.array([1]), TEXT, "42804"),
        (pa.array([1]), BOOL, "42804"),
        (pa.array([Decimal("1.5")]), INT4, "42804"),
        (pa.array([NOON], pa.timestamp("us")), TIMESTAMPTZ, "42804"),
        (pa.array([NOON], pa.timestamp("us", "UTC")), TIMESTAMP, "42804"),
        (pa.array([NOON], pa.timestamp("us")), DATE, "42804"),
        (pa.array([[1]]), TEXT, "42804"),
        (pa.array([["1"]]), INTS, "42804"),
        (pa.array([[2**31]]), INTS, "22003"),
        (pa.array([[[1]]]), INTS, "42804"),
        (pa.array([{"a": 1}]), INTS, "42804"),
        (pa.array([{"a": "x\0"}]), JSONB, "22P05"),
        (pa.array(["{1,"]), INTS, "22P02"),
        (pa.array([2**62], pa.duration("s")), INTERVAL, "22008"),
    ],
)
def test_what_does_not_fit_is_refused(array: pa.Array, type_: SqlType, expected: str) -> None:
    assert state(array, type_) == expected


def test_bad_utf8_and_nulls() -> None:
    raw = pa.array([b"\xff\xfe"]).view(pa.string())
    assert state(raw, TEXT) == "22021"
    assert state(pa.array([None, 1]), INT4, nullable=False) == "23502"
    assert loaded(pa.array([1]), INT4, nullable=False) == [1]


@settings(max_examples=scaled(60))
@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5),
            st.none() | st.floats(),
            st.none() | st.decimals(-(10**7), 10**7, places=2),
        ),
        max_size=12,
    ),
    st.integers(1, 5),
)
def test_files_round_trip(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]], size: int) -> None:
    types = (INT8, TEXT, FLOAT8, MONEY)
    arrow = (pa.int64(), pa.string(), pa.float64(), pa.decimal128(10, 2))
    columns = [LoadColumn(f"c {i}", type_) for i, type_ in enumerate(types)]
    table = pa.table({f"c {i}": pa.array([row[i] for row in rows], arrow[i]) for i in range(4)})
    path = tmp_path_factory.mktemp("load") / "f.parquet"
    pq.write_table(table, path, row_group_size=4)
    found = contents([path], columns, size)
    assert list(map(repr, found)) == list(map(repr, rows))


def parquet(files: Sequence[Path], columns: Sequence[LoadColumn], **options: Any) -> ColumnarSource:
    return ColumnarSource(ColumnarFormat.PARQUET, tuple(files), tuple(columns), **options)


def contents(files: list[Path], columns: list[LoadColumn], size: int = 1000) -> list[tuple[Any, ...]]:
    dictionary = Dictionary(SECRET)
    batches = list(read_here(parquet(files, columns, batch_rows=size), dictionary))
    assert all(len(batch.rows) <= size for batch in batches)
    return decoded(batches, columns, dictionary)


def decoded(batches: list[Run], columns: list[LoadColumn], dictionary: Dictionary) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for run in batches:
        vectors = unpack(run.rows, load_schema(columns))
        values = [codec.decode(c.type, v, dictionary) for c, v in zip(columns, vectors, strict=True)]
        for row, count in zip(zip(*values, strict=True), run.times.tolist(), strict=True):
            found += [row] * count
    return found


def test_columns_are_matched_by_name(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"b": ["x"], "a": [1], "extra": [2]}), path)
    wanted = [LoadColumn("a", INT4), LoadColumn("b", TEXT)]
    with pytest.raises(SqlError, match="not in the target: extra") as raised:
        contents([path], wanted)
    assert raised.value.sqlstate == "42703"
    assert raised.value.hint is not None
    dictionary = Dictionary(SECRET)
    source = parquet([path], wanted, ignore_extra=True)
    assert source.check() == 1
    assert decoded(list(read_here(source, dictionary)), wanted, dictionary) == [(1, "x")]
    with pytest.raises(SqlError, match='has no column "c"') as raised:
        contents([path], [*wanted, LoadColumn("c", INT4), LoadColumn("extra", INT8)])
    assert raised.value.sqlstate == "42703"
    with pytest.raises(SqlError) as raised:
        contents([path], [LoadColumn("a", TEXT), LoadColumn("b", TEXT), LoadColumn("extra", INT8)])
    assert raised.value.sqlstate == "42804"


def test_what_is_no_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_text("id,name\n1,x\n")
    with pytest.raises(SqlError, match="cannot be read as a Parquet file") as raised:
        contents([path], [LoadColumn("a", INT4)])
    assert raised.value.sqlstate == "22P04"


def refused(path: str, folders: list[Path]) -> str:
    with pytest.raises(SqlError) as raised:
        resolve_path(path, folders)
    assert path in raised.value.message
    return raised.value.sqlstate


def test_only_given_folders_are_read(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "inside out"
    inside.mkdir()
    outside.mkdir()
    (inside / "f").touch()
    (outside / "secret").touch()
    (inside / "link").symlink_to(outside / "secret")
    (inside / "good").symlink_to(inside / "f")
    assert resolve_path(str(inside / "f"), [inside]) == inside / "f"
    assert resolve_path("f", [outside, inside]) == inside / "f"
    assert resolve_path(str(inside / "good"), [inside]) == inside / "f"
    assert resolve_path(str(inside / ".." / "in" / "f"), [inside]) == inside / "f"
    for path in (outside / "secret", inside / "link", inside / ".." / "inside out" / "secret", outside / "not there"):
        assert refused(str(path), [inside]) == "42501"
    assert refused("../inside out/secret", [inside]) == "42501"
    assert refused(str(inside / "f"), []) == "42501"
    assert refused(str(inside / "g"), [inside]) == "58P01"
    assert refused("g", [inside]) == "58P01"


def found(path: Path, folders: list[Path], *suffixes: str) -> list[str]:
    location = locate(str(path), folders, suffixes)
    assert isinstance(location, LocalFiles)
    return [str(file.relative_to(folders[0])) for file in location.files]


def test_a_folder_is_its_files(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    (inside / "deeper").mkdir(parents=True)
    for name in ("b.parquet", "a.parquet", "_temporary.parquet", ".x.parquet", "README", "deeper/c.parquet"):
        (inside / name).touch()
    assert found(inside, [inside], ".parquet") == ["a.parquet", "b.parquet", "deeper/c.parquet"]
    assert found(inside / "README", [inside], ".parquet") == ["README"]
    (tmp_path / "secret").touch()
    (inside / "c.parquet").symlink_to(tmp_path / "secret")
    with pytest.raises(SqlError) as raised:
        found(inside, [inside], ".parquet")
    assert raised.value.sqlstate == "42501"
    with pytest.raises(SqlError) as raised:
        found(inside, [inside], ".csv")
    assert raised.value.sqlstate == "58P01"
    os.mkfifo(inside / "pipe")
    with pytest.raises(SqlError) as raised:
        found(inside / "pipe", [inside], ".parquet")
    assert raised.value.sqlstate == "42809"
    assert locate("s3a://bucket/a*.csv", [], (".csv",)) == RemoteFiles("s3a://bucket/a*.csv")
