"""A restart recovers everything acknowledged; views equal a recompute; time never goes backwards."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ivm.errors import SqlError
from sql.catalog import stored_form
from sql.catalog.catalog import Catalog, Relation, RelationKind, TableColumn
from sql.catalog.stored_form import catalog_from_json, catalog_to_json
from sql.engine.clock import EpochClock
from tests.support.sessions import Server


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path / "data")


def _fill(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (id int PRIMARY KEY, g text NOT NULL, x numeric, d date DEFAULT '2020-02-02')")
    client.run("CREATE VIEW w AS SELECT g || '!' AS name, x FROM t")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT name, count(*) AS n, sum(x) AS s FROM w GROUP BY name")
    client.run("CREATE MATERIALIZED VIEW vv AS SELECT max(n) AS most FROM v")
    client.run("INSERT INTO t (id, g, x) SELECT i, 'g' || i % 7, i * 0.5 FROM generate_series(1, 100) i")
    client.run("DELETE FROM t WHERE id % 10 = 0")
    client.close()


def _contents(server: Server) -> list[object]:
    client = server.client()
    found: list[object] = [client.sorted(f"SELECT * FROM {name}") for name in ("t", "w", "v", "vv")]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    assert client.rows("VERIFY MATERIALIZED VIEW vv") == []
    client.close()
    return found


def test_a_clean_restart_brings_everything_back(server: Server) -> None:
    _fill(server)
    before = _contents(server)
    for _ in range(2):
        server.restart()
        assert _contents(server) == before
    client = server.client()
    client.run("INSERT INTO t (id, g, x) VALUES (1000, 'new', 1)")
    assert client.rows("SELECT * FROM v WHERE name = 'new!'") == [("new!", "1", "1")]
    assert client.rows("SELECT d FROM t WHERE id = 1000") == [("2020-02-02",)]
    server.close()


def test_the_log_alone_brings_everything_back(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a kill before anything was applied to the store: recovers DDL, drops and derived values too."""
    from storage.checkpoint import Applier

    monkeypatch.setattr(Applier, "submit", lambda self, batch: None)
    client = server.client()
    client.run("CREATE TABLE gone (a int)")
    client.run("INSERT INTO gone VALUES (1)")
    _fill(server)
    client.run("CREATE MATERIALIZED VIEW x AS SELECT upper(g) AS u, id FROM t")
    client.run("INSERT INTO t (id, g) SELECT 1000 + id, u FROM x WHERE id < 5")
    client.run("DROP TABLE gone")
    client.run("BEGIN; INSERT INTO t (id, g) VALUES (5000, 'never'); ROLLBACK")
    before = _contents(server), client.sorted("SELECT * FROM x")
    server.restart()
    client = server.client()
    assert (_contents(server), client.sorted("SELECT * FROM x")) == before
    assert client.state("SELECT * FROM gone") == "42P01"
    monkeypatch.undo()
    server.restart()
    client = server.client()
    assert (_contents(server), client.sorted("SELECT * FROM x")) == before
    server.close()


