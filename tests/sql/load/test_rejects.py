"""COPY … WITH (MAX REJECTS n): bad rows are left out, listed with the reason, and belong to their load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from ivm.errors import SqlError
from sql.engine.loads import REJECTS_KEPT
from sql.pgwire.file_formats import CsvFormat
from sql.statements.statements import CopyFormat, CopyOptions
from storage.dictionary import Dictionary
from storage.load.json_rows import JsonFormat
from storage.load.rejects import TEXT_LENGTH, Rejects
from storage.load.source import read_here
from storage.load.text import TextFormat
from storage.load.text_source import TextSource
from tests.sql.load.test_load_engines import COLUMNS, CUTS, JSON_LINES, TYPES, by_splits, csv_files, told, told_by
from tests.storage.load.test_load import SECRET, decoded
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server

REJECTS = "SELECT line, column_name, text, sqlstate, reason FROM freshet.rejects"
Row = tuple[str | None, ...]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "files"
    inside.mkdir()
    return inside


@pytest.fixture
def server(tmp_path: Path, folder: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data", files=(folder,))
    yield server
    server.close()


@pytest.fixture
def client(server: Server) -> Client:
    client = server.client()
    client.run("CREATE TABLE t (a int NOT NULL CHECK (10 / a > 0), b date)")
    return client


def left_out(client: Client, folder: Path, name: str, data: bytes, options: str) -> list[Row]:
    """The rejects of a load, whose good rows are (1, NULL) and (2, 2024-02-29)."""
    (folder / name).write_bytes(data)
    client.run("DELETE FROM t")
    assert client.run(f"COPY t FROM '{name}' WITH ({options}, MAX REJECTS 100, LOAD_ID '{name}')") == "COPY 2"
    assert client.sorted("SELECT * FROM t") == [("1", None), ("2", "2024-02-29")]
    return client.rows(f"{REJECTS} WHERE load_id = '{name}'")


def test_bad_rows_of_csv(client: Client, folder: Path) -> None:
    lines = [b"a,b", b"1,", b"x,", b"3", b"3,,", b"2,2024-02-29", b",", b'4,"soon\nor later"', b"0,", b"-3,", b"5,\xff",
             b"y,never", b"99999999999,"]  # fmt: skip
    expected = [
        ("3", "a", "x,", "22P02", 'invalid input syntax for type integer: "x"'),
        ("4", None, "3", "22P04", 'missing data for column "b"'),
        ("5", None, "3,,", "22P04", "extra data after last expected column"),
        ("7", "a", ",", "23502", 'null value in column "a" violates not-null constraint'),
        ("9", "b", '4,"soon\nor later"', "22007", 'invalid input syntax for type date: "soon\nor later"'),
        ("12", None, "5,\ufffd", "22021", 'invalid byte sequence for encoding "UTF8": 0xff'),
        ("13", "a", "y,never", "22P02", 'invalid input syntax for type integer: "y"'),
        ("14", "a", "99999999999,", "22003", 'value "99999999999" is out of range for type integer'),
        (None, None, "(-3, null)", "23514", 'new row for relation "t" violates check constraint "t_a_check"'),
        (None, None, "(0, null)", "22012", "division by zero"),
    ]
    assert left_out(client, folder, "a.csv", b"\n".join(lines), "FORMAT csv, HEADER") == expected
    for name, end in (("b.csv", "\r\n"), ("c.csv", "\r")):
        data = end.encode().join(lines).replace(b"soon\nor", f"soon{end}or".encode())
        found = [(row[0], row[1], (row[2] or "").replace(end, "\n"), row[3], (row[4] or "").replace(end, "\n"))
                 for row in left_out(client, folder, name, data, "FORMAT csv, HEADER")]  # fmt: skip
        assert found == expected


def test_bad_rows_of_text(client: Client, folder: Path) -> None:
    data = b"1\t\\N\n2\t2024-02-29\nx\t\\N\n\\N\t\\N\n4\t\\xff\n5\t\\N\t\\N\n"
    assert left_out(client, folder, "a.txt", data, "FORMAT text") == [
        ("3", "a", "x\t\\N", "22P02", 'invalid input syntax for type integer: "x"'),
        ("4", "a", "\\N\t\\N", "23502", 'null value in column "a" violates not-null constraint'),
        ("5", "b", "4\t\\xff", "22021", 'invalid byte sequence for encoding "UTF8": 0xff'),
        ("6", None, "5\t\\N\t\\N", "22P04", "extra data after last expected column"),
    ]


def test_bad_rows_of_json(client: Client, folder: Path) -> None:
    lines = ['{"a": 1}', '{"a": 2, "b": "2024-02-29"}', '{"a": 1.50}', '{"b": null}', "[]", '{"a": 3, "c": 1}']
    expected = [
        ("3", "a", '{"a": 1.50}', "22P02", 'invalid input syntax for type integer: "1.50"'),
        ("4", "a", '{"b": null}', "23502", 'null value in column "a" violates not-null constraint'),
        ("5", None, "[]", "22P04", "a row must be a JSON object"),
        ("6", None, '{"a": 3, "c": 1}', "42703", 'the target has no column "c"'),
    ]
    array = f"[{','.join(lines)}]".encode()
    assert left_out(client, folder, "array.json", array, "FORMAT json, ARRAY") == expected
    worse = "\n".join([*lines, "{", '{"b": "\\ud800", "a": 4}', '{"a": "\xff']).encode("latin-1")
    found = left_out(client, folder, "a.json", worse, "FORMAT json")
    assert found == [
        *expected,
        ("7", None, "{", "22P02", "invalid input syntax for type json"),
        ("8", None, '{"b": "\\ud800", "a": 4}', "22P05", "unsupported Unicode escape sequence"),
        ("9", None, '{"a": "\ufffd', "22021", 'invalid byte sequence for encoding "UTF8": 0xff'),
    ]


@pytest.mark.parametrize("name", ["a.parquet", "a.orc"])
def test_bad_rows_of_columns(client: Client, folder: Path, name: str) -> None:
    b = pa.array([None, 19782, None, None, 2**31 - 1], pa.int32()).cast(pa.date32())
    table = pa.table({"a": [1, 2, 2**40, None, 4], "b": b})
    pq.write_table(table, folder / name) if name == "a.parquet" else orc.write_table(table, str(folder / name))
    options = f"FORMAT {name[2:]}, MAX REJECTS 9"
    assert client.run(f"COPY t FROM '{name}' WITH ({options})") == "COPY 2"
    rows = client.rows(REJECTS)
    assert [(row[:2], row[3]) for row in rows] == [
        ((None, "a"), "22003"), ((None, "b"), "22008"), ((None, "a"), "23502"),
    ]  # fmt: skip
    assert [row[2] for row in rows] == [
        "(1099511627776, null)", "(4, <value out of range: 2147483647>)", "(null, null)"
    ]  # fmt: skip
    assert client.rows("SELECT DISTINCT file FROM freshet.rejects") == [(str(folder / name),)]
    assert client.state(f"COPY t (a) FROM '{name}' WITH ({options}, MAPPING (b AS a))") == "42804"


def test_more_bad_rows_than_allowed_load_nothing(client: Client, folder: Path) -> None:
    (folder / "a.csv").write_text("1,\nx,\n2,\ny,\nz,\n")
    for most in (0, 2):
        error = client.error(f"COPY t FROM 'a.csv' WITH (FORMAT csv, MAX REJECTS {most})")
        assert (error.sqlstate, error.message) == ("22P02", 'invalid input syntax for type integer: "x"')
        assert error.detail == 'COPY t, file "a.csv", line 2, column a: "x,"'
        assert error.hint is not None
        assert f"MAX REJECTS {most}" in error.hint
        assert client.rows("SELECT * FROM t") == client.rows("SELECT * FROM freshet.rejects") == []
    assert client.run("COPY t FROM 'a.csv' WITH (FORMAT csv, MAX REJECTS 3)") == "COPY 2"
    (folder / "b.csv").write_text("-1,\n-2,\n")
    assert client.state("COPY t FROM 'b.csv' WITH (FORMAT csv, MAX REJECTS 1)") == "23514"


def test_what_is_no_row_s_fault_ends_the_load(client: Client, folder: Path) -> None:
    client.run("CREATE TABLE k (a int PRIMARY KEY)")
    for data, state in (('1,"\n', "22P04"), ("1,\n2,\r\n", "22P04")):
        (folder / "a.csv").write_bytes(data.encode())
        assert client.state("COPY t FROM 'a.csv' WITH (FORMAT csv, MAX REJECTS 9)") == state
    (folder / "k.csv").write_text("1\n1\n")
    assert client.state("COPY k FROM 'k.csv' WITH (FORMAT csv, MAX REJECTS 9)") == "23505"
    (folder / "a.json").write_text("[{")
    assert client.state("COPY t FROM 'a.json' WITH (FORMAT json, ARRAY, MAX REJECTS 9)") == "22P02"


def test_rejects_stand_and_fall_with_their_load(server: Server, client: Client, folder: Path) -> None:
    (folder / "a.csv").write_text("1,\nx,\n")
    command = "COPY t FROM 'a.csv' WITH (FORMAT csv, MAX REJECTS 9, LOAD_ID 'it''s')"
    client.run("BEGIN")
    assert client.run(command) == "COPY 1"
    notice = client.notices()[0]
    assert (notice.message, notice.hint) == (
        "1 row was rejected", "SELECT * FROM freshet.rejects WHERE load_id = 'it''s';"
    )  # fmt: skip
    assert client.rows(REJECTS) == []
    client.run("ROLLBACK")
    assert client.rows(REJECTS) == []
    client.run(command)
    expected = [("it's", "t", str(folder / "a.csv"), "2", "a", "x,", "22P02",
                 'invalid input syntax for type integer: "x"')]  # fmt: skip
    assert client.rows("SELECT * FROM freshet.rejects") == expected
    assert client.run(command) == "COPY 0"
    server.restart()
    client = server.client()
    assert client.rows("SELECT * FROM freshet.rejects") == expected
    assert client.rows("SELECT rows, rejects FROM freshet.loads") == [("1", "1")]
    client.run("DROP TABLE t")
    assert client.rows("SELECT * FROM freshet.rejects") == []


def test_a_table_keeps_the_rejects_of_its_last_loads(server: Server, client: Client, folder: Path) -> None:
    (folder / "a.csv").write_text("x" * 2 * TEXT_LENGTH + "\n")
    for i in range(REJECTS_KEPT + 2):
        client.run(f"COPY t (a) FROM 'a.csv' WITH (FORMAT csv, MAX REJECTS 1, LOAD_ID '{i}')")
    kept = [(str(i), str(TEXT_LENGTH + 3)) for i in range(2, REJECTS_KEPT + 2)]
    for _ in range(2):
        assert client.rows("SELECT load_id, length(text) FROM freshet.rejects") == kept
        assert client.rows("SELECT sum(rejects) FROM freshet.loads") == [(str(REJECTS_KEPT + 2),)]
        server.restart()
        client = server.client()


def test_from_stdin(client: Client) -> None:
    for options in ("MAX REJECTS 2", "MAX_REJECTS = 2", "ON_ERROR ignore, REJECT_LIMIT 2", "ON_ERROR 'ignore'"):
        client.run(f"COPY t FROM STDIN WITH ({options})", b"1\t\\N\nx\t\\N\n0\t\\N\n2\t\\N\n")
        assert client.sorted("SELECT a FROM t") == [("1",), ("2",)]
        client.run("DELETE FROM t")
    assert client.rows("SELECT DISTINCT source, rows, rejects, state FROM freshet.loads") == [
        ("STDIN", "2", "2", "committed")
    ]
    assert client.rows("SELECT DISTINCT file, line, sqlstate FROM freshet.rejects ORDER BY 2") == [
        (None, "2", "22P02"), (None, None, "22012")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "state"),
    [
        ("MAX REJECTS -1", "22023"),
        ("MAX REJECTS", "22023"),
        ("MAX REJECTS 10001", "22023"),
        ("MAX REJECTS 1.5", "22023"),
        ("MAX REJECTS '9999999999999999999999'", "22023"),
        ("MAX 1", "42601"),
        ("MAX REJECTS 1, MAX REJECTS 1", "42601"),
        ("MAX REJECTS 1, ON_ERROR ignore", "42601"),
        ("REJECT_LIMIT 1", "22023"),
        ("ON_ERROR ignore, REJECT_LIMIT 0", "22023"),
        ("ON_ERROR unknown", "22023"),
        ("FORMAT binary, MAX REJECTS 1", "0A000"),
    ],
)
def test_bad_options(client: Client, options: str, state: str) -> None:
    assert client.state(f"COPY t FROM STDIN WITH ({options})") == state
    assert client.rows("SELECT 1") == [("1",)]


def test_rejects_are_for_copy_from(client: Client, folder: Path) -> None:
    assert client.state("COPY t TO STDOUT WITH (MAX REJECTS 1)") == "42601"


# The same rejects wherever a file is split.


def agree(folder: Path, data: bytes, format_: TextFormat, width: int, cuts: list[int]) -> None:
    path = folder / "f"
    path.write_bytes(data)
    columns = COLUMNS[:width]
    source = TextSource("t", (path,), columns, format_)
    dictionary, here = Dictionary(SECRET), Rejects("t", 100)
    expected = told(lambda: decoded(list(read_here(source, dictionary, here)), list(columns), dictionary))
    for size in (1000, 1):
        there = Rejects("t", 100)
        found = told(lambda there=there, size=size: by_splits(source, data, cuts, size, there))  # type: ignore[misc]
        if isinstance(expected, SqlError):
            assert isinstance(found, SqlError)
            assert cuts or size == 1 or told_by(found) == told_by(expected)
        else:
            assert found == expected
            assert sorted(there.found, key=lambda r: r.order) == here.found
    strict = told(lambda: decoded(list(read_here(source, Dictionary(SECRET))), list(columns), dictionary))
    if not isinstance(expected, SqlError):
        assert isinstance(strict, SqlError) == bool(here.found)


@settings(max_examples=scaled(150))
@given(st.lists(csv_files(), min_size=1, max_size=4), CUTS, st.sampled_from(['"', "\\"]))
def test_csv_has_the_same_rejects_wherever_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, files: list[bytes], cuts: list[int], escape: str
) -> None:
    options = CopyOptions(CopyFormat.CSV, ",", "", escape=escape)
    width = 2 if b"," not in files[0] or files[0].count(b",") == 1 else len(TYPES)
    agree(tmp_path_factory.mktemp("csv"), b"\n".join(files), CsvFormat(options, ()), width, cuts)


@settings(max_examples=scaled(80))
@given(st.lists(JSON_LINES, max_size=8), st.sampled_from(["\n", "\r\n"]), st.booleans(), CUTS)
def test_json_has_the_same_rejects_wherever_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str, array: bool, cuts: list[int]
) -> None:
    text = f"[{','.join(filter(None, map(str.strip, lines)))}]" if array else end.join(lines)
    agree(tmp_path_factory.mktemp("json"), text.encode(), JsonFormat(array), len(COLUMNS), cuts)
