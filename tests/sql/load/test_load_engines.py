"""Spark and the local engine load alike: the same rows or the same error, wherever Spark splits a file."""

from __future__ import annotations

import bz2
import gzip
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from ivm.errors import SqlError
from ivm.rows import pack
from ivm.words import BOOL, DATE, INT4, NUMERIC, TEXT, TIMESTAMPTZ, UUID, Kind, SqlType
from sql.pgwire.file_formats import CsvFormat
from sql.statements.statements import CopyFormat, CopyOptions
from storage.cancel import Cancel
from storage.dictionary import Dictionary
from storage.load.columnar import ColumnarFormat, ColumnarSource
from storage.load.columns import LoadColumn, load_schema
from storage.load.infer import FoundColumn, columns_of_arrow, columns_of_text
from storage.load.infer_spark import columns_by_spark
from storage.load.json_rows import JsonFormat
from storage.load.paths import LocalFiles, RemoteFiles, locate
from storage.load.rejects import Rejects
from storage.load.source import LoadSource, read_here
from storage.load.spark import read_with_spark
from storage.load.text import TextFormat
from storage.load.text_source import TextSource
from storage.load.text_spark import Split, planned
from storage.sorted_rows import Run
from storage.spark.session import SparkSession
from storage.types.text_style import DEFAULT_STYLE
from tests.storage.load.test_load import SECRET, decoded
from tests.support.loading import Outcome, outcome, write
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server
from tests.support.spark_local import configured

pytestmark = pytest.mark.timeout(900)  # the machine may be slow; these tests do not measure time
TYPES = (INT4, TEXT, NUMERIC, DATE, BOOL, UUID, TIMESTAMPTZ, SqlType(Kind.ARRAY, element=INT4))
COLUMNS = tuple(LoadColumn("abcdefgh"[i], type_, i != 0) for i, type_ in enumerate(TYPES))
VALUES = (
    st.integers(-(2**31), 2**31 - 1).map(str) | st.sampled_from(["", "x", "99999999999"]),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
    | st.sampled_from(["", '"', '""', "a\nb", "\r\n", "\r", "\\.", "\\", "NULL", "ü,"]),
    st.decimals(allow_nan=False, allow_infinity=False).map(str) | st.just("12345678901234567890123456789.123456789"),
    st.dates().map(str),
    st.sampled_from(["t", "f", "yes", "off"]),
    st.uuids().map(str),
    st.datetimes(min_value=datetime(1, 1, 2)).map(str),
    st.lists(st.integers(0, 9), max_size=3).map(lambda items: "{" + ",".join(map(str, items)) + "}"),
)
ROW = st.tuples(*(st.none() | value for value in VALUES))


def csv_field(text: str | None, quote_all: bool) -> str:
    if text is None:
        return ""
    needs = quote_all or text == "" or any(c in text for c in ',"\n\r') or text == "\\."
    return '"' + text.replace('"', '""') + '"' if needs else text


@st.composite
def csv_files(draw: st.DrawFn) -> bytes:
    """Mostly valid files: other line ends, no final line end, truncated, a stray byte or two."""
    end, quote_all = draw(st.sampled_from(["\n", "\r\n", "\r"])), draw(st.booleans())
    count = draw(st.integers(1, 2)) if draw(st.booleans()) else len(TYPES)
    lines = [",".join(csv_field(v, quote_all) for v in row[:count]) for row in draw(st.lists(ROW, max_size=6))]
    data = end.join(lines) + draw(st.sampled_from([end, ""]))
    raw = data.encode()
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(raw)))
        raw = raw[:at] + draw(st.sampled_from([b'"', b"\n", b"\xff", b",", b"\r", b"\\.\n", b""])) + raw[at:]
    return raw


def hadoop_lines(data: bytes, cuts: list[int]) -> list[tuple[int, list[bytes]]]:
    """The splits of a file as Hadoop's reader sees them: each begins after the first newline at or after its cut."""
    starts = [0, *sorted({cut for cut in cuts if 0 < cut < len(data)})]
    lines, at = [], 0
    for line in data.split(b"\n")[: -1 if data.endswith(b"\n") or not data else None]:
        lines.append((at, line))
        at += len(line) + 1
    splits: dict[int, list[bytes]] = {}
    for at, line in lines:
        owner = max(start for start in starts if start < at or start == 0)
        splits.setdefault(owner, []).append(line)
    return sorted(splits.items())