def test_history_survives_a_restart(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (id int)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    seen = []
    for i in range(5):
        client.run(f"INSERT INTO t VALUES ({i})")
        seen.append((client.rows("SELECT mz_now()")[0][0], str(i + 1)))
    server.restart()
    client = server.client()
    client.run("INSERT INTO t VALUES (100)")
    for epoch, n in seen:
        assert client.rows(f"SELECT n FROM v AS OF {epoch}") == [(n,)]
        assert client.rows(f"SELECT count(*) FROM t AS OF {epoch}") == [(n,)]
    server.close()


def test_epochs_rise_over_a_restart_with_a_clock_that_goes_back(tmp_path: Path) -> None:
    now = [1_000_000]
    clock = EpochClock(tmp_path / "lease", lambda: now[0])
    first = clock.advance()
    clock.observe(5_000_000)
    assert clock.advance() > 5_000_000
    now[0] = 500_000
    again = EpochClock(tmp_path / "lease", lambda: now[0])
    again.restore(first)
    assert again.advance() > 5_000_000
    now[0] = 400_000
    assert again.now() > 5_000_000


def test_ids_and_versions_are_not_used_again(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE a (x int)")
    client.run("INSERT INTO a VALUES (1)")
    client.run("DROP TABLE a")
    client.run("CREATE TABLE b (x int)")
    server.restart()
    client = server.client()
    assert client.rows("SELECT * FROM b") == []
    client.run("CREATE TABLE c (x int)")
    ids = client.rows("SELECT 'b'::regclass::oid::int, 'c'::regclass::oid::int")[0]
    assert int(str(ids[0])) < int(str(ids[1]))
    server.close()


def test_versions_of_the_log_are_not_used_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store's catalog is older than the log's: a statement that was bound with the newest is bound again."""
    from storage.checkpoint import Applier

    with monkeypatch.context() as patch:
        patch.setattr(Applier, "submit", lambda self, batch: None)
        client = server.client()
        for i in range(4):
            client.run(f"CREATE TABLE t{i} (x int)")
        server.restart()
    client = server.client()
    assert client.rows("SELECT * FROM t3") == []
    for i in range(4):
        client.run(f"DROP TABLE t{i}")
        assert client.state(f"SELECT * FROM t{i}") == "42P01"
    server.close()


def test_one_server_a_folder(server: Server) -> None:
    with pytest.raises(SqlError) as caught:
        Server(server.folder)
    assert caught.value.sqlstate == "55006"
    server.close()


def test_the_catalog_as_json() -> None:
    from ivm.words import INT4, NUMERIC, TEXT, Kind, SqlType

    table = Relation(
        16384, "public", "tä", RelationKind.TABLE,
        (TableColumn("a", INT4, False, "1 + 1"), TableColumn("b", SqlType(Kind.ARRAY, element=TEXT)),
         TableColumn("c", SqlType(Kind.NUMERIC, 10, 2))), (0,), None, 5, 6,
    )  # fmt: skip
    view = Relation(
        16385, "public", "v", RelationKind.MATERIALIZED_VIEW, (TableColumn("n", NUMERIC),), (), "SELECT 1", 0, 7,
        (16384,),
    )  # fmt: skip
    catalog = Catalog().with_relation(table, 1).with_relation(view, 2)
    again = catalog_from_json(Catalog(), catalog_to_json(catalog))
    assert again.relations == catalog.relations
    assert again.next_id == 16386
    assert again.version == 2
    assert [r.name for r in again.dependents([16384])] == ["v"]


def test_entries_of_replayed_records_reach_the_store(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that were only in the log when the server was killed, and values that views derived from them, outlive the
    log: a second restart has only the store."""
    from storage.checkpoint import Applier

    client = server.client()
    client.run("CREATE TABLE t (id int, g text)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT upper(g) || '?' AS u, count(*) AS n FROM t GROUP BY g")
    client.close()
    server.restart()
    monkeypatch.setattr(Applier, "submit", lambda self, batch: None)
    client = server.client()
    for i in range(20):
        client.run(f"INSERT INTO t VALUES ({i}, 'only in the log {i % 7}')")
    client.run("INSERT INTO t SELECT n, u FROM v")
    before = client.sorted("SELECT * FROM t"), client.sorted("SELECT * FROM v")
    client.close()
    server.restart()  # replays the log
    assert server.client().rows("SELECT count(*) FROM v") == [("14",)]  # it is filled, in a commit of its own
    monkeypatch.undo()
    server.restart()  # replays it again, and applies it
    server.restart()  # has only the store
    client = server.client()
    assert (client.sorted("SELECT * FROM t"), client.sorted("SELECT * FROM v")) == before
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    server.close()


def test_as_of_an_epoch_that_commits_overtake(server: Server) -> None:
    """A read at the present time, queued behind commits of the same moment, sees no later ones."""
    client, writer = server.client(), server.client()
    client.run("CREATE TABLE t (a int)")
    seen = []
    for i in range(60):
        later = [server.start(writer.work(f"INSERT INTO t VALUES ({i})"))]
        epoch = time.time_ns() // 1000
        found = client.rows(f"SELECT count(*) FROM t AS OF {epoch}")
        seen.append((epoch, found))
        for future in later:
            future.result(10)
    for epoch, found in seen:
        assert client.rows(f"SELECT count(*) FROM t AS OF {epoch}") == found
    server.close()


def test_a_definition_writes_what_is_new_and_copies_the_rest(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = server.client()
    client.run("".join(f"CREATE TABLE written_{i} (a int);" for i in range(20)))
    written: list[str] = []
    usual = stored_form._relation_to_json

    def counting(relation: Relation) -> dict[str, object]:
        written.append(relation.name)
        return usual(relation)

    monkeypatch.setattr(stored_form, "_relation_to_json", counting)
    client.run("CREATE TABLE written_once (a int)")
    assert written == ["written_once"]
    client.run("ALTER TABLE written_7 ADD COLUMN b int")
    assert written == ["written_once", "written_7"]
    client.close()
    server.restart()
    client = server.client()
    assert client.rows("SELECT count(*) FROM pg_class WHERE relname LIKE 'written%'") == [("21",)]
    client.run("DROP TABLE written_7, written_once")
    client.close()
