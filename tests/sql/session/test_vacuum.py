"""VACUUM: unreferenced values leave memory and the store; everything else stays as it was."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from sql.catalog.catalog import RelationKind
from sql.coordination import sweeper
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server

SHORT = "WITH (RETAIN HISTORY FOR '1 ms')"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data")
    yield server
    server.close()


def dictionary(client: Client) -> dict[str, int]:
    names = ("living", "dead", "bytes", "sweeps", "swept")
    return dict(zip(names, (int(v or 0) for v in client.rows("TABLE freshet.dictionary")[0]), strict=True))


def stored_ids(server: Server) -> list[int]:
    persistence = server.coordinator.engine.persistence
    assert persistence is not None
    persistence.flush()
    return [int(i) for i in persistence.store.dictionary().ids]


def wait(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.01)


def past(client: Client) -> None:
    """Waits until the present rows are older than the retained history."""
    before = int(client.rows("SELECT mz_now()")[0][0] or 0)
    wait(lambda: time.time_ns() // 1000 > before + 2000)


def test_replaced_texts_leave(server: Server) -> None:
    client = server.client()
    client.run(f"CREATE TABLE t (id int PRIMARY KEY, s text) {SHORT}")
    client.run(f"CREATE MATERIALIZED VIEW v {SHORT} AS SELECT id, upper(s) AS s, length(s) AS n FROM t")
    client.run("INSERT INTO t SELECT i, 'first ' || i FROM generate_series(1, 300) i")
    sizes = []
    for turn in range(scaled(20)):
        client.run(f"UPDATE t SET s = 'edition {turn} of ' || id || repeat('.', 100)")
        if turn % 4 == 3:
            past(client)
            client.run("VACUUM")
            sizes.append(dictionary(client)["bytes"])
            assert dictionary(client)["living"] == 600
    past(client)
    client.run("VACUUM")
    found = dictionary(client)
    assert (found["living"], found["dead"]) == (600, 0)
    assert found["swept"] >= 600 * (turn - 1)
    assert max(sizes) < 3 * sizes[0]
    assert len(stored_ids(server)) == 600
    before = client.sorted("SELECT * FROM v")
    server.restart()
    client = server.client()
    assert client.sorted("SELECT * FROM v") == before
    assert dictionary(client)["living"] == 600
    client.run("DELETE FROM t")
    past(client)
    client.run("VACUUM")
    assert dictionary(client)["living"] == 0
    assert stored_ids(server) == []


def test_history_that_is_retained_can_still_be_read(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (s text)")
    client.run("INSERT INTO t VALUES ('once')")
    (epoch,) = client.rows("SELECT mz_now()")[0]
    client.run("DELETE FROM t")
    for _ in range(2):
        client.run("VACUUM FULL")
        assert client.rows(f"SELECT * FROM t AS OF {epoch}") == [("once",)]
        server.restart()
        client = server.client()


def test_readers_keep_what_they_hold(server: Server) -> None:
    """A cursor, a transaction's snapshot, a subscription: all opened before, all read after."""
    client, other, third = server.client(), server.client(), server.client()
    client.run(f"CREATE TABLE t (id int, s text) {SHORT}")
    client.run("INSERT INTO t SELECT i, 'text ' || i FROM generate_series(1, 50) i")
    client.run("DECLARE c CURSOR WITH HOLD FOR SELECT s, s || '!' FROM t ORDER BY id")
    other.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    assert other.rows("SELECT count(*) FROM t") == [("50",)]
    third.run("BEGIN; DECLARE sub CURSOR FOR SUBSCRIBE t")
    client.run("DELETE FROM t")
    past(client)
    client.run("VACUUM FULL")
    client.run("VACUUM FULL")
    assert dictionary(client)["dead"] >= 50
    assert client.rows("FETCH ALL FROM c")[-1] == ("text 50", "text 50!")
    assert len(other.rows("SELECT s FROM t WHERE s LIKE 'text %'")) == 50
    assert {row[3] for row in third.rows("FETCH ALL FROM sub")} >= {"text 1", "text 50"}
    for session in (client, other, third):
        session.run("ROLLBACK")
    client.run("CLOSE c")
    third.close()
    client.run("INSERT INTO t VALUES (7, 'text 7')")
    client.run("VACUUM FULL")
    wait(lambda: dictionary(client)["dead"] == 0)
    assert dictionary(client)["living"] == 1
    assert client.rows("TABLE t") == [("7", "text 7")]


