"""COPY … FROM 'path' by the local engine: formats, compression, folders, patterns, partitions, names."""

from __future__ import annotations

import bz2
import gzip
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from storage.load.engine import Costs, EngineChoice, choose_engine
from storage.load.paths import LocalFiles
from storage.spark.costs import START_SECONDS
from tests.support.loading import outcome, write
from tests.support.sessions import Client, Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("files")
    started = Server(tmp_path_factory.mktemp("data"), (folder,), hosts=("*",))
    yield started
    started.close()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    connected = server.client()
    yield connected
    connected.close()


@pytest.fixture
def folder(server: Server, tmp_path: Path) -> Path:
    inside = server.files[0] / tmp_path.name
    inside.mkdir()
    return inside


def snappy(data: bytes) -> bytes:
    """Compresses as Hadoop frames it, in at most two blocks of two parts."""
    out = b""
    for block in (data[:7], data[7:]):
        out += struct.pack(">I", len(block))
        for part in filter(None, (block[:4], block[4:])):
            packed = pa.compress(part, "snappy", asbytes=True)
            out += struct.pack(">I", len(packed)) + packed
    return out


LINES = b'1,one\n2,\n3,"thr\nee"\n'
ROWS = [("1", "one"), ("2", None), ("3", "thr\nee")]


def test_csv_in_every_compression(client: Client, folder: Path) -> None:
    write(folder, {"a.csv": LINES, "a.csv.gz": gzip.compress(LINES), "a.csv.bz2": bz2.compress(LINES),
                   "a.csv.zst": pa.compress(LINES, "zstd", asbytes=True), "a.csv.snappy": snappy(LINES)})  # fmt: skip
    for name in ("a.csv", "a.csv.gz", "a.csv.bz2", "a.csv.zst", "a.csv.snappy"):
        assert outcome(client, "n int, t text", f"{folder}/{name}", "FORMAT csv") == ROWS, name
    assert outcome(client, "n int, t text", f"file://{folder}", "FORMAT csv") == sorted(ROWS * 5, key=repr)
    write(folder, {"bad.csv.gz": LINES, "bad.csv.zst": LINES, "bad.csv.bz2": LINES, "bad.csv.snappy": LINES})
    for name in ("bad.csv.gz", "bad.csv.zst", "bad.csv.bz2", "bad.csv.snappy"):
        assert outcome(client, "n int, t text", f"{folder}/{name}", "FORMAT csv")[0] == "22P04", name


def test_fields_by_position_by_number_and_by_header(client: Client, folder: Path) -> None:
    write(folder, {"a.csv": b'Order ID,"the ""t""",x\n1,a,9\n2,b,8\n'})
    path = f"{folder}/a.csv"
    assert outcome(client, "n text, t text, x text", path, "FORMAT csv, HEADER", "(x, t, n)") == [
        ("8", "b", "2"), ("9", "a", "1"),
    ]  # fmt: skip
    mapped = """FORMAT csv, HEADER, MAPPING ("Order ID" AS n, 'the "t"' AS t)"""
    assert outcome(client, "t text, n int", path, mapped) == [("a", "1"), ("b", "2")]
    assert outcome(client, "t text, n text", path, "FORMAT csv, MAPPING (3 AS n, 1 AS t)") == [
        ("1", "9"), ("2", "8"), ("Order ID", "x"),
    ]  # fmt: skip
    assert outcome(client, "t int", path, "FORMAT csv, HEADER, MAPPING (nope AS t)")[0] == "42703"
    state, message, detail = outcome(client, "n text, t text", path, "FORMAT csv, HEADER")
    assert (state, message) == ("22P04", "extra data after last expected column")
    assert detail == 'COPY t, line 2: "1,a,9"'
    state, message, _ = outcome(client, "n text, t text, x text, y text", path, "FORMAT csv, HEADER")
    assert (state, message) == ("22P04", 'missing data for column "y"')
    forced = "FORMAT csv, HEADER, FORCE_NOT_NULL (x), MAPPING (x AS x)"
    write(folder, {"b.csv": b"y,x\n1,\n"})
    assert outcome(client, "y int, x text", f"{folder}/b.csv", forced, "(x)") == [(None, "")]


