"""CREATE INDEX while commits go on: what they change is in the index, and duplicate keys are found in any case."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ivm.errors import SqlError
from sql.coordination.index_filling import IndexFilling
from sql.engine.writer import Writer
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server

INDEXES = (
    "INDEX ON t (a)", "INDEX ON t (a, k)", "UNIQUE INDEX ON t (k)", "UNIQUE INDEX ON t (s)",
    "UNIQUE INDEX ON t (a) WHERE a < 3", "UNIQUE INDEX ON t (k) NULLS NOT DISTINCT", "UNIQUE INDEX ON t (lower(s), a)",
    "INDEX ON v (n)",
)  # fmt: skip
KEYS = {
    INDEXES[2]: "k", INDEXES[3]: "s", INDEXES[4]: "CASE WHEN a < 3 THEN a END", INDEXES[6]: "(lower(s), a)",
}  # fmt: skip


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data")
    yield server
    server.close()


def _set_up(client: Client) -> None:
    client.run("CREATE TABLE t (id int PRIMARY KEY, k int, a int, s text)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
    client.run("INSERT INTO t SELECT i, i, i % 20, 's' || i FROM generate_series(10, 3000) i")


def _change(client: Client, random: Random) -> None:
    key, value = random.randint(1, 40), random.choice((1, 2, 3, 7, "NULL"))
    match random.randint(0, 3):
        case 0 | 1:
            client.run(f"INSERT INTO t VALUES ({key}, {value}, {value}, 'S{value}') ON CONFLICT DO NOTHING")
        case 2:
            client.run(f"DELETE FROM t WHERE id = {key}")
        case _:
            client.run(f"UPDATE t SET k = {value}, a = {value} WHERE id = {key}")


@pytest.mark.parametrize("seed", range(scaled(4)))
def test_random_changes_meanwhile(server: Server, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    random, client, other = Random(seed), server.client(), server.client()
    _set_up(client)
    plain = IndexFilling.run
    meanwhile: list[Random] = []

    def run(filling: IndexFilling) -> None:
        plain(filling)
        for _ in range(random.randint(0, 3)):
            _change(other, meanwhile[0])

    monkeypatch.setattr(IndexFilling, "run", run)
    for name in random.sample(INDEXES, len(INDEXES)):
        meanwhile[:] = [Random(random.random())]
        error: SqlError | None = None
        try:
            client.run(f"CREATE {name}")
        except SqlError as found:
            error = found
        key = KEYS.get(name)
        if error is not None:
            assert error.sqlstate == "23505", name
            _change(client, random)
        if key is not None:  # a row of NULLs is none's duplicate
            keys = f"(SELECT {key} AS x FROM t) y WHERE x IS NOT NULL"
            found = client.rows(f"SELECT x FROM {keys} GROUP BY x HAVING count(*) > 1")
            assert error is not None or not found, (name, found)
        for column, value in (("a", 3), ("k", 7), ("k", 500)):
            looked_up = client.sorted(f"SELECT * FROM t WHERE {column} = {value}")
            assert looked_up == client.sorted(f"SELECT * FROM t WHERE {column} + 0 = {value}"), name
    before = client.sorted("SELECT indexname FROM pg_indexes WHERE tablename IN ('t', 'v')")
    server.restart()
    assert server.client().sorted("SELECT indexname FROM pg_indexes WHERE tablename IN ('t', 'v')") == before


def test_the_engine_does_not_fill_it(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread looks at no rows but those that have changed meanwhile, and runs none of the new nodes first."""
    client = server.client()
    _set_up(client)
    monkeypatch.setattr(Writer, "snapshot", lambda *_: pytest.fail("the table is read"))
    dataflow = server.coordinator.engine.dataflow
    hydrated: list[int] = []
    ranked = dataflow._ranked
    monkeypatch.setattr(dataflow, "_ranked", lambda: hydrated.append(len(dataflow._dormant)) or ranked())
    for name in ("INDEX one ON t (a)", "UNIQUE INDEX two ON t (s)", "UNIQUE INDEX three ON t (k)"):
        client.run(f"CREATE {name}")
    assert sum(hydrated) == 0
    monkeypatch.undo()
    assert client.state("INSERT INTO t VALUES (1, 10, 3, 's11')") == "23505"
    assert "index one" in " ".join(str(row) for row in client.rows("EXPLAIN SELECT * FROM t WHERE a = 3"))


def test_a_duplicate_that_comes_at_the_last_moment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client, other = server.client(), server.client()
    _set_up(client)
    nodes = len(server.coordinator.engine.dataflow.nodes())
    plain = IndexFilling._caught_up

    def caught_up(filling: IndexFilling) -> object:
        found = plain(filling)
        filling.engine.flush()
        return found

    monkeypatch.setattr(IndexFilling, "_caught_up", caught_up)
    run = IndexFilling.run
    monkeypatch.setattr(IndexFilling, "run", lambda f: (run(f), other.run(f"INSERT INTO t VALUES ({_next()}, 500)")))
    error = client.error("CREATE UNIQUE INDEX one ON t (k)")
    assert (error.sqlstate, error.message, error.detail) == (
        "23505", 'could not create unique index "one"', "Key (k)=(500) is duplicated.",
    )  # fmt: skip
    monkeypatch.undo()
    assert len(server.coordinator.engine.dataflow.nodes()) == nodes
    client.run("DELETE FROM t WHERE id < 10 OR id > 3000")
    client.run("CREATE UNIQUE INDEX one ON t (k)")
    assert client.state("INSERT INTO t VALUES (5, 500)") == "23505"
    client.run("DROP INDEX one")
    assert len(server.coordinator.engine.dataflow.nodes()) == nodes


_numbers = iter(range(5000, 6000))


def _next() -> int:
    return next(_numbers)


def test_it_waits_for_those_who_write_and_for_nobody_else(server: Server) -> None:
    client, holder, other = server.client(), server.client(), server.client()
    _set_up(client)
    client.run("CREATE TABLE apart (n int); SET lock_timeout = '200ms'")
    holder.run("BEGIN; INSERT INTO t VALUES (1, 1, 1, 'x')")
    assert client.state("CREATE INDEX ON t (a)") == "55P03"
    other.run("INSERT INTO apart VALUES (1)")
    holder.run("COMMIT")
    client.run("CREATE INDEX ON t (a)")
    assert client.rows("SELECT count(*) FROM t WHERE a = 1") == [("150",)]


def test_two_with_the_same_arrangement(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client, other = server.client(), server.client()
    _set_up(client)
    nodes = len(server.coordinator.engine.dataflow.nodes())
    plain = IndexFilling.run
    made: list[str] = []

    def run(filling: IndexFilling) -> None:
        plain(filling)
        if not made:
            made.append("second")
            other.run("CREATE INDEX second ON t (a)")

    monkeypatch.setattr(IndexFilling, "run", run)
    client.run("CREATE INDEX first ON t (a)")
    assert made
    assert len(server.coordinator.engine.dataflow.nodes()) == nodes + 1
    client.run("DROP INDEX first")
    assert client.rows("SELECT count(*) FROM t WHERE a = 1") == [("149",)]
    client.run("DROP INDEX second")
    assert len(server.coordinator.engine.dataflow.nodes()) == nodes