def by_splits(source: TextSource, data: bytes, cuts: list[int], size: int, rejects: Rejects | None = None) -> list[Any]:
    """Does the executors' work without Spark: the first job's counts, then each split's batches of ``size`` lines."""
    path = source.files[0].as_uri()
    splits = hadoop_lines(data, cuts)
    counted = [
        Split(path, at, len(lines), sum(line.count(b'"') for line in lines) % 2 == 1,
              sum(line.endswith(b"\r") for line in lines), sum(line.rstrip(b"\r").count(b"\r") > 0 or
              line.endswith(b"\r\r") for line in lines), sum(line in (b"\\.", b"\\.\r") for line in lines), lines[0])
        for at, lines in splits
    ]  # fmt: skip
    found = []
    for decode in planned(counted, source):
        orders = [splits] if decode.whole else [[split] for split in splits]
        for order in orders:
            rows = [(line, path, at) for at, lines in order for line in lines]
            batches = [
                pa.record_batch([pa.array(part, t) for part, t in zip(zip(*rows[i : i + size], strict=True), FRAME,
                                 strict=True)], ["value", "path", "at"])
                for i in range(0, len(rows), size)
            ]  # fmt: skip
            found.append((decode, batches))
    dictionary = Dictionary(SECRET)
    blocks = [block for decode, batches in found for block in decode(batches, dictionary, rejects)]
    schema = load_schema(source.columns)
    loaded = [Run(pack(b.vectors, schema, b.size)) for b in blocks]
    return decoded(loaded, list(source.columns), dictionary)


FRAME = (pa.binary(), pa.string(), pa.int64())


def agree(folder: Path, data: bytes, format_: TextFormat, columns: tuple[LoadColumn, ...], cuts: list[int]) -> None:
    path = folder / "f"
    path.write_bytes(data)
    source = TextSource("t", (path,), columns, format_)
    dictionary = Dictionary(SECRET)
    expected = told(lambda: decoded(list(read_here(source, dictionary)), list(columns), dictionary))
    found = told(lambda: by_splits(source, data, cuts, 1000))
    if isinstance(expected, SqlError) and cuts:  # of several errors, another split may report its own
        assert isinstance(found, SqlError)
    elif isinstance(expected, SqlError):
        assert isinstance(found, SqlError)
        assert told_by(found) == told_by(expected)
    else:
        assert found == expected
        assert told(lambda: by_splits(source, data, cuts, 1)) == expected


def told(work: Callable[[], list[Any]]) -> list[str] | SqlError:
    """The result as text, or the error."""
    try:
        return list(map(str, work()))
    except SqlError as error:
        return error


def told_by(error: SqlError) -> tuple[str, str, str | None]:
    return error.sqlstate, error.message, error.detail


CUTS = st.just([]) | st.lists(st.integers(0, 200), max_size=4)


@settings(max_examples=scaled(150))
@given(csv_files(), CUTS, st.sampled_from(['"', "\\"]))
def test_csv_means_the_same_wherever_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cuts: list[int], escape: str
) -> None:
    options = CopyOptions(CopyFormat.CSV, ",", "", escape=escape)
    width = len(next(iter(data.split(b"\n"))).split(b",")) if b'"' not in data else len(TYPES)
    columns = COLUMNS[: 2 if width <= 2 else len(TYPES)]
    agree(tmp_path_factory.mktemp("csv"), data, CsvFormat(options, ()), columns, cuts)


JSON_LINES = st.sampled_from([
    '{"a": 1, "b": "x"}', '{"a": 2}', '{"b": null, "a": "3"}', '{"a": 4, "c": 1.50}', '{"a": 5, "d": "2024-02-29"}', "",
    '{"a": 6, "e": true, "h": [1, null]}', '{"a": 7, "b": {"x": [1e3]}}', "  ", '{"a": null}', '{"a": 1', '{"z": 1}',
    '{"a": 8, "f": "12345678-1234-5678-1234-567812345678", "g": "2024-01-01 10:00+02"}',
])  # fmt: skip


@settings(max_examples=scaled(80))
@given(st.lists(JSON_LINES, max_size=8), st.sampled_from(["\n", "\r\n"]), st.booleans(), CUTS)
def test_json_means_the_same_wherever_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str, array: bool, cuts: list[int]
) -> None:
    text = f"[{','.join(filter(None, map(str.strip, lines)))}]" if array else end.join(lines)
    agree(tmp_path_factory.mktemp("json"), text.encode(), JsonFormat(array), COLUMNS, cuts)