def test_a_header_that_must_match(client: Client, folder: Path) -> None:
    write(
        folder, {"1/a.csv": b"n,t\n1,x\n", "1/b.csv": b"n,t\n2,y\n", "2/a.csv": b"n,t\n1,x\n", "2/b.csv": b"t,n\nz,3\n"}
    )
    matched = "FORMAT csv, HEADER MATCH"
    assert outcome(client, "n int, t text", f"{folder}/1", matched) == [("1", "x"), ("2", "y")]
    assert outcome(client, "n int, t text", f"{folder}/2", matched) == (
        "22P04", 'column name mismatch in header line field 1: got "t", expected "n"',
        'COPY t, file "b.csv", line 1: "t,n"',
    )  # fmt: skip
    assert outcome(client, "t text, n int", f"{folder}/1", matched, "(n, t)") == [("x", "1"), ("y", "2")]
    assert outcome(client, "n int, t text", f"{folder}/1", f"{matched}, MAPPING (n AS n)")[0] == "42601"
    assert client.state("COPY (SELECT 1) TO STDOUT WITH (HEADER MATCH)") == "0A000"


def test_a_format_that_the_name_tells_is_hinted_at(client: Client, folder: Path) -> None:
    write(folder, {"a.csv.gz": gzip.compress(b"1,x\n"), "a": b"1,x\n"})
    client.run("CREATE TABLE t (n int, t text)")
    assert client.error(f"COPY t FROM '{folder}/a.csv.gz'").hint == (
        "By its name this is csv: COPY ... WITH (FORMAT csv)."
    )
    assert client.error(f"COPY t FROM '{folder}/a'").hint is None
    client.run("DROP TABLE t")


def test_json_lines(client: Client, folder: Path) -> None:
    lines = (
        b'{"n": 1, "t": "\\u00fc\\n", "d": "2024-02-29", "m": 12345678901234567890.5, '
        b'"j": {"b": [1.50, null], "a": 1}, "a": [1, null, 3], "b": true}\r\n\n'
        b'{"t": {"x": 1.0}, "n": "7", "b": null}\n'
    )
    write(folder, {"a.jsonl": lines, "a.json": b"[" + b",".join(lines.split(b"\n")[::2][:1]) + b', {"n": 2}]'})
    columns = "n int, t text, d date, m numeric, j jsonb, a int[], b bool"
    one = ("1", "ü\n", "2024-02-29", "12345678901234567890.5", '{"a": 1, "b": [1.50, null]}', "{1,NULL,3}", "t")
    assert outcome(client, columns, f"{folder}/a.jsonl", "FORMAT json") == [
        one, ("7", '{"x": 1.0}', None, None, None, None, None)
    ]  # fmt: skip
    assert outcome(client, columns, f"{folder}/a.json", "FORMAT json, ARRAY") == [one, ("2", *[None] * 6)]
    assert outcome(client, "k int", f"{folder}/a.jsonl", "FORMAT json, MAPPING (n AS k)") == [("1",), ("7",)]
    assert outcome(client, "n int, t text", f"{folder}/a.jsonl", "FORMAT json") == (
        "42703", 'the target has no column "d"', "COPY t, line 1"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (b'{"n": 1}\n{"n": x}\n', "", ("22P02", "invalid input syntax for type json", 'COPY t, line 2: "{"n": x}"')),
        (b'{"n": 1}\n[2]\n', "", ("22P04", "a row must be a JSON object", "COPY t, line 2")),
        (b'{"n": 1}\n{"n": 1.5}\n', "",
         ("22P02", 'invalid input syntax for type integer: "1.5"', 'COPY t, line 2, column n: "1.5"')),
        (b'{"n": NaN}', "", ("22P02", "invalid input syntax for type json", 'COPY t, line 1: "{"n": NaN}"')),
        (b'{"t": "\xff"}', "", ("22021", 'invalid byte sequence for encoding "UTF8": 0xff', "COPY t, line 1")),
        (b'{"t": "\\ud800"}', "", ("22P05", "unsupported Unicode escape sequence", "COPY t, line 1, column t")),
        (b'[{"n": 1}, 2]', ", ARRAY", ("22P04", "a row must be a JSON object", "COPY t, element 2")),
        (b'{"n": 1}', ", ARRAY", ("22P04", "the file is not one JSON array", "COPY t")),
    ],
)  # fmt: skip
def test_json_errors(client: Client, folder: Path, data: bytes, options: str, expected: tuple[str, ...]) -> None:
    write(folder, {"a.json": data})
    assert outcome(client, "n int, t text", f"{folder}/a.json", f"FORMAT json{options}") == expected


