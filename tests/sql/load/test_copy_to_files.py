"""COPY … TO a server-side file: its contents, the allowed folders, and that it is written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.sql.coordination.test_sinks import TYPES, VALUES
from tests.support.sessions import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    out = tmp_path / "out"
    out.mkdir()
    made = Server(tmp_path / "data", files=(out,), places=(str(out),))
    yield made
    made.close()


@pytest.mark.parametrize("options", ["", "(FORMAT csv, HEADER)", "(FORMAT parquet)", "(FORMAT json)"])
def test_what_is_written_can_be_loaded_again(server: Server, options: str) -> None:
    client = server.client()
    left = {"parquet": ("a", "ta", "iv", "n"), "json": ("a", "ta", "y")}  # which a load does not accept
    kept = [n for n in TYPES if not any(f in options and n in names for f, names in left.items())]
    columns = ", ".join(f"{n} {TYPES[n]}" for n in kept)
    client.run(f"CREATE TABLE t ({columns}); CREATE TABLE back ({columns})")
    for i in range(3):
        client.run(
            f"INSERT INTO t VALUES ({', '.join('NULL' if not i else VALUES[n][i % len(VALUES[n])] for n in kept)})"
        )
    client.run("INSERT INTO t SELECT * FROM t")
    assert client.run(f"COPY t TO 'rows.data' {options}") == "COPY 6"
    assert client.run(f"COPY back FROM 'rows.data' {options}") == "COPY 6"
    assert client.sorted("SELECT * FROM back") == client.sorted("SELECT * FROM t")


def test_any_query_and_any_number_of_rows(server: Server, tmp_path: Path) -> None:
    client, out = server.client(), tmp_path / "out"
    query = "SELECT i, 'n' || i AS name FROM generate_series(1, 200000) AS i"
    assert client.run(f"COPY ({query}) TO '{out}/many.parquet' (FORMAT parquet)") == "COPY 200000"
    found = pq.read_table(out / "many.parquet")
    assert (found.num_rows, found.column_names) == (200_000, ["i", "name"])
    assert client.run(f"COPY (SELECT 1 WHERE false) TO 'file://{out}/none.csv' (FORMAT csv)") == "COPY 0"
    assert (out / "none.csv").read_bytes() == b""
    client.run("CREATE TABLE t (a int); CREATE MATERIALIZED VIEW v AS SELECT a FROM t; INSERT INTO t VALUES (5)")
    assert client.run("COPY v TO 'v'") == "COPY 1"
    assert (out / "v").read_text() == "5\n"
    assert sorted(os.listdir(out)) == ["many.parquet", "none.csv", "v"]


def test_where_it_may_write(server: Server, tmp_path: Path) -> None:
    client, out = server.client(), tmp_path / "out"
    (tmp_path / "elsewhere").mkdir()
    (out / "link").symlink_to(tmp_path / "elsewhere")
    client.run("CREATE TABLE t (a int); CREATE SINK k FROM t INTO 'k'")
    for place, state in (
        ("/etc/x", "42501"), ("../x", "42501"), ("link/x", "42501"), (str(tmp_path / "out"), "42809"),
        ("no/such/folder", "58P01"), ("k/mine.csv", "55006"), ("k/_changes/x", "55006"), ("s3a://b/x", "0A000"),
    ):  # fmt: skip
        (out / "k" / "_changes").mkdir(exist_ok=True)
        assert client.state(f"COPY t TO '{place}'") == state, place
    assert client.state("COPY (SUBSCRIBE t) TO 'x'") == "0A000"
    assert client.state("COPY t TO 'x' (FORMAT orc)") == "0A000"
    assert client.state("COPY t TO 'x' (FORMAT csv, ENGINE spark)") == "42601"
    assert client.state("COPY (SELECT 1 AS a, 2 AS a) TO 'x' (FORMAT parquet)") == "42701"
    assert not (out / "x").exists()
    assert not (tmp_path / "elsewhere" / "x").exists()


def test_what_fails_leaves_what_was_there(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client, out = server.client(), tmp_path / "out"
    client.run("COPY (SELECT 1) TO 'x'")
    assert client.state("COPY (SELECT 'NaN'::numeric(5,2)) TO 'x' (FORMAT parquet)") == "22003"

    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sql.session.copy_to_files.os.fsync", full)
    assert client.state("COPY (SELECT 2) TO 'x'") == "53100"
    assert (out / "x").read_text() == "1\n"
    assert os.listdir(out) == ["x"]
