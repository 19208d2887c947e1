"""CREATE SINK: a view's changes as files, read by their entries, against the view at each epoch."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pandas as pd
import pytest

from sql.coordination import sinks as running
from sql.engine.persist import Tuning
from storage.checkpoint import Pace
from storage.sinks.folder import FolderTarget
from tests.programs.sink_kills import kill_often
from tests.support.profiles import scaled
from tests.support.sessions import Server
from tests.support.sink_reader import changes, contents, entries, latest, records, stray
from tests.support.sink_states import as_read, caught_up, sink, wait_for

HURRY = Tuning(pace=Pace(seconds=0.02, fold_seconds=0.02, checkpoint_seconds=0.5))
TYPES = {
    "b": "boolean", "i2": "smallint", "i4": "int", "i8": "bigint", "f4": "real", "f8": "float8", "n": "numeric",
    "d10": "numeric(10,2)", "d30": "numeric(30,5)", "t": "text", "c": "char(4)", "y": "bytea", "d": "date",
    "ti": "time", "ts": "timestamp", "tz": "timestamptz", "iv": "interval", "u": "uuid", "j": "jsonb", "a": "int[]",
    "ta": "text[]",
}  # fmt: skip
VALUES = {
    "b": ["true", "false"], "i2": ["-32768", "5"], "i4": ["0", "2147483647"], "i8": ["-9223372036854775808", "1"],
    "f4": ["1.5", "'-Infinity'"],
    "f8": ["0.1", "'NaN'", "-0.0"], "n": ["1.50", "1.5", "'NaN'", "123456789012345678901"],
    "d10": ["-1.05", "99999999.99"],
    "d30": ["1234567890123456789012345.00001", "0"],
    "t": ["''", "'a,\"b'", "E'ü\\n\\\\'"],
    "c": ["'ab'"], "y": ["'\\x00ff'", "''"], "d": ["'2024-02-29'", "'0001-01-01'"], "ti": ["'23:59:59.999999'"],
    "ts": ["'1969-12-31 23:59:59.5'", "'2024-01-01'"], "tz": ["'2024-01-01 12:00+02'"], "iv": ["'1 mon -2 days'"],
    "u": ["'00010203-0405-0607-0809-0a0b0c0d0e0f'"], "j": ["'{\"a\": [1, null]}'", "'\"x\"'"],
    "a": ["'{1,NULL,3}'", "'{}'"], "ta": ["'{\"a b\",NULL}'"],
}  # fmt: skip


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "data", places=(str(tmp_path / "out"),), tuning=HURRY)
    (tmp_path / "out").mkdir()
    yield made
    made.close()


def random_statement(random: Random) -> str:
    def value(column: str) -> str:
        return "NULL" if random.random() < 0.2 else random.choice(VALUES[column])

    match random.randrange(4):
        case 0:
            return f"DELETE FROM t WHERE i4 IS NOT DISTINCT FROM {value('i4')}"
        case 1:
            column = random.choice(list(TYPES))
            return f"UPDATE t SET {column} = {value(column)}, b = {value('b')} WHERE i2 = {random.choice(VALUES['i2'])}"
        case _:
            rows = [f"({', '.join(map(value, TYPES))})" for _ in range(random.randrange(1, 4))]
            return f"INSERT INTO t VALUES {', '.join(random.choices(rows, k=len(rows) + 1))}"


@pytest.mark.parametrize("seed", range(scaled(2)))
def test_the_entries_give_the_view_at_every_epoch(server: Server, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    client = server.client()
    client.run(f"CREATE TABLE t ({', '.join(f'{n} {t}' for n, t in TYPES.items())})")
    client.run(f"CREATE MATERIALIZED VIEW v AS SELECT {', '.join(TYPES)} FROM t WHERE i8 IS NULL OR i8 > -5")
    client.run(random_statement(random))
    client.run("CREATE SINK k FROM v INTO 'v' WITH (EVERY = '10ms')")
    client.run("CREATE SINK kt FROM t INTO 't' WITH (FORMAT csv, EVERY = '10ms')")
    epochs = [caught_up(client)]
    for i in range(24):
        client.run(random_statement(random))
        epochs.append(server.coordinator.engine.published.epoch)
        if random.random() < 0.1:
            caught_up(client)
        if i == 12:
            server.restart()
            client = server.client()
    caught_up(client)
    caught_up(client, "kt")
    found, lines = changes(tmp_path / "out" / "v"), changes(tmp_path / "out" / "t")
    start = latest(tmp_path / "out" / "v")[0]["upto"]
    begun = latest(tmp_path / "out" / "t")[0]["upto"]
    assert len({e for e, _, _ in found}) > 10
    for at in epochs:
        if at >= start:
            assert contents(found, at) == as_read(client, "v", TYPES, at), at
        if at >= begun:
            shown = [tuple(c or "" for c in row) for row in client.rows(f"SELECT * FROM t AS OF {at}")]
            assert contents(lines, at) == Counter(shown), at
    assert not stray(tmp_path / "out" / "v")


def test_a_sink_that_is_rolled_back_leaves_no_folder(server: Server, tmp_path: Path) -> None:
    client = server.client()
    client.run("CREATE TABLE t (a int)")
    for text in ("BEGIN; CREATE SINK k FROM t INTO 'a/b'; ROLLBACK",
                 "BEGIN; SAVEPOINT s; CREATE SINK k FROM t INTO 'a/b'; ROLLBACK TO s; COMMIT"):  # fmt: skip
        client.run(text)
        assert not list((tmp_path / "out").iterdir())
    assert client.state("BEGIN; CREATE SINK k FROM t INTO 'a/b'; SELECT 1 / 0") == "22012"
    assert client.run("COMMIT") == "ROLLBACK"
    assert not list((tmp_path / "out").iterdir())
    client.run("BEGIN; CREATE SINK k FROM t INTO 'a/b'")
    server.run(client.session.close())
    assert not list((tmp_path / "out").iterdir())
    client = server.client()
    client.run("BEGIN; CREATE SINK k FROM t INTO 'a/b'; COMMIT; BEGIN; CREATE SINK k2 FROM t INTO 'a/c'; ROLLBACK")
    caught_up(client)
    assert [path.name for path in (tmp_path / "out" / "a").iterdir()] == ["b"]


KEYED = "CREATE TABLE p (id int PRIMARY KEY, name text, n numeric(6,1))"


def test_where_a_sink_may_write(server: Server, tmp_path: Path) -> None:
    client = server.client()
    client.run("CREATE TABLE t (a int)")
    (tmp_path / "secret").mkdir()
    (tmp_path / "out" / "link").symlink_to(tmp_path / "secret")
    for place in ("/etc/x", str(tmp_path), "../x", "link", "link/x", "file:///etc/x", "s3a://bucket/x", "hdfs://h/x"):
        error = client.error(f"CREATE SINK k FROM t INTO '{place}'")
        assert error.sqlstate == "42501", place
        assert error.hint is not None
        assert "--sinks" in error.hint
    assert not (tmp_path / "x").exists()
    assert client.state("CREATE SINK k FROM t INTO 'file://elsewhere/x'") == "22023"
    (tmp_path / "out" / "file").write_text("")
    assert client.state("CREATE SINK k FROM t INTO 'file'") == "42809"
    client.run(f"CREATE SINK k FROM t INTO 'file://{tmp_path}/out/a%20b'")
    caught_up(client)
    assert client.state("CREATE SINK k2 FROM t INTO 'a b'") == "55006"
    assert client.rows("SELECT uri FROM freshet.sinks") == [(str(tmp_path / "out" / "a b"),)]


def test_what_a_sink_may_be(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (a int); CREATE TABLE odd (mz_diff int); CREATE VIEW w AS SELECT 1 AS a")
    client.run("CREATE TABLE parts (a int) PARTITION BY RANGE (a); CREATE TEMP TABLE mine (a int)")
    for text, state in (
        ("CREATE SINK k FROM nothing INTO 'k'", "42P01"), ("CREATE SINK k FROM w INTO 'k'", "42809"),
        ("CREATE SINK k FROM pg_class INTO 'k'", "42809"), ("CREATE SINK k FROM parts INTO 'k'", "0A000"),
        ("CREATE SINK k FROM mine INTO 'k'", "0A000"), ("CREATE SINK k FROM odd INTO 'k'", "42701"),
        ("CREATE SINK k FROM t INTO 'k' WITH (FORMAT xml)", "22023"), ("CREATE SINK t FROM t INTO 'k'", "42P07"),
        ("CREATE SINK k FROM t INTO 'k' WITH (FORMAT csv, FORMAT csv)", "42601"),
        ("CREATE SINK k FROM t INTO 'k' WITH (WHAT = 1)", "42601"),
        ("CREATE SINK k FROM t INTO 'k' WITH (EVERY = 'soon')", "22007"),
        ("CREATE SINK k FROM t INTO 'k' WITH (EVERY = '-1 s')", "22023"),
        ("CREATE SINK k FROM t INTO 'k' WITH (RETAIN HISTORY FOR '0 s')", "22023"),
        ("CREATE SINK k FROM t INTO 'k' ENVELOPE UPSERT", "42P10"),
        ("CREATE SINK k FROM t INTO 'k' ENVELOPE UPSERT KEY (b)", "42703"),
        ("CREATE SINK k FROM t INTO 'k' FORMAT csv ENVELOPE DEBEZIUM KEY (a)", "0A000"),
        ("CREATE SINK k FROM t INTO", "42601"), ("ALTER SINK k PAUSE", "42P01"), ("ALTER SINK t PAUSE", "42809"),
        ("CREATE SINK k FROM t INTO 's3a://b/x' WITH (ENGINE = local)", "22023"),
    ):  # fmt: skip
        assert client.state(text) == state, text
    assert client.rows("SELECT * FROM freshet.sinks") == []
    assert client.state("CREATE SINK k FROM odd INTO 'a/b/c'") == "42701"
    assert list((server.folder.parent / "out").iterdir()) == [], "what fails leaves no folder"


def test_a_sink_keeps_its_view_and_is_no_relation_to_read(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (a int); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    client.run("CREATE SINK k FROM v INTO 'k'")
    client.run("CREATE SINK IF NOT EXISTS k FROM v INTO 'k2'")
    error = client.error("DROP MATERIALIZED VIEW v")
    assert (error.sqlstate, error.detail) == ("2BP01", "sink k depends on materialized view v")
    assert client.state("SELECT * FROM k") == "42809"
    assert client.state("INSERT INTO k VALUES (1)") == "42809"
    assert client.rows("SELECT count(*) FROM pg_class WHERE relname = 'k'") == [("0",)]
    client.run("ALTER SINK k RENAME TO k1")
    client.run("DROP SINK k1")
    client.run("DROP SINK IF EXISTS k1")
    client.run("CREATE SINK k FROM v INTO 'k3'")
    client.run("DROP TABLE t CASCADE")
    assert client.rows("SELECT * FROM freshet.sinks") == []


def test_a_dropped_sinks_files_stay_and_nothing_more_comes(server: Server, tmp_path: Path) -> None:
    client = server.client()
    client.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE SINK k FROM t INTO 'k' WITH (EVERY = '10ms')")
    caught_up(client)
    client.run("BEGIN; DROP SINK k; INSERT INTO t VALUES (2); COMMIT")
    client.run("CREATE SINK other FROM t INTO 'other' WITH (EVERY = '10ms')")
    caught_up(client, "other")
    assert contents(changes(tmp_path / "out" / "k"), 2**62) == Counter([(1,)])


def test_a_sink_of_that_name(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (a int); CREATE SINK k FROM t INTO 'k'")
    caught_up(client)
    assert client.state("CREATE SINK k FROM t INTO 'k'") == "42P07"
    client.notices()
    assert client.run("CREATE SINK IF NOT EXISTS k FROM t INTO 'k'") == "CREATE SINK"
    assert [n.message for n in client.notices()] == ['relation "k" already exists, skipping']
    assert client.state("CREATE SINK l FROM t INTO 'k'") == "55006"


def test_pause_resume_and_restart(server: Server, tmp_path: Path) -> None:
    client, folder = server.client(), tmp_path / "out" / "k"
    client.run("CREATE TABLE t (a int) WITH (RETAIN HISTORY FOR '1 ms'); INSERT INTO t VALUES (1)")
    client.run("CREATE SINK k FROM t INTO 'k' WITH (EVERY = '10ms')")
    caught_up(client)
    client.run("ALTER SINK k PAUSE")
    assert sink(client)["state"] == "paused"
    for i in range(2, 6):
        client.run(f"INSERT INTO t VALUES ({i})")
        time.sleep(0.06)
    server.restart()  # history is kept for a paused sink, also over a restart
    client = server.client()
    assert sink(client)["state"] == "paused"
    time.sleep(0.3)
    client.run("ALTER SINK k RESUME")
    caught_up(client)
    assert len({epoch for epoch, _, _ in changes(folder)}) == 5
    client.run("ALTER SINK k RESTART")
    wait_for(lambda: sink(client)["generation"] == "2")
    first = latest(folder)[0]
    assert (first["kind"], first["layout"]["columns"][0]["name"]) == ("snapshot", "a")
    assert contents(changes(folder), 2**62) == Counter((i,) for i in range(1, 6))
    assert not stray(folder)


def test_a_sink_that_is_behind_for_too_long_says_so_and_can_begin_anew(server: Server, tmp_path: Path) -> None:
    client, folder = server.client(), tmp_path / "out" / "k"
    client.run("CREATE TABLE t (a int) WITH (RETAIN HISTORY FOR '1 ms')")
    client.run("CREATE SINK k FROM t INTO 'k' WITH (EVERY = '10ms', RETAIN HISTORY FOR '1 s')")
    caught_up(client)
    client.run("ALTER SINK k PAUSE")
    store = server.coordinator.engine.persistence
    assert store is not None
    relation = server.coordinator.engine.catalog.names["public", "t"].id
    at = int(sink(client)["epoch"] or 0)

    def folded() -> bool:
        client.run("INSERT INTO t VALUES (1)")
        return store.store.since(relation) > at

    wait_for(folded)
    client.run("ALTER SINK k RESUME")
    wait_for(lambda: sink(client)["state"] == "error")
    error = sink(client)["error"]
    assert error is not None
    assert error.startswith("55000")
    assert "ALTER SINK k RESTART" in error
    client.run("ALTER SINK k RESTART")
    wait_for(lambda: sink(client)["generation"] == "2")
    wait_for(lambda: sink(client)["error"] is None)
    caught_up(client)
    assert contents(changes(folder), 2**62)[1,] == int(client.rows("SELECT count(*) FROM t")[0][0] or 0)


def test_without_a_snapshot_it_begins_where_it_was_made(server: Server, tmp_path: Path) -> None:
    client, folder = server.client(), tmp_path / "out" / "k"
    client.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    client.run(
        "BEGIN; CREATE SINK k FROM t INTO 'k' WITH (SNAPSHOT = false, EVERY = '10ms'); INSERT INTO t VALUES (2); COMMIT"
    )
    client.run("DELETE FROM t WHERE a = 1")
    caught_up(client)
    assert entries(folder)[0]["kind"] == "start"
    assert [(d, r) for _, d, r in changes(folder)] == [(1, (2,)), (-1, (1,))]


def test_nothing_is_said_while_the_view_has_an_error(server: Server, tmp_path: Path) -> None:
    client, folder = server.client(), tmp_path / "out" / "k"
    client.run(
        "CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE MATERIALIZED VIEW v AS SELECT 10 / a AS q FROM t"
    )
    client.run("CREATE SINK k FROM v INTO 'k' WITH (EVERY = '10ms')")
    caught_up(client)
    client.run("INSERT INTO t VALUES (0), (5)")
    wait_for(lambda: sink(client)["state"] == "waiting")
    error = sink(client)["error"]
    assert error is not None
    assert error.startswith("22012")
    assert contents(changes(folder), 2**62) == Counter([(10,)])
    client.run("DELETE FROM t WHERE a = 0")
    wait_for(lambda: sink(client)["state"] == "running")
    caught_up(client)
    assert contents(changes(folder), 2**62) == Counter([(10,), (2,)])


def test_a_folder_that_is_gone_is_the_sinks_error_and_nobody_elses(server: Server, tmp_path: Path) -> None:
    client, folder = server.client(), tmp_path / "out" / "k"
    client.run("CREATE TABLE t (a int); CREATE SINK k FROM t INTO 'k' WITH (EVERY = '10ms')")
    caught_up(client)
    folder.rename(tmp_path / "away")
    client.run("INSERT INTO t VALUES (1)")
    wait_for(lambda: sink(client)["state"] == "error")
    assert str(sink(client)["error"]).startswith("58P01")
    client.run("INSERT INTO t VALUES (2)")
    (tmp_path / "away").rename(folder)
    wait_for(lambda: sink(client)["state"] == "running")
    caught_up(client)
    assert contents(changes(folder), 2**62) == Counter([(1,), (2,)])
    shutil.rmtree(folder)
    folder.symlink_to("/tmp")
    client.run("INSERT INTO t VALUES (3)")
    wait_for(lambda: str(sink(client)["error"]).startswith("42501"))


def test_a_full_disk_is_tried_again_and_leaves_nothing(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, folder = server.client(), tmp_path / "out" / "k"
    client.run("CREATE TABLE t (a int); CREATE SINK k FROM t INTO 'k' WITH (EVERY = '10ms')")
    caught_up(client)
    real, full = os.link, True

    def link(source: str, target: str) -> None:
        if full:
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr("storage.sinks.folder.os.link", link)
    client.run("INSERT INTO t VALUES (1)")
    wait_for(lambda: str(sink(client)["error"]).startswith("53100"))
    full = False
    client.run("INSERT INTO t VALUES (2)")
    wait_for(lambda: sink(client)["state"] == "running")
    caught_up(client)
    assert contents(changes(folder), 2**62) == Counter([(1,), (2,)])
    assert not stray(folder)


def test_what_a_crash_has_left_goes_and_what_others_put_there_stays(server: Server, tmp_path: Path) -> None:
    client, folder = server.client(), tmp_path / "out" / "k"
    client.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE SINK k FROM t INTO 'k' WITH (EVERY = '10ms')")
    at = caught_up(client)
    (name,) = {f["path"] for e in entries(folder) for f in e["files"]}
    server.close()
    upto = entries(folder)[-1]["upto"]
    left = [
        f"g1-{upto}-{at + 9}-0000.parquet",
        "g2-5-9-0000.parquet",
        "g2-snapshot-9-0000.parquet",
        ".unfinished-g1-1-2-0000.parquet",
    ]
    for stale in (*left, "README", "g1-note.parquet"):
        (folder / stale).write_text("x")
    (folder / "_changes" / ".unfinished-00000000000000000009.json").write_text("{")
    server.__init__(server.folder, places=server.places, tuning=HURRY)  # type: ignore[misc]
    caught_up(server.client())
    assert stray(folder) == {"README", "g1-note.parquet"}
    assert name in os.listdir(folder)
    assert not [n for n in os.listdir(folder / "_changes") if n[0] == "."]


def test_another_server_does_not_go_on_in_the_same_folder(server: Server, tmp_path: Path) -> None:
    client, folder = server.client(), tmp_path / "out" / "k"
    client.run("CREATE TABLE t (a int); CREATE SINK k FROM t INTO 'k' WITH (EVERY = '10ms')")
    caught_up(client)
    entry = entries(folder)[-1]
    number = entry["version"] + 1
    (folder / "_changes" / f"{number:020}.json").write_text(json.dumps({**entry, "version": number, "owner": "they"}))
    client.run("INSERT INTO t VALUES (1)")
    wait_for(lambda: str(sink(client)["error"]).startswith("55006"))


def test_a_folder_that_is_ahead_of_the_database_is_begun_anew(server: Server, tmp_path: Path) -> None:
    """As after the data folder was restored from an older copy."""
    client, folder = server.client(), tmp_path / "out" / "k"
    client.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE SINK k FROM t INTO 'k' WITH (EVERY = '10ms')")
    caught_up(client)
    client.run("ALTER SINK k PAUSE")
    server.close()
    entry = entries(folder)[-1]
    ahead = {**entry, "version": entry["version"] + 1, "after": entry["upto"], "upto": entry["upto"] + 10**12}
    (folder / "_changes" / f"{ahead['version']:020}.json").write_text(json.dumps({**ahead, "files": []}))
    server.__init__(server.folder, places=server.places, tuning=HURRY)  # type: ignore[misc]
    client = server.client()
    client.run("ALTER SINK k RESUME")
    wait_for(lambda: str(sink(client)["error"]).startswith("55000"))
    client.run("ALTER SINK k RESTART")
    wait_for(lambda: sink(client)["state"] == "running")
    for i in range(2, 5):
        client.run(f"INSERT INTO t VALUES ({i})")
        caught_up(client)
    assert contents(changes(folder), 2**62) == Counter((i,) for i in range(1, 5))
    assert len({epoch for epoch, _, _ in changes(folder)}) == 4


def test_a_table_that_is_altered_begins_another_generation(server: Server, tmp_path: Path) -> None:
    client, folder = server.client(), tmp_path / "out" / "k"
    client.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE SINK k FROM t INTO 'k' WITH (EVERY = '10ms')")
    caught_up(client)
    client.run("ALTER TABLE t ADD COLUMN b text DEFAULT 'x'")
    client.run("INSERT INTO t VALUES (2, 'y')")
    caught_up(client)
    assert sink(client)["generation"] == "2"
    assert contents(changes(folder), 2**62) == Counter([(1, "x"), (2, "y")])
    assert [c["name"] for c in latest(folder)[0]["layout"]["columns"]] == ["a", "b"]
    client.run("ALTER TABLE t RENAME COLUMN b TO c")
    client.run("DELETE FROM t WHERE a = 1")
    caught_up(client)
    assert sink(client)["generation"] == "3"
    assert {tuple(r)[2:] for e in latest(folder) for r in records(folder, e)} == {("a", "c")}
    assert contents(changes(folder), 2**62) == Counter([(2, "y")])


def test_that_nothing_has_changed_is_said_now_and_then(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, folder = server.client(), tmp_path / "out" / "k"
    client.run("CREATE TABLE t (a int); CREATE SINK k FROM t INTO 'k' WITH (EVERY = '10ms')")
    for _ in range(3):
        caught_up(client)
    assert [e["kind"] for e in entries(folder)] == ["snapshot"]
    monkeypatch.setattr(running, "PROGRESS_SECONDS", 0.0)
    at = caught_up(client)
    assert {e["kind"] for e in entries(folder)[1:]} == {"progress"}
    assert entries(folder)[-1]["upto"] >= at


def applied(found: list[dict[str, Any]]) -> dict[int, tuple[Any, ...]]:
    """The rows by key after applying upserts."""
    rows: dict[int, tuple[Any, ...]] = {}
    for record in found:
        _, state, key, *values = record.values()
        if state == "delete":
            del rows[key]
            assert values == [None, None]
        else:
            rows[key] = tuple(values)
    return rows


@pytest.mark.parametrize("format_", ["parquet", "jsonl"])
def test_envelopes_by_key(server: Server, tmp_path: Path, format_: str) -> None:
    client, out, random = server.client(), tmp_path / "out", Random(5)
    client.run(KEYED)
    client.run("INSERT INTO p SELECT i, 'n' || i, i FROM generate_series(1, 20) AS i")
    for envelope in ("upsert", "debezium"):
        clauses = f"FORMAT {format_} ENVELOPE {envelope} WITH (EVERY = '10ms')"
        client.run(f"CREATE SINK {envelope} FROM p INTO '{envelope}' {clauses}")
    for i in range(30):
        key = random.randrange(1, 30)
        client.run(f"INSERT INTO p VALUES ({key}, NULL, {i}) ON CONFLICT (id) DO UPDATE SET name = 'u{i}', n = {i}")
        client.run(f"DELETE FROM p WHERE id = {random.randrange(1, 30)}")
    caught_up(client, "upsert")
    caught_up(client, "debezium")
    wanted = {int(a or 0): (b, c) for a, b, c in client.rows("SELECT * FROM p")}

    def shown(rows: dict[int, tuple[Any, ...]]) -> dict[int, tuple[Any, ...]]:
        return {k: (name, None if n is None else f"{float(n):.1f}") for k, (name, n) in rows.items()}

    assert shown(applied([r for e in latest(out / "upsert") for r in records(out / "upsert", e)])) == wanted
    rows: dict[int, tuple[Any, ...]] = {}
    kinds = set()
    for record in (r for e in latest(out / "debezium") for r in records(out / "debezium", e)):
        before, after = record["before"], record["after"]
        kinds.add(record["op"])
        assert record["op"] == {(True, False): "d", (True, True): "u"}.get((bool(before), bool(after)), record["op"])
        if before is not None:
            assert rows.pop(before["id"]) == (before["name"], before["n"])
        if after is not None:
            rows[after["id"]] = (after["name"], after["n"])
    assert shown(rows) == wanted
    assert kinds == {"r", "c", "u", "d"}


def test_a_key_that_is_none_is_the_sinks_error(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (a int, b int); INSERT INTO t VALUES (1, 1), (1, 2)")
    client.run("CREATE SINK k FROM t INTO 'k' ENVELOPE UPSERT KEY (a)")
    wait_for(lambda: str(sink(client)["error"]).startswith("21000"))


def test_large_changes_are_several_parts_and_groups_stay_whole(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.duck._PART", 1000)
    monkeypatch.setattr("storage.sinks.folder.FILE_ROWS", 5000)
    client, folder = server.client(), tmp_path / "out" / "k"
    client.run(KEYED)
    client.run("INSERT INTO p SELECT i, 'n' || i, i % 1000 FROM generate_series(1, 20000) AS i")
    client.run("CREATE SINK k FROM p INTO 'k' ENVELOPE UPSERT WITH (EVERY = '10ms')")
    client.run("UPDATE p SET n = n + 1")
    caught_up(client)
    found = latest(folder)
    assert max(len(e["files"]) for e in found) >= 4
    rows = applied([r for e in found for r in records(folder, e)])
    assert {str(k): (a, f"{n:.1f}") for k, (a, n) in rows.items()} == {
        str(k): (a, n) for k, a, n in client.rows("SELECT * FROM p")
    }


def test_other_programs_read_the_files(server: Server, tmp_path: Path) -> None:
    client, folder = server.client(), tmp_path / "out" / "k"
    client.run(KEYED)
    client.run("INSERT INTO p VALUES (1, 'a', 1.5), (2, NULL, NULL)")
    client.run("CREATE SINK k FROM p INTO 'k' WITH (EVERY = '10ms')")
    client.run("UPDATE p SET n = 2 WHERE id = 1")
    caught_up(client)
    query = f"SELECT id, name, n FROM '{folder}/*.parquet' GROUP BY ALL HAVING sum(mz_diff) <> 0 ORDER BY id"
    assert [tuple(map(str, row)) for row in duckdb.sql(query).fetchall()] == [("1", "a", "2.0"), ("2", "None", "None")]
    frame = pd.concat(pd.read_parquet(folder / f["path"]) for e in latest(folder) for f in e["files"])
    assert list(frame.columns) == ["mz_timestamp", "mz_diff", "id", "name", "n"]
    assert frame.groupby("id")["mz_diff"].sum().to_dict() == {1: 1, 2: 1}


def test_nobody_waits_for_a_sink(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a target hangs, commits, reads and the server's shutdown do not wait."""
    client = server.client()
    client.run("CREATE TABLE t (a int); CREATE SINK k FROM t INTO 'k' WITH (EVERY = '10ms')")
    caught_up(client)
    hanging = []

    def hang(*_: object) -> None:
        hanging.append(1)
        time.sleep(3)

    monkeypatch.setattr(FolderTarget, "commit", hang)
    client.run("INSERT INTO t VALUES (0)")
    wait_for(lambda: hanging)
    for i in range(20):
        client.run(f"INSERT INTO t VALUES ({i})")
    assert len(hanging) == 1
    assert client.rows("SELECT count(*) FROM t") == [("21",)]


def test_kills_of_the_server_lose_and_double_nothing(tmp_path: Path) -> None:
    commits, _ = kill_often(tmp_path, 2, 3)
    assert commits