def test_orc_and_parquet(client: Client, folder: Path) -> None:
    table = pa.table({"n": [1, 2], "T": ["a", None]})
    orc.write_table(table, folder / "a.orc", compression="zstd")
    pq.write_table(table, folder / "a.parquet", compression="snappy")
    for name in ("orc", "parquet"):
        path = f"{folder}/a.{name}"
        assert outcome(client, 'n int, "T" text', path, f"FORMAT {name}") == [("1", "a"), ("2", None)]
        assert outcome(client, "t text, n int", path, f'FORMAT {name}, MAPPING ("T" AS t)') == [("a", "1"), (None, "2")]
        assert outcome(client, "n int", path, f"FORMAT {name}")[0] == "42703"
    write(folder, {"b.orc": b"ORC no"})
    assert outcome(client, "n int", f"{folder}/b.orc", "FORMAT orc")[0] == "22P04"


def test_partitions_are_columns(client: Client, folder: Path) -> None:
    write(folder, {"t/day=2024-01-31/city=K%C3%B6ln/a.csv": b"1\n", "t/day=2024-02-01/city=a%2Fb/b.csv": b"2\n3\n",
                   "t/day=2024-02-01/city=__HIVE_DEFAULT_PARTITION__/c.csv": b"4\n", "t/_SUCCESS": b"",
                   "t/_temporary/day=x/city=y/d.csv": b"5\n"})  # fmt: skip
    expected = [("1", "2024-01-31", "Köln"), ("2", "2024-02-01", "a/b"), ("3", "2024-02-01", "a/b"),
                ("4", "2024-02-01", None)]  # fmt: skip
    columns = "n int, day date, city text"
    assert outcome(client, columns, f"{folder}/t", "FORMAT csv") == expected
    assert outcome(client, columns, f"{folder}/t/day=*/*/*.csv", "FORMAT csv") == expected
    assert outcome(client, columns, f"{folder}/t/**/*.csv", "FORMAT csv") == expected
    assert outcome(client, "n int, day date, city text NOT NULL", f"{folder}/t", "FORMAT csv")[0] == "23502"
    state, message, detail = outcome(client, "n int, day int, city text", f"{folder}/t", "FORMAT csv")
    assert (state, message) == ("22P02", 'invalid input syntax for type integer: "2024-01-31"')
    assert detail == 'partition day=2024-01-31, column "day"'
    write(folder, {"t/day=2024-02-02/e.csv": b"6\n"})
    assert outcome(client, columns, f"{folder}/t", "FORMAT csv")[0] == "22023"
    for n in (1, 2):
        (folder / f"p/k={n}").mkdir(parents=True)
        pq.write_table(pa.table({"n": [n * 10]}), folder / f"p/k={n}/a.parquet")
    assert outcome(client, "k int8, n int", f"{folder}/p", "FORMAT parquet") == [("1", "10"), ("2", "20")]
    assert outcome(client, "n int", f"{folder}/p", "FORMAT parquet")[0] == "42703"


def test_patterns_stay_inside(client: Client, folder: Path, tmp_path: Path) -> None:
    write(folder, {"a1.csv": b"1\n", "a2.csv": b"2\n", "[x].csv": b"3\n", "sub/a3.csv": b"4\n"})
    write(tmp_path, {"out/a9.csv": b"9\n"})
    columns = "n int"
    assert outcome(client, columns, f"{folder}/a?.csv", "FORMAT csv") == [("1",), ("2",)]
    assert outcome(client, columns, f"{folder}/a[2-9].csv", "FORMAT csv") == [("2",)]
    assert outcome(client, columns, f"{folder}/[x].csv", "FORMAT csv") == [("3",)]
    assert outcome(client, columns, f"{folder}/**/a*.csv", "FORMAT csv") == [("1",), ("2",), ("4",)]
    assert outcome(client, columns, f"{folder.name}/a*.csv", "FORMAT csv") == [("1",), ("2",)]
    assert outcome(client, columns, f"{folder}/b*.csv", "FORMAT csv")[0] == "58P01"
    for path in (f"{tmp_path}/out/*.csv", "/etc/*", f"{folder}/*/../../../*", "../*", "/*", "**/../*", "file:///etc/*"):
        assert outcome(client, columns, path, "FORMAT csv")[0] == "42501", path
    (folder / "way").symlink_to(tmp_path / "out")
    for path in (f"{folder}/way/*.csv", f"{folder}/w*/*.csv", f"{folder}/**/*.csv", f"{folder}/w*"):
        assert outcome(client, columns, path, "FORMAT csv")[0] == "42501", path
    assert outcome(client, columns, "http://example.com/a.csv", "FORMAT csv")[0] == "0A000"
    assert outcome(client, columns, f"file://elsewhere{folder}/a1.csv", "FORMAT csv")[0] == "0A000"