# On Spark itself.


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, local_spark: SparkSession) -> Iterator[Server]:
    """A server that splits even files of a few kilobytes."""
    cut = {"spark.sql.files.maxPartitionBytes": "4000", "spark.sql.files.openCostInBytes": "1"}
    started = Server(
        tmp_path_factory.mktemp("data"), (tmp_path_factory.mktemp("files"),), lent=local_spark, hosts=("*",)
    )
    with configured(local_spark, cut):
        yield started
    started.close()


@pytest.fixture(scope="module")
def client(server: Server) -> Client:
    return server.client()


@pytest.fixture
def folder(server: Server, tmp_path: Path) -> Path:
    inside = server.files[0] / tmp_path.name
    inside.mkdir()
    return inside


def both(client: Client, columns: str, path: Path, options: str, names: str = "") -> Outcome:
    """Runs both engines, checks that they agree, and gives the result."""
    here, there = (outcome(client, columns, str(path), f"{options}, ENGINE {e}", names) for e in ("local", "spark"))
    assert there == here
    return here


def numbered(count: int) -> bytes:
    return b"".join(b'%d,"w\xc3\xb6rd, %d"\n' % (i, i % 7) for i in range(count))


def test_files_in_many_splits(client: Client, folder: Path) -> None:
    quoted = b"".join(b'%d,"two\nlines %s"\n' % (i, b"x" * (i % 50)) for i in range(100))
    write(folder, {"plain.csv": b"n,t\r\n" + numbered(300).replace(b"\n", b"\r\n"), "quoted.csv": b"h,h\n" + quoted})
    assert len(both(client, "n int, t text", folder, "FORMAT csv, HEADER")) == 400
    bad = numbered(300) + b"x,y\n" + numbered(300)
    write(folder, {"bad/a.csv": bad})
    state, _, detail = both(client, "n int, t text", folder / "bad", "FORMAT csv")
    assert (state, detail) == ("22P02", 'COPY t, line 301, column n: "x"')


def test_compressed_files_in_partitions(client: Client, folder: Path) -> None:
    zstandard = pa.compress(numbered(5), "zstd", asbytes=True)
    write(folder, {"p=1/q=a b/a.csv.gz": gzip.compress(numbered(40)), "p=2/q=%25/b.csv.bz2": bz2.compress(numbered(50)),
                   "p=2/q=__HIVE_DEFAULT_PARTITION__/c.csv.zst": zstandard})  # fmt: skip
    found = both(client, "n int, q text, p int, t text", folder, "FORMAT csv, MAPPING (1 AS n, 2 AS t)")
    assert Counter((row[1], row[2]) for row in found) == {("a b", "1"): 40, ("%", "2"): 50, (None, "2"): 5}


def test_json_files(client: Client, folder: Path) -> None:
    lines = b"".join(b'{"n": %d, "m": 1.%030d, "j": {"b": %d, "a": "\\u00fc"}}\n' % (i, i, i) for i in range(60))
    write(folder, {"a.jsonl": lines, "b.json": b"[" + b",\n".join(lines.splitlines()) + b"]"})
    columns = "n int, m numeric, j jsonb"
    assert both(client, columns, folder / "a.jsonl", "FORMAT json") == both(
        client, columns, folder / "b.json", "FORMAT json, ARRAY"
    )
    write(folder, {"c.jsonl": lines + b'{"n": 1.5}\n' + lines})
    state, _, detail = both(client, columns, folder / "c.jsonl", "FORMAT json")
    assert (state, detail) == ("22P02", 'COPY t, line 61, column n: "1.5"')


def test_columnar_files_of_unlike_schemas(client: Client, folder: Path) -> None:
    noon = datetime(2024, 2, 29, 12, 0, 0, 250)
    days = {"d": pa.array([date(1500, 1, 1), None]), "s": pa.array([noon, None], pa.timestamp("ns")),
            "z": pa.array([noon.replace(tzinfo=UTC), None], pa.timestamp("us", "UTC"))}  # fmt: skip
    narrow = {"n": pa.array([1, None], pa.int16()), "m": pa.array([Decimal("1.10"), None], pa.decimal128(38, 10))}
    wide = {"n": pa.array([2**40, 0]), "m": pa.array([2**60 + 1, 1])}
    for k, numbers in enumerate([narrow, wide]):
        (folder / f"k={k}").mkdir()
        pq.write_table(pa.table(days | numbers), folder / f"k={k}" / "a.parquet")
        orc.write_table(pa.table(days | numbers), str(folder / f"k={k}" / "a.orc"))
    columns_ = "n int8, m numeric, d date, s timestamp, z timestamptz, k int"
    parquet = both(client, columns_, folder, "FORMAT parquet")
    assert len(parquet) == 4
    assert both(client, columns_, folder, "FORMAT orc") == parquet
    assert both(client, "n int4", folder, "FORMAT parquet, MAPPING (n AS n)")[0] == "22003"
    uuids = pa.table({"u": pa.array([b"0123456789abcdef", None], pa.binary(16)), "b": [True, None], "f": [0.1, None]})
    pq.write_table(uuids, folder / "u.parquet")
    assert len(both(client, "u uuid, b bool, f float8", folder / "u.parquet", "FORMAT parquet")) == 2