def test_a_transaction_that_writes_keeps_its_words(server: Server) -> None:
    client, other = server.client(), server.client()
    client.run(f"CREATE TABLE t (s text) {SHORT}")
    other.run("BEGIN")
    other.run("INSERT INTO t VALUES ('not yet')")
    task = server.start(client.work("VACUUM"))
    other.run("INSERT INTO t VALUES ('nor this')")
    other.run("COMMIT")
    task.result(60)
    client.run("VACUUM")
    assert client.sorted("TABLE t") == [("nor this",), ("not yet",)]
    server.restart()
    assert server.client().sorted("TABLE t") == [("nor this",), ("not yet",)]


def test_views_and_constants(server: Server) -> None:
    """Values that a view's definition, groups, order and errors refer to stay."""
    client = server.client()
    client.run(f"CREATE TABLE t (id int, s text, n numeric) {SHORT}")
    client.run(f"CREATE MATERIALIZED VIEW v {SHORT} AS SELECT id, CASE WHEN s = 'a' THEN 'constant' ELSE s END FROM t")
    client.run(f"CREATE MATERIALIZED VIEW top {SHORT} AS SELECT s, id FROM t ORDER BY s DESC LIMIT 2")
    client.run(
        f"CREATE MATERIALIZED VIEW most {SHORT} AS SELECT max(s) AS m, string_agg(s, ',' ORDER BY s) AS a FROM t"
    )
    client.run(
        f"CREATE MATERIALIZED VIEW x {SHORT} AS SELECT * FROM (VALUES ('k', 1), ('l', 2)) w(a, b), t WHERE id = b"
    )
    client.run(f"CREATE MATERIALIZED VIEW bad {SHORT} AS SELECT (s || '1')::int AS i FROM t")
    for turn in range(2):
        client.run("INSERT INTO t VALUES (1, 'a', 1e30), (2, 'b', 'NaN'), (3, 'c', 0.1)")
        client.run("VACUUM")
        client.run("DELETE FROM t WHERE id = 2")
        client.run("VACUUM FULL")
        client.run(f"INSERT INTO t VALUES (2, 'b{turn}', 1e30)")
        assert client.rows("SELECT m FROM most") == [("c",)]
        for view in ("v", "top", "most", "x"):
            assert client.rows(f"VERIFY MATERIALIZED VIEW {view}") == []
        assert client.state("SELECT * FROM bad") == "22P02"
        client.run("DELETE FROM t")
        past(client)


def test_it_comes_by_itself(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeper, "LEAST_VALUES", 100)
    client = server.client()
    client.run(f"CREATE TABLE t (s text) {SHORT}")
    client.run("INSERT INTO t SELECT 'text ' || i FROM generate_series(1, 1000) i")
    client.run("DELETE FROM t")
    wait(lambda: dictionary(client)["sweeps"] > 0)