def test_messages_name_the_file_where_there_are_several(client: Client, folder: Path) -> None:
    write(folder, {"a.csv": b"1\n", "b.csv": b"2\nx\n"})
    state, _, detail = outcome(client, "n int", f"{folder}", "FORMAT csv")
    assert (state, detail) == ("22P02", 'COPY t, file "b.csv", line 2, column n: "x"')


def test_the_session_s_zone_and_style_are_those_of_the_file(client: Client, folder: Path) -> None:
    write(folder, {"a.csv": b"2024-07-01 12:00,01.02.2024\n"})
    client.run("SET timezone = 'Europe/Berlin'")
    client.run("SET datestyle = 'ISO, DMY'")
    columns = "z timestamptz, d date"
    assert outcome(client, columns, f"{folder}/a.csv", "FORMAT csv") == [("2024-07-01 10:00:00+00", "2024-02-01")]


def shape(client: Client, statement: str) -> list[tuple[str | None, ...]]:
    """The columns of a new table t: name, type, whether NOT NULL. Drops the table afterwards."""
    client.run(statement)
    found = client.rows(
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute "
        "WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum"
    )
    client.run("DROP TABLE t")
    return found


def test_a_table_is_made_for_a_csv_file(client: Client, folder: Path) -> None:
    lines = (
        b"id,ok,price,ratio,day,at,tz,uid,code,big,nothing,words\n"
        b"1,t,1.50,1e3,2024-02-29,2024-02-29 12:00,2024-02-29 12:00:00.5+01,12345678-1234-5678-1234-567812345678,007,"
        b"9223372036854775808,,a\n"
        b'-2,false,3,,2024-03-01,2024-02-29T12:00:01,2024-02-29 12:00Z,,1,1,,""\n'
    )
    write(folder, {"k=1/a.csv": lines, "k=2/b.csv": lines})
    expected = [("id", "bigint"), ("ok", "boolean"), ("price", "numeric"), ("ratio", "double precision"),
                ("day", "date"), ("at", "timestamp without time zone"), ("tz", "timestamp with time zone"),
                ("uid", "uuid"), ("code", "text"), ("big", "numeric"), ("nothing", "text"), ("words", "text"),
                ("k", "bigint")]  # fmt: skip
    statement = f"CREATE TABLE t FROM '{folder}/**/*.csv' WITH (HEADER)"
    assert shape(client, statement) == [(*column, "f") for column in expected]
    assert client.run(statement) == "COPY 4"
    assert client.rows("SELECT count(*), sum(price), min(k), max(tz) FROM t") == [
        ("4", "9.00", "1", "2024-02-29 12:00:00+00")
    ]
    assert client.state(statement) == "42P07"
    assert client.run(statement.replace("t FROM", "IF NOT EXISTS t FROM")) == "CREATE TABLE"
    client.run("DROP TABLE t")
    assert client.run(f"{statement} WITH NO DATA") == "CREATE TABLE"
    assert client.rows("SELECT count(*) FROM t") == [("0",)]
    client.run("DROP TABLE t")
    some = f"CREATE TABLE t FROM '{folder}/k=1/a.csv' WITH (HEADER, MAPPING (id AS n, ok AS \"fine?\"))"
    assert shape(client, some) == [("n", "bigint", "f"), ("fine?", "boolean", "f")]
    numbered = f"CREATE TABLE t FROM '{folder}/k=1/a.csv' WITH (MAPPING (1 AS n))"
    assert shape(client, numbered) == [("n", "text", "f")]