def test_numerics_of_any_scale(client: Client, folder: Path) -> None:
    """Scales that are negative or above the precision, from decimals, integers and text."""
    columns_, rounded = "a numeric(2,-3), b numeric(3,5)", [("-1000", "-0.00999"), ("12000", "0.00123"), (None, None)]
    values = [Decimal("12499.9"), Decimal("-500.0"), None], [Decimal("0.001234"), Decimal("-0.009994"), None]
    given = pa.table({n: pa.array(v, pa.decimal128(20, 6)) for n, v in zip("ab", values, strict=True)})
    pq.write_table(given, folder / "a.parquet")
    assert sorted(both(client, columns_, folder / "a.parquet", "FORMAT parquet"), key=repr) == sorted(rounded, key=repr)
    write(folder, {"b.csv": b"12499.9,0.001234\n-500,-0.009994\n,\n"})
    assert sorted(both(client, columns_, folder / "b.csv", "FORMAT csv"), key=repr) == sorted(rounded, key=repr)
    pq.write_table(pa.table({"a": [99_500]}), folder / "c.parquet")
    assert both(client, "a numeric(2,-3)", folder / "c.parquet", "FORMAT parquet")[0] == "22003"


def test_values_with_parts(client: Client, folder: Path) -> None:
    """Lists, structs and maps, as in Parquet and ORC; a column without a declared type takes the file's type."""
    noon = datetime(2024, 2, 29, 12, 0, 0, 250)
    table = pa.table({
        "l": pa.array([[1, None], None, []], pa.list_(pa.int32())),
        "t": pa.array([["ü", ""], [None], None], pa.list_(pa.string())),
        "n": pa.array([[Decimal("1.5")], None, []], pa.list_(pa.decimal128(10, 2))),
        "at": pa.array([[noon, None], None, []], pa.list_(pa.timestamp("us"))),
        "s": [{"a": 1, "b": ["x", None], "c": {"d": noon}}, None, {"a": None, "b": [], "c": None}],
        "m": pa.array([[("k", 1.5)], None, []], pa.map_(pa.string(), pa.float64())),
        "ll": [[[1], []], None, []],
    })  # fmt: skip
    pq.write_table(table, folder / "a.parquet")
    orc.write_table(table, str(folder / "a.orc"))
    columns_ = "l int[], t text[], n numeric[], at timestamp[], s jsonb, m jsonb, ll jsonb"
    found = both(client, columns_, folder / "a.parquet", "FORMAT parquet")
    assert len(found) == 3
    assert both(client, columns_, folder / "a.orc", "FORMAT orc") == found
    for name in ("a.parquet", "a.orc"):
        client.run(f"CREATE TABLE made FROM '{folder}/{name}'")
        assert client.sorted("TABLE made") == found
        types = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'made'::regclass"
        assert client.rows(f"{types} AND attnum > 0 ORDER BY attnum") == [
            ("integer[]",), ("text[]",), ("numeric(10,2)[]",), ("timestamp without time zone[]",),
            ("jsonb",), ("jsonb",), ("jsonb",),
        ]  # fmt: skip
        client.run("DROP TABLE made")
    assert both(client, "t int[]", folder / "a.orc", "FORMAT orc, MAPPING (t AS t)")[0] == "42804"


