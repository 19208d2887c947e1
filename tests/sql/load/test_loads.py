"""Loads of files: a retried load is the same load, and how the server reports loads."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ivm.errors import SqlError
from sql.engine import loads
from sql.engine.persist import Tuning
from sql.session import copy_files
from storage.checkpoint import Pace
from storage.load.collector import KeyOrder, RowCollector, SortedLoad
from storage.record import CommitRecord, RelationUpdate, decode_record, encode_record, opened
from storage.row_file import FROM_ROWS
from tests.support.program import Program
from tests.support.sessions import Client, Server

COUNT = "SELECT count(*) FROM t"
LOADS = "SELECT load_id, relation, engine, state, rows, epoch IS NULL, pid IS NULL FROM freshet.loads"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    pq.write_table(pa.table({"a": list(range(100)), "b": [f"r{i % 7}" for i in range(100)]}), folder / "x.parquet")
    (folder / "x.csv").write_text("1,one\n2,two\n")
    return folder


@pytest.fixture
def server(tmp_path: Path, files: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data", files=(files,))
    yield server
    server.close()


def table(client: Client, name: str = "t") -> None:
    client.run(f"CREATE TABLE {name} (a bigint, b text)")


def load(client: Client, id_: str | None = "one", name: str = "t", more: str = "") -> str:
    option = "" if id_ is None else f", LOAD_ID '{id_}'"
    return client.run(f"COPY {name} FROM 'x.parquet' WITH (FORMAT parquet{option}{more})")


def test_a_load_that_is_tried_again_is_the_same_load(server: Server) -> None:
    client = server.client()
    table(client)
    table(client, "u")
    assert load(client) == "COPY 100"
    assert client.notices() == []
    assert load(client) == "COPY 0"
    assert [n.message for n in client.notices()] == [
        'load "one" of table t was committed before: nothing is loaded again'
    ]
    assert load(client, name="u") == "COPY 100"
    assert load(client, "two") == "COPY 100"
    assert load(client, None) == load(client, None) == "COPY 100"
    assert client.rows(COUNT) == [("400",)]
    assert client.run("COPY t FROM 'x.csv' WITH (FORMAT csv, LOAD_ID 'one')") == "COPY 0"
    assert client.run("COPY t FROM 'x.csv' WITH (FORMAT csv, LOAD_ID 'csv')") == "COPY 2"
    server.restart()
    client = server.client()
    for id_, name in (("one", "t"), ("one", "u"), ("two", "t")):
        assert load(client, id_, name) == "COPY 0"
    assert client.rows(COUNT) == [("402",)]
    client.run("DROP TABLE t")
    table(client)
    assert load(client) == "COPY 100"


def test_a_load_stands_and_falls_with_its_transaction(server: Server) -> None:
    client = server.client()
    table(client)
    for end, count in (("ROLLBACK", "0"), ("COMMIT", "100")):
        client.run("BEGIN")
        assert load(client) == "COPY 100"
        assert load(client) == "COPY 0"
        client.run(end)
        assert client.rows(COUNT) == [(count,)]
    client.run("BEGIN")
    client.run("SAVEPOINT s")
    assert load(client, "other") == "COPY 100"
    client.run("ROLLBACK TO s")
    assert load(client, "other") == "COPY 100"
    client.run("COMMIT")
    assert client.rows(COUNT) == [("200",)]
    client.run("BEGIN")
    table(client, "fresh")
    assert load(client, name="fresh") == "COPY 100"
    client.run("COMMIT")


def test_a_load_of_no_rows_counts_too(server: Server, files: Path) -> None:
    client = server.client()
    table(client)
    (files / "empty.csv").write_text("")
    for rows in ("", "7,seven\n"):
        (files / "empty.csv").write_text(rows)
        assert client.run("COPY t FROM 'empty.csv' WITH (FORMAT csv, LOAD_ID 'e')") == "COPY 0"
    assert client.rows("SELECT state, rows FROM freshet.loads") == [("committed", "0")]


def test_a_kill_after_the_commit_leaves_the_load_known(tmp_path: Path, files: Path) -> None:
    command = "COPY t FROM 'x.parquet' WITH (FORMAT parquet, LOAD_ID 'one')"
    program = Program(tmp_path / "data", "--files", str(files))
    client = program.connect()
    client.execute("CREATE TABLE t (a bigint, b text)")
    assert client.execute(command).statusmessage == "COPY 100"
    before = client.execute("SELECT * FROM freshet.loads").fetchall()
    program.kill()
    program = Program(tmp_path / "data", "--files", str(files))
    client = program.connect()
    assert client.execute("SELECT * FROM freshet.loads").fetchall() == before
    assert client.execute(command).statusmessage == "COPY 0"
    assert client.execute(COUNT).fetchall() == [(100,)]
    program.kill()


def test_what_the_server_says_of_loads(server: Server) -> None:
    client = server.client()
    table(client)
    load(client)
    assert client.state("COPY t (a) FROM 'x.csv' WITH (FORMAT csv, LOAD_ID 'bad')") == "22P04"
    assert client.rows(LOADS) == [
        ("one", "t", "local", "committed", "100", "f", "t"),
        ("bad", "t", "local", "failed", "0", "t", "t"),
    ]
    assert client.rows("SELECT source, rows_total, error, finished >= started FROM freshet.loads") == [
        ("x.parquet", "100", None, "t"),
        ("x.csv", None, "extra data after last expected column", "t"),
    ]
    assert client.state("COPY t FROM STDIN WITH (LOAD_ID 'one')") == "0A000"
    client.run("DROP TABLE t")
    assert client.rows("SELECT load_id FROM freshet.loads") == [("bad",)]


class Held:
    """A reader that blocks until it is released or cancelled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go = threading.Event(), threading.Event()
        read = copy_files._rows

        def held(*given: Any) -> Any:
            self.reached.set()
            while not self.go.wait(0.01):
                given[-1].cancel.check()
            return read(*given)

        monkeypatch.setattr(copy_files, "_rows", held)