def test_a_table_is_made_in_the_transaction_or_not_at_all(client: Client, folder: Path) -> None:
    write(folder, {"a.csv": b"1,a\n" * 3, "bad.csv": b"1\n" * 600_000 + b"x\n", "d.csv": b"a,a\n1,2\n", "e.csv": b""})
    client.run("BEGIN")
    client.run(f"CREATE TABLE t FROM '{folder}/a.csv'")
    assert client.rows("SELECT * FROM t") == [("1", "a")] * 3
    client.run("ROLLBACK")
    assert client.state("SELECT * FROM t") == "42P01"
    assert client.state(f"CREATE TABLE t FROM '{folder}/bad.csv'") == "22P02"
    assert client.state("SELECT * FROM t") == "42P01"
    assert client.state(f"CREATE TABLE t FROM '{folder}/d.csv' WITH (HEADER)") == "42701"
    assert client.state(f"CREATE TABLE t FROM '{folder}/e.csv'") == "22P04"
    assert client.state("CREATE TABLE t FROM 'data'") == "42601"
    assert client.state("CREATE TABLE t FROM '/etc/passwd' WITH (FORMAT csv)") == "42501"
    assert client.state(f"CREATE TABLE t FROM '{folder}/a.csv' WITH (HEADER, MAPPING (zz AS b))") == "42703"
    assert client.state("CREATE TABLE t FROM 's3a://b/a.parquet' WITH (ENGINE local)") == "0A000"


def test_a_table_that_is_made_is_a_load(client: Client, folder: Path) -> None:
    """CREATE TABLE from files has rejects, and a retry is the same load, in its transaction and after its commit."""
    write(folder, {"a.csv": b"1,a\n2,b\n" + b"3,x\n" * 10_000 + b"4\n"})
    made = f"CREATE TABLE t FROM '{folder}/a.csv' WITH (MAX REJECTS 1, LOAD_ID 'first')"
    shown = "SELECT load_id, relation, state, rows, rejects FROM freshet.loads WHERE load_id = 'first'"
    assert client.state(made.replace("MAX REJECTS 1", "MAX REJECTS 0")) == "22P04"
    assert client.rows(shown) == [("first", "t", "failed", "10002", "0")]
    for end in ("ROLLBACK", "COMMIT"):
        client.run("BEGIN")
        assert client.run(made) == "COPY 10002"
        assert client.run(made) == "COPY 0"
        client.run(end)
    client.notices()
    for statement in (made, made.replace("t FROM", "IF NOT EXISTS t FROM")):
        assert client.run(statement) == "COPY 0"
        assert [n.message for n in client.notices()] == [
            'load "first" of table t was committed before: nothing is loaded again'
        ]
    assert client.run(f"COPY t FROM '{folder}/a.csv' WITH (FORMAT csv, LOAD_ID 'first')") == "COPY 0"
    assert client.state(made.replace("'first'", "'second'")) == "42P07"
    assert client.rows(shown)[-1] == ("first", "t", "committed", "10002", "1")
    assert client.rows("SELECT load_id, relation, line, sqlstate FROM freshet.rejects") == [
        ("first", "t", "10003", "22P04")
    ]
    assert client.run(f"CREATE TABLE u FROM '{folder}/a.csv' WITH (LOAD_ID 'first') WITH NO DATA") == "CREATE TABLE"
    assert client.rows("SELECT count(*) FROM freshet.loads WHERE relation = 'u'") == [("0",)]
    client.run("DROP TABLE t, u")


def write_without_type(path: Path) -> None:
    """An ORC file with a column of either a number or a text."""
    either = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, None]), pa.array([None, "x"])])
    orc.write_table(pa.table({"a": [1, 2], "either": either}), path)


def test_columns_without_a_type_here_can_be_left_out(client: Client, folder: Path) -> None:
    write_without_type(folder / "a.orc")
    error = client.error(f"CREATE TABLE t FROM '{folder}/a.orc'")
    what = "sparse_union<_union_0: int64=0, _union_1: string=1>"
    message = f'column "either" is of type {what}, for which there is no type here'
    assert (error.sqlstate, error.message) == ("0A000", message)
    assert client.run(f"CREATE TABLE t FROM '{folder}/a.orc' WITH (MAPPING (a AS a))") == "COPY 2"
    lines = client.rows(f"EXPLAIN COPY t (a) FROM '{folder}/a.orc' WITH (FORMAT orc)")
    assert lines[-1] == ("  a bigint <- a (int64)",)
    client.run("DROP TABLE t")