def test_rows_that_are_left_out(client: Client, folder: Path) -> None:
    """Both engines reject the same rows for the same reasons, or fail on the same first row."""
    bad = b"x,y\n4,\xff\n\n1,2,3\n" + numbered(300) + b"5\n,z\n9999999999,w\n-1,minus\n"
    write(folder, {"a.csv": numbered(100) + bad, "b.csv": b"1,one\ny,two\n"})
    pq.write_table(pa.table({"n": [1, None, 2**40, -3, 2**41]}), folder / "c.parquet")
    client.run("CREATE TABLE r (n int NOT NULL CHECK (n > -1), t text)")

    def load(columns: str, path: str, format_: str, engine: str, most: int) -> None:
        options = f"FORMAT {format_}, ENGINE {engine}, MAX REJECTS {most}, LOAD_ID '{engine} {path}'"
        command = f"COPY r {columns} FROM '{folder / path}' WITH ({options})"
        client.server.run(client.work(command), timeout=250)

    for columns, path, format_, count in (("(n, t)", "*.csv", "csv", 9), ("(n)", "c.parquet", "parquet", 4)):
        found = []
        for engine in ("local", "spark"):
            load(columns, path, format_, engine, count)
            found.append(client.rows("SELECT file, line, column_name, text, sqlstate, reason FROM freshet.rejects "
                                     f"WHERE load_id = '{engine} {path}'"))  # fmt: skip
        assert found[0] == found[1]
        assert len(found[0]) == count
    client.run("TRUNCATE r")
    errors = []
    for engine in ("local", "spark"):
        with pytest.raises(SqlError) as raised:
            load("", "?.csv", "csv", engine, 2)
        errors.append(told_by(raised.value))
    assert errors[0] == errors[1]
    assert client.rows("SELECT count(*) FROM r") == [("0",)]
    client.run("DROP TABLE r")


def test_spark_finds_the_columns_that_are_found_here(server: Server, folder: Path) -> None:
    write(folder, {"c/k=1/a b.csv": b"n,x\n" + b"1,2.5\n" * 20_000, "c/k=2/b.csv": b"n,y\n8,2024-02-29\n",
                   "j/[a].jsonl": b'{"n": 1, "d": {}}\n{"x": "y"}\n', "e/a.csv": b"\n"})  # fmt: skip
    (folder / "p/k=x").mkdir(parents=True)
    table = pa.table({
        "i": pa.array([1], pa.int32()), "n": [Decimal("1.50")], "f": [1.5], "t": ["x"], "b": [b"x"], "y": [True],
        "d": [date(2024, 2, 29)], "at": [datetime(2024, 2, 29)], "tz": [datetime(2024, 2, 29, tzinfo=UTC)], "l": [[1]],
        "s": [{"a": [1]}], "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "ll": [[["x"]]],
        "ls": [[{"a": 1}]], "ld": pa.array([[Decimal("1.5")]], pa.list_(pa.decimal128(10, 2))),
    })  # fmt: skip
    pq.write_table(table, folder / "p/k=x/a.parquet")
    orc.write_table(table.drop_columns(["at", "tz"]), folder / "a.orc")
    csv = CsvFormat(CopyOptions(CopyFormat.CSV, ",", "", header=True), ())
    spark = server.coordinator.spark.session()

    def elsewhere(path: str) -> tuple[tuple[()], RemoteFiles]:
        return (), RemoteFiles(f"file:{folder}/{path}")

    def pairs(found: list[FoundColumn]) -> list[tuple[str, SqlType | None]]:
        return [(column.name, column.type) for column in found]

    for path, format_ in (("c", csv), ("j", JsonFormat(False, False))):
        files, remote = elsewhere(path)
        local = locate(path, [folder], (".csv", ".jsonl"))
        assert isinstance(local, LocalFiles)
        source = TextSource("t", files, (), format_, remote=remote)
        assert columns_by_spark(spark, source, DEFAULT_STYLE, Cancel()) == columns_of_text(
            local, format_, DEFAULT_STYLE
        )
    for path, of in (("p", ColumnarFormat.PARQUET), ("a.orc", ColumnarFormat.ORC)):
        files, remote = elsewhere(path)
        local = locate(path, [folder], (".parquet",))
        assert isinstance(local, LocalFiles)
        found = columns_by_spark(spark, ColumnarSource(of, files, (), remote=remote), DEFAULT_STYLE, Cancel())
        assert pairs(found) == pairs(columns_of_arrow(local, of, DEFAULT_STYLE))
    files, remote = elsewhere("e")
    with pytest.raises(SqlError) as raised:
        columns_by_spark(spark, TextSource("t", files, (), csv, remote=remote), DEFAULT_STYLE, Cancel())
    assert raised.value.sqlstate == "22P04"