def test_a_table_dropped_meanwhile(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store sees the drop after VACUUM has listed the tables and before it sweeps them."""
    client, other = server.client(), server.client()
    persistence = server.coordinator.engine.persistence
    assert persistence is not None
    relations = persistence.store.relations
    left = ["gone", "lost"]

    def seen() -> dict[int, int]:
        before = relations()
        if left and threading.current_thread().name.startswith("sweeper"):
            name = left.pop()
            other.run(f"DROP TABLE {name}")
            persistence.flush()
            assert len(relations()) < len(before)
        return before

    for name in (*left, "kept"):
        client.run(f"CREATE TABLE {name} (s text) {SHORT}")
        client.run(f"INSERT INTO {name} SELECT '{name} ' || i FROM generate_series(1, 50) i")
        client.run(f"DELETE FROM {name}")
    monkeypatch.setattr(persistence.store, "relations", seen)
    past(client)
    client.run("VACUUM")
    assert left == []
    assert client.rows("SELECT count(*) FROM kept") == [("0",)]


def test_refused(server: Server) -> None:
    client = server.client()
    client.run("BEGIN")
    assert client.state("VACUUM") == "25001"
    client.run("ROLLBACK")
    assert client.run("VACUUM (FULL, VERBOSE) pg_class") == "VACUUM"


class Workload:
    """Random statements on a server, against the expected rows."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server = server
        self.random = Random(seed)
        self.rows: dict[int, str | None] = {}
        self.cursors: dict[str, list[tuple[str | None, ...]]] = {}
        self.client, self.reader = server.client(), server.client()
        self.client.run(f"CREATE TABLE t (id int PRIMARY KEY, s text) {SHORT}")
        self.client.run(f"CREATE TABLE other (id int, s text) {SHORT}")
        self.client.run(f"CREATE MATERIALIZED VIEW v {SHORT} AS SELECT s, count(*) AS n FROM t GROUP BY s")
        self.client.run(f"CREATE MATERIALIZED VIEW w {SHORT} AS SELECT upper(s) AS u, max(id) FROM t GROUP BY upper(s)")

    def text(self) -> str:
        return f"{self.random.choice('abc')}{self.random.randrange(12)}"

    def act(self) -> None:
        getattr(self, self.random.choice(
            ("put",) * 6 + ("delete",) * 3 + ("copy", "rolled_back", "declare", "fetch", "vacuum", "vacuum", "full",
                                              "again", "moved", "restart")))()  # fmt: skip

    def put(self) -> None:
        for _ in range(self.random.randrange(1, 5)):
            key, text = self.random.randrange(20), None if self.random.random() < 0.1 else self.text()
            value = "NULL" if text is None else f"'{text}'"
            self.client.run(f"INSERT INTO t VALUES ({key}, {value}) ON CONFLICT (id) DO UPDATE SET s = EXCLUDED.s")
            self.rows[key] = text

    def delete(self) -> None:
        keys = [k for k in self.rows if self.random.random() < 0.5]
        self.client.run(f"DELETE FROM t WHERE id IN ({', '.join(map(str, [*keys, -1]))})")
        for key in keys:
            del self.rows[key]

    def copy(self) -> None:
        keys = [k for k in range(20) if k not in self.rows][:3]
        rows = {key: self.text() for key in keys}
        self.client.run("COPY t FROM STDIN", "".join(f"{k}\t{v}\n" for k, v in rows.items()).encode())
        self.rows |= rows

    def rolled_back(self) -> None:
        self.client.run(f"BEGIN; UPDATE t SET s = '{self.text()} never'; SELECT count(*) FROM v; ROLLBACK")

    def moved(self) -> None:
        """Texts that are in another table only for a while."""
        self.client.run("INSERT INTO other SELECT id, s FROM t; DELETE FROM t")
        if self.random.random() < 0.5:
            self.vacuum()
        self.client.run("INSERT INTO t SELECT id, s FROM other WHERE s IS NOT NULL; DELETE FROM other")
        self.rows = {k: v for k, v in self.rows.items() if v is not None}

    def declare(self) -> None:
        name = f"c{len(self.cursors)}"
        if name not in self.cursors:
            self.reader.run(f"DECLARE {name} CURSOR WITH HOLD FOR SELECT id, s, lower(s) FROM t ORDER BY id")
            self.cursors[name] = [(str(k), v, v and v.lower()) for k, v in sorted(self.rows.items())]

    def fetch(self) -> None:
        if self.cursors:
            name, rows = self.cursors.popitem()
            assert self.reader.rows(f"FETCH ALL FROM {name}") == rows
            self.reader.run(f"CLOSE {name}")

    def vacuum(self) -> None:
        self.client.run("VACUUM")

    def full(self) -> None:
        self.client.run("VACUUM FULL")

    def again(self) -> None:
        """Statements go on while it runs."""
        task = self.server.start(self.reader.work("VACUUM"))
        self.put()
        self.delete()
        self.put()
        task.result(60)

    def restart(self) -> None:
        if self.random.random() < 0.3:
            self.client.close()
            self.reader.close()
            self.cursors = {}
            self.server.restart()
            self.client, self.reader = self.server.client(), self.server.client()

    def check(self) -> None:
        expected = [(str(k), v) for k, v in sorted(self.rows.items())]
        assert self.client.rows("SELECT * FROM t ORDER BY id") == expected
        assert self.client.rows("VERIFY MATERIALIZED VIEW v") == []
        assert self.client.rows("VERIFY MATERIALIZED VIEW w") == []
        engine = self.server.coordinator.engine
        table = next(r for r in engine.catalog.relations.values() if r.name == "t" and r.kind is RelationKind.TABLE)
        words, _ = engine.published.rows(table.id, engine.published.ordinal)
        ids = [i for i in np.unique(words).tolist() if i & 1 and abs(i) > 1 << 20]
        values = engine.dictionary.lookup(np.array(ids, np.int64))
        assert {v.decode() for v in values} == {v for v in self.rows.values() if v is not None}
        assert engine.dictionary.intern(values).tolist() == ids, "a value has another id than its rows"


@pytest.mark.parametrize("seed", range(scaled(2)))
def test_random_statements(server: Server, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeper, "RELEASE_SECONDS", 0.01)
    load = Workload(server, seed)
    for _ in range(40):
        load.act()
        load.check()
    while load.cursors:
        load.fetch()
    past(load.client)
    load.vacuum()
    load.full()
    load.check()
    wait(lambda: dictionary(load.client)["dead"] == 0)
    found = dictionary(load.client)
    texts = {v for v in load.rows.values() if v is not None}
    assert found["living"] == len(texts | {v.upper() for v in texts}), found
    assert len(stored_ids(server)) == found["living"]


def test_what_a_locked_join_found_stays(server: Server) -> None:
    """A match's text stays although it is nowhere else, neither in memory nor, after a restart, in the store."""
    client = server.client()
    client.run(f"CREATE TABLE o (id int PRIMARY KEY, k int) {SHORT}")
    client.run(f"CREATE TABLE p (k int PRIMARY KEY, name text) {SHORT}")
    client.run("INSERT INTO p VALUES (1, 'the first name'), (2, 'another')")
    client.run(
        f"CREATE MATERIALIZED VIEW v {SHORT} AS SELECT o.id, length(p.name) AS n, upper(p.name) AS name"
        " FROM o JOIN p FOR SYSTEM_TIME AS OF PROCTIME() ON o.k = p.k"
    )
    client.run("INSERT INTO o VALUES (10, 1), (11, 2)")
    client.run("UPDATE p SET name = 'new'")
    expected = [("10", "14", "THE FIRST NAME"), ("11", "7", "ANOTHER")]
    for _ in range(2):
        past(client)
        client.run("VACUUM FULL")
        client.run("INSERT INTO o VALUES (12, 1)")
        assert client.rows("SELECT * FROM v ORDER BY id") == [*expected, ("12", "3", "NEW")]
        client.run("DELETE FROM o WHERE id = 12")
        client.close()
        server.restart()
        client = server.client()
        assert client.rows("SELECT * FROM v ORDER BY id") == expected


def test_not_after_writes_that_commit_with_it(server: Server) -> None:
    client = server.client()
    client.run(f"CREATE TABLE t (id int PRIMARY KEY, s text) {SHORT}")
    assert client.error("INSERT INTO t VALUES (1, 'a'); VACUUM").sqlstate == "25001"
    assert client.rows("TABLE t") == []
    assert client.error("SELECT 1; VACUUM").sqlstate == "25001"
    client.run("INSERT INTO t VALUES (1, 'a')")