def test_a_table_is_made_for_json_parquet_and_orc(client: Client, folder: Path) -> None:
    write(folder, {"a.jsonl": b'{"n": 1, "d": "2024-02-29", "j": {}, "b": true, "m": "x", "s": "1"}\n'
                              b'{"m": 2, "f": 1.5e3, "x": null}\n'})  # fmt: skip
    assert shape(client, f"CREATE TABLE t FROM '{folder}/a.jsonl'") == [
        ("n", "bigint", "f"), ("d", "date", "f"), ("j", "jsonb", "f"), ("b", "boolean", "f"), ("m", "text", "f"),
        ("s", "text", "f"), ("f", "double precision", "f"), ("x", "text", "f"),
    ]  # fmt: skip
    schema = pa.schema([pa.field("i", pa.int8(), nullable=False), ("u", pa.uint64()), ("m", pa.decimal128(12, 3)),
                        ("t", pa.time64("us")), ("s", pa.timestamp("ms", "UTC")), ("b", pa.binary())])  # fmt: skip
    pq.write_table(schema.empty_table(), folder / "a.parquet")
    assert shape(client, f"CREATE TABLE t FROM '{folder}/a.parquet'") == [
        ("i", "smallint", "t"), ("u", "numeric(20,0)", "f"), ("m", "numeric(12,3)", "f"),
        ("t", "time without time zone", "f"), ("s", "timestamp with time zone", "f"), ("b", "bytea", "f"),
    ]  # fmt: skip
    orc.write_table(pa.table({"n": pa.array([1], pa.int32()), "t": ["x"]}), str(folder / "a.orc"))
    assert shape(client, f"CREATE TABLE t FROM '{folder}/a.orc'") == [("n", "integer", "f"), ("t", "text", "f")]
    pq.write_table(pa.table({"l": [[1]], "n": [1]}), folder / "l.parquet")
    assert shape(client, f"CREATE TABLE t FROM '{folder}/l.parquet'") == [("l", "bigint[]", "f"), ("n", "bigint", "f")]


def explained(client: Client, statement: str) -> list[str]:
    return [row[0] or "" for row in client.rows(f"EXPLAIN {statement}")]


def test_explain_says_which_engine_and_where_columns_come_from(client: Client, folder: Path) -> None:
    write(folder, {"k=1/a.csv": b"x,n\n1,2\n", "k=2/a.csv": b"x,n\n3,4\n"})
    pq.write_table(pa.table({"n": [1, 2, 3], "T": ["a", "b", "c"]}), folder / "a.parquet")
    client.run("CREATE TABLE t (n int, k int, d date DEFAULT now())")
    why = f"16 bytes: about 0 s here, {START_SECONDS:.0f} s by Spark"
    assert explained(client, f"COPY t (k, n) FROM '{folder}/k=*' WITH (FORMAT csv, HEADER, MAPPING (x AS n))") == [
        "Load into t", f"  engine: local ({why})",
        "  input: 2 files of csv, 16 bytes, rows unknown before they are read",
        "  n integer <- x", "  k integer <- k (folder)", "  d date <- its default",
    ]  # fmt: skip
    found = explained(client, f"COPY t (n) FROM '{folder}/a.parquet' WITH (FORMAT parquet, ENGINE spark)")
    assert found[1] == "  engine: spark (as the statement asks)"
    assert found[2].endswith(", 3 rows")
    assert found[3:5] == ["  n integer <- n (int64)", "  k integer <- NULL"]
    found = explained(client, "COPY t FROM 's3a://bucket/x.csv' WITH (FORMAT csv)")
    assert found == ["Load into t", '  engine: spark (only Spark reads "s3a://bucket/x.csv")']
    assert client.state("EXPLAIN COPY t FROM 's3a://b/x' WITH (FORMAT csv, ENGINE local)") == "0A000"
    assert client.state(f"EXPLAIN CREATE TABLE t FROM '{folder}/a.parquet'") == "42P07"
    assert client.state(f"EXPLAIN COPY t FROM '{folder}/a.parquet' WITH (FORMAT parquet)") == "42703"
    assert client.state("EXPLAIN COPY t FROM '/etc/passwd' WITH (FORMAT csv)") == "42501"
    client.run("DROP TABLE t")