def test_what_only_spark_reads(server: Server, client: Client, folder: Path) -> None:
    """Folders by URI: only Spark knows their partitions, schemas and headers."""
    write(folder, {"c/k=1/a.csv": b"n,x\n" + numbered(200), "c/k=2/b.csv": b"x,n\n8,7\n"})
    for k in (1, 2):
        (folder / f"p/k={k}").mkdir(parents=True)
        pq.write_table(pa.table({"n": [k, None]}), folder / f"p/k={k}/a.parquet")
    columns = (LoadColumn("k", INT4), LoadColumn("n", INT4))
    mapped = CsvFormat(CopyOptions(CopyFormat.CSV, ",", "", header=True), ("k", "n"), mapped=True)
    csv = TextSource("t", (), columns, mapped, remote=RemoteFiles(f"file:{folder}/c"))
    parquet = ColumnarSource(ColumnarFormat.PARQUET, (), columns, remote=RemoteFiles(f"file:{folder}/p/*/*.parquet"))

    def loaded(source: LoadSource) -> Counter[Any]:
        dictionary = Dictionary(SECRET)
        return Counter(
            decoded(list(read_with_spark(server.coordinator.spark.session(), source, dictionary)), columns, dictionary)
        )

    assert loaded(parquet) == Counter([(k, None if n is None else k) for k in (1, 2) for n in (0, None)])
    assert loaded(csv)[(2, 7)] == 1
    with pytest.raises(SqlError) as raised:
        loaded(replace(parquet, columns=(LoadColumn("z", INT4),)))
    assert raised.value.sqlstate == "42703"
    state, message, detail = outcome(client, "n int", "s3a://bucket/a.csv", "FORMAT csv")
    assert (state, message) == ("58000", "Spark has no connector for these files")
    assert "S3AFileSystem" in (detail or "")


def test_a_database(server: Server, client: Client, folder: Path) -> None:
    """Derby's jar comes with pyspark; it is filled through Spark's own writer."""
    url = f"jdbc:derby:{folder}/shop"
    with server.coordinator.spark.session() as session:
        rows = [(i, f"w{i % 3}", Decimal(i) / 4, datetime(2024, 1, 1, 0, 0, i % 60)) for i in range(100)]
        frame = session.createDataFrame(rows, "ID int, NAME string, PRICE decimal(10,2), AT timestamp_ntz")
        frame.write.jdbc(f"{url};create=true", "ITEMS")
    columns = "id int, name text, price numeric(10,2), at timestamp"
    cut = "PARTITION_COLUMN 'ID', LOWER_BOUND 0, UPPER_BOUND 100, PARTITIONS 3, FETCH_SIZE 10"
    found = outcome(client, columns, f"jdbc:derby:{folder.name}/shop", f"FORMAT jdbc, DBTABLE 'ITEMS', {cut}")
    assert Counter(found) == Counter((str(i), name, f"{price:.2f}", str(at)) for i, name, price, at in rows)
    query = "FORMAT jdbc, QUERY 'SELECT ID, PRICE FROM ITEMS WHERE ID < 2', MAPPING (\"ID\" AS n)"
    assert outcome(client, "n int, price numeric(10,2)", url, query) == [("0", "0.00"), ("1", "0.25")]
    assert outcome(client, "id int", url, "FORMAT jdbc, DBTABLE 'ITEMS'")[0] == "42703"

    def made(options: str) -> Outcome:
        try:
            client.server.run(client.work(f"CREATE TABLE t FROM '{url}' WITH ({options})"), timeout=250)
            assert client.rows("SELECT load_id, engine, state, rows FROM freshet.loads WHERE load_id = 'made'") == [
                ("made", "spark", "committed", "100")
            ]
            return client.sorted("SELECT * FROM t")
        finally:
            client.run("DROP TABLE IF EXISTS t")

    assert made("DBTABLE 'ITEMS', LOAD_ID 'made'") == found
    named = made("FORMAT jdbc, DBTABLE 'ITEMS', LOAD_ID 'made', MAPPING (id AS n, \"NAME\" AS \"Name\")")
    assert Counter(named) == Counter((str(i), name) for i, name, _, _ in rows)
    with pytest.raises(SqlError) as raised:
        made("DBTABLE 'ITEMS', MAPPING (zz AS n)")
    assert raised.value.sqlstate == "42703"
    with pytest.raises(SqlError) as raised:
        client.run("CREATE TABLE t FROM 's3a://bucket/a.csv'")
    assert (raised.value.sqlstate, raised.value.message) == ("58000", "Spark has no connector for these files")