def test_loads_that_nobody_has_named_are_forgotten(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory and in the store: a table's latest loads stay, and those with a LOAD_ID stay until it is dropped."""
    monkeypatch.setattr(loads, "FORGOTTEN_AFTER", 3)
    client = server.client()
    table(client)
    table(client, "u")
    load(client, "named")
    load(client, None, "u")
    for _ in range(5):
        load(client, None)
    client.run("BEGIN")
    load(client, None)
    load(client, "of two")
    client.run("COMMIT")
    load(client, None, more=", MAX REJECTS 5")
    shown = "SELECT relation, count(*), count(*) FILTER (WHERE load_id LIKE '%named%' OR load_id = 'of two')"
    shown += " FROM freshet.loads GROUP BY relation ORDER BY 1"
    for _ in range(2):
        assert client.rows(shown) == [("t", "5", "2"), ("u", "1", "0")]
        server.restart()
        client = server.client()
    assert len(stored(server)) == 5
    for _ in range(4):
        load(client, None, "u")
    assert load(client) == "COPY 100"
    client.run("DROP TABLE t")
    assert client.rows(shown) == [("u", "3", "0")]
    server.restart()
    assert len(stored(server)) == 3
    assert server.client().rows(shown) == [("u", "3", "0")]


def stored(server: Server) -> dict[int, str]:
    persistence = server.coordinator.engine.persistence
    assert persistence is not None
    return persistence.store.loads()


def test_the_table_goes_or_someone_loads_the_same_meanwhile(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    client, other = server.client(), server.client()
    table(client)
    running = server.start(client.work("COPY t FROM 'x.parquet' WITH (FORMAT parquet, LOAD_ID 'one')"))
    assert held.reached.wait(20)
    assert other.rows("SELECT state, pid IS NULL FROM freshet.loads") == [("reading", "f")]
    error = other.error("COPY t FROM 'x.parquet' WITH (FORMAT parquet, LOAD_ID 'one')")
    assert (error.sqlstate, error.message) == ("55006", 'load "one" of table t is running already')
    other.run("DROP TABLE t")
    with pytest.raises(SqlError, match='relation "t" does not exist') as raised:
        running.result(20)
    assert raised.value.sqlstate == "42P01"
    assert client.rows("SELECT 1") == [("1",)]


def test_a_cancelled_load_can_be_tried_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    client = server.client()
    table(client)
    running = server.start(client.work("COPY t FROM 'x.parquet' WITH (FORMAT parquet, LOAD_ID 'one')"))
    assert held.reached.wait(20)
    running.cancel()
    other = server.client()
    while (found := other.rows("SELECT state, error FROM freshet.loads"))[0][0] == "reading":
        pass
    assert found == [("cancelled", "canceling statement due to user request")]
    held.go.set()
    assert load(other) == "COPY 100"
    assert other.rows(COUNT) == [("100",)]


def test_how_far_a_load_is(server: Server, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    client, other = server.client(), server.client()
    table(client)
    running = server.start(client.work("COPY t FROM 'x.parquet' WITH (FORMAT parquet)"))
    assert held.reached.wait(20)
    shown = "SELECT pid, relid::regclass::text, command, type, bytes_total, tuples_processed FROM pg_stat_progress_copy"
    pid, size = str(client.session.backend_id), str((files / "x.parquet").stat().st_size)
    assert other.rows(shown) == [(pid, "t", "COPY FROM", "FILE", size, "0")]
    held.go.set()
    running.result(20)
    assert other.rows(shown) == []


def many(files: Path, count: int) -> None:
    pq.write_table(pa.table({"a": list(range(count)), "b": [f"r{i % 70}" for i in range(count)]}), files / "x.parquet")


SUMS = "SELECT count(*), sum(a), count(DISTINCT b) FROM t"


def test_many_rows_go_through_a_file_that_is_gone_when_the_store_has_them(
    server: Server, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_files, "FROM_ROWS", 1000)
    many(files, 5000)
    folder = server.folder / "loads"
    client = server.client()
    table(client)
    client.run("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
    assert load(client) == "COPY 5000"
    sums = client.rows(SUMS)
    assert sums == [("5000", str(5000 * 4999 // 2), "70")]
    client.run("BEGIN")
    load(client, "two")
    assert len(list(folder.iterdir())) >= 1
    client.run("ROLLBACK")
    client.run("CREATE TABLE k (a bigint PRIMARY KEY, b text, CHECK (a < 4999))")
    assert client.state("COPY k FROM 'x.parquet' WITH (FORMAT parquet)") == "23514"
    client.run("ALTER TABLE k DROP CONSTRAINT k_a_check")
    assert load(client, name="k") == "COPY 5000"
    assert client.state("COPY k FROM 'x.parquet' WITH (FORMAT parquet)") == "23505"
    assert client.rows(SUMS) == sums
    server.restart()
    assert list(folder.iterdir()) == []
    client = server.client()
    assert client.rows(SUMS) == sums
    assert client.rows("SELECT count(*), sum(n) FROM v") == [("70", "5000")]
    assert client.rows("SELECT count(*) FROM k") == [("5000",)]


def test_rows_in_a_file_survive_a_kill(tmp_path: Path, files: Path) -> None:
    """They are not in the log: the record names the file, and a file that no record names is removed."""
    many(files, FROM_ROWS + 1000)
    data = tmp_path / "data"
    program = Program(data, "--files", str(files))
    client = program.connect()
    client.execute("CREATE TABLE t (a bigint, b text)")
    client.execute("INSERT INTO t VALUES (-1, 'first')")
    client.execute("COPY t FROM 'x.parquet' WITH (FORMAT parquet)")
    client.execute("INSERT INTO t VALUES (-2, 'last')")
    program.kill()
    (data / "loads" / "other.rows").write_bytes(b"12345678")
    program = Program(data, "--files", str(files))
    assert not (data / "loads" / "other.rows").exists()
    text = "SELECT count(*), min(a), max(a), sum(a), count(DISTINCT b) FROM t"
    found = program.connect().execute(text).fetchall()
    count = FROM_ROWS + 1000
    assert found == [(count + 2, -2, count - 1, count * (count - 1) // 2 - 3, 72)]
    program.kill()


def test_a_damaged_file_of_rows_is_refused(tmp_path: Path, files: Path) -> None:
    """While the store does not have the rows yet."""
    many(files, FROM_ROWS + 1000)
    server = Server(tmp_path / "data", files=(files,), tuning=Tuning(pace=Pace(seconds=600)))
    client = server.client()
    client.run("CREATE TABLE t (a bigint, b text)")
    client.run("COPY t FROM 'x.parquet' WITH (FORMAT parquet)")
    killed = shutil.copytree(server.folder, tmp_path / "killed")
    server.close()
    (file,) = (killed / "loads").iterdir()
    damaged = bytearray(file.read_bytes())
    damaged[100] ^= 1
    file.write_bytes(damaged)
    with pytest.raises(AssertionError, match="damaged"):
        Program(killed, "--files", str(files))


def test_a_record_with_rows_in_a_file(tmp_path: Path) -> None:
    collector = RowCollector(tmp_path / "loads", KeyOrder((0, 1), 2), limit=3)
    for start in (0, 2, 4):
        collector.add(np.arange(start * 2, start * 2 + 4).reshape(2, 2))
    found = collector.finish()
    assert isinstance(found, SortedLoad)
    rows, file = found.rows, found.file
    assert rows.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]
    record = CommitRecord(
        5, (RelationUpdate(7, rows, np.ones(6, np.int64), file), RelationUpdate(8, rows[:1], np.array([3])))
    )
    text = encode_record(record)
    found = decode_record(text, tmp_path / "loads")
    assert {u.relation: opened(u).rows.tolist() for u in found.updates} == {7: rows.tolist(), 8: [[0, 1]]}
    assert [opened(u).diffs.tolist() for u in found.updates if u.relation == 7] == [[1] * 6]
    file.path.write_bytes(file.path.read_bytes()[:-8])
    with pytest.raises(SqlError, match="damaged"):
        opened(next(u for u in found.updates if u.relation == 7))
    file.path.unlink()
    with pytest.raises(SqlError, match="missing"):
        opened(next(u for u in found.updates if u.relation == 7))
    for place in range(len(text)):
        with pytest.raises(SqlError):
            decode_record(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])