def test_explain_of_a_table_from_files_makes_none(client: Client, folder: Path) -> None:
    write(folder, {"k=1/a.csv": b"x,n\n1,2\n", "k=2/a.csv": b"x,n\n3,4\n"})
    options = "WITH (FORMAT csv, HEADER, MAPPING (x AS n, k AS k))"
    found = explained(client, f"CREATE TABLE t FROM '{folder}/k=*' {options}")
    assert found == [
        "Load into t", f"  engine: local (16 bytes: about 0 s here, {START_SECONDS:.0f} s by Spark)",
        "  input: 2 files of csv, 16 bytes, rows unknown before they are read",
        "  n bigint <- x", "  k bigint <- k (folder)",
    ]  # fmt: skip
    assert client.state("SELECT * FROM t") == "42P01"
    client.run(f"CREATE TABLE t FROM '{folder}/k=*' {options}")
    assert found == explained(client, f"COPY t FROM '{folder}/k=*' {options}")
    client.run("DROP TABLE t")
    found = explained(client, "CREATE TABLE t FROM 's3a://bucket/x.csv'")
    assert found == ["Load into t", '  engine: spark (only Spark reads "s3a://bucket/x.csv")']
    assert client.state("EXPLAIN CREATE TABLE t FROM '/etc/passwd' WITH (FORMAT csv)") == "42501"
    write_without_type(folder / "a.orc")
    assert client.state(f"EXPLAIN CREATE TABLE t FROM '{folder}/a.orc'") == "0A000"


def test_auto_takes_the_engine_that_is_quicker(tmp_path: Path) -> None:
    """The choice depends on the size and on Spark's cores; without Spark it is the local engine."""
    path = tmp_path / "f.csv"
    location = LocalFiles((path,), tmp_path)
    costs = Costs(local=4.0, server=1.0, cores=8.0)
    for size, cores, spark in ((10**8, 64, False), (10**9, 2, False), (10**9, 8, True), (10**8, 8, False)):
        with path.open("wb") as file:
            file.truncate(size)  # no bytes are written
        assert choose_engine("auto", location, costs, cores).spark is spark, (size, cores)
    assert choose_engine("spark", location, costs, 2) == EngineChoice(True, "as the statement asks")
    assert choose_engine("local", location, costs, 64) == EngineChoice(False, "as the statement asks")


def test_a_secret_in_a_uri_is_shown_nowhere(client: Client) -> None:
    client.run("CREATE TABLE t (n int)")
    copy = "COPY t FROM 's3a://key:secret@bucket/x.csv' WITH (FORMAT csv{})"
    shown = '"s3a://key:***@bucket/x.csv"'
    assert explained(client, copy.format("")) == ["Load into t", f"  engine: spark (only Spark reads {shown})"]
    assert client.error(copy.format(", ENGINE local")).message == f"{shown} is read by Spark only"
    client.run("DROP TABLE t")


@pytest.mark.parametrize(
    ("url", "options", "state"),
    [
        ("jdbc:derby:/etc/db", "DBTABLE 't'", "42501"),
        ("jdbc:derby:../db", "DBTABLE 't'", "42501"),
        ("jdbc:derby:shop;create=true", "DBTABLE 't'", "0A000"),
        ("jdbc:derby:memory:x", "DBTABLE 't'", "0A000"),
        ("jdbc:derby:directory:/etc", "DBTABLE 't'", "0A000"),
        ("jdbc:h2:file:/etc/x", "DBTABLE 't'", "0A000"),
        ("jdbc:sqlite:/etc/x", "DBTABLE 't'", "0A000"),
        ("derby:x", "DBTABLE 't'", "22023"),
        ("jdbc:derby:shop", "USER 'u'", "42601"),
        ("jdbc:derby:shop", "DBTABLE 't', QUERY 'SELECT 1'", "42601"),
        ("jdbc:derby:shop", "DBTABLE 't', LOWER_BOUND 1", "42601"),
        ("jdbc:derby:shop", "DBTABLE 't', HEADER", "42601"),
        ("jdbc:postgresql://h/d", "DBTABLE 't', ENGINE local", "0A000"),
    ],
)
def test_databases_that_are_refused(client: Client, url: str, options: str, state: str) -> None:
    assert outcome(client, "n int", url, f"FORMAT jdbc, {options}")[0] == state
