"""The rows of large statements are found while others commit, and are those of the newest commit all the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from sql.coordination.coordinator import Coordinator
from sql.session.ahead import TRIES
from tests.support.sessions import Client, Server

T = TypeVar("T")
ROWS = 3000
FORMS = (
    "UPDATE t SET b = b + 1",
    "UPDATE t SET b = -b FROM u WHERE u.a = t.b % 10",
    "UPDATE t SET b = n FROM v WHERE v.c = t.c AND t.b > 5",
    "DELETE FROM t WHERE b % 3 = 0 OR b IS NULL",
    "INSERT INTO t SELECT a + 100000, b, c FROM t WHERE c = 'x' ORDER BY a LIMIT 50",
    "INSERT INTO t SELECT a, 0, 'again' FROM t ON CONFLICT (a) DO UPDATE SET c = excluded.c || t.b",
    "MERGE INTO t USING t AS s ON s.a = t.a AND s.b > 7 WHEN MATCHED AND t.c = 'x' THEN DELETE"
    " WHEN MATCHED THEN UPDATE SET b = s.b * 2",
)
CHANGES = (
    "UPDATE t SET b = 9999 WHERE a = 7",
    "DELETE FROM t WHERE a BETWEEN 10 AND 20",
    "INSERT INTO t VALUES (-1, 3, 'x'), (-2, NULL, NULL)",
    "UPDATE u SET a = 8 WHERE a = 3",
)


class Meanwhile:
    """What is done each time that rows have been found; ``tries``: how often they have been."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tries, self._plan, self._busy = 0, list[tuple[Client, str]](), False
        read = Coordinator.read

        async def then(coordinator: Coordinator, work: Callable[[], T], cancel: threading.Event) -> T:
            found = await read(coordinator, work, cancel)
            if not self._busy:
                self.tries, self._busy = self.tries + 1, True
                plan, self._plan = self._plan[:1], self._plan[1:]
                for client, text in plan:
                    await client.work(text)
                self._busy = False
            return found

        monkeypatch.setattr(Coordinator, "read", then)

    def does(self, client: Client, *texts: str) -> None:
        """One text each time."""
        self.tries, self._plan = 0, [(client, text) for text in texts]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    return Meanwhile(monkeypatch)


@pytest.fixture
def pair(server: Server) -> Iterator[tuple[Client, Client]]:
    a, b = server.client(), server.client()
    a.run("CREATE TABLE t (a int PRIMARY KEY, b int, c text)")
    a.run("CREATE TABLE u (a int PRIMARY KEY)")
    a.run("CREATE MATERIALIZED VIEW v AS SELECT c, count(*)::int AS n, sum(b) AS s FROM t GROUP BY c")
    a.run(f"INSERT INTO t SELECT i, i % 100, chr(119 + i % 3) FROM generate_series(1, {ROWS}) i")
    a.run("INSERT INTO u VALUES (3), (4)")
    yield a, b
    for client in (a, b):
        client.results("ROLLBACK")
    a.run("DROP TABLE t, u CASCADE")
    a.run("DROP SEQUENCE IF EXISTS s")
    a.close()
    b.close()


def expected(client: Client, *texts: str) -> list[tuple[str | None, ...]]:
    """The rows after these, one after the other, all of which is undone."""
    client.run("BEGIN")
    for text in texts:
        client.run(text)
    rows = client.sorted("SELECT * FROM t")
    client.run("ROLLBACK")
    return rows


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("form", FORMS)
def test_it_is_as_if_the_other_had_come_before(
    pair: tuple[Client, Client], meanwhile: Meanwhile, form: str, change: str
) -> None:
    a, b = pair
    rows = expected(a, change, form)
    meanwhile.does(b, change)
    a.run(form)
    assert meanwhile.tries in (1, 2)
    assert a.sorted("SELECT * FROM t") == rows
    assert a.rows("VERIFY MATERIALIZED VIEW v") == []


def test_others_commit_while_it_reads(pair: tuple[Client, Client], meanwhile: Meanwhile) -> None:
    a, b = pair
    meanwhile.does(b, "INSERT INTO u VALUES (5)")
    assert a.run("UPDATE t SET b = b + 1") == f"UPDATE {ROWS}"
    assert meanwhile.tries == 1
    meanwhile.does(b, "INSERT INTO t VALUES (-1, 1, 'q')")  # which it does not look at
    assert a.run("UPDATE t SET b = b + 1 WHERE c = 'x'") == f"UPDATE {ROWS // 3}"
    assert meanwhile.tries == 1


@pytest.mark.parametrize("times", range(1, TRIES + 2))
def test_it_is_not_overtaken_for_ever(pair: tuple[Client, Client], meanwhile: Meanwhile, times: int) -> None:
    a, b = pair
    meanwhile.does(b, *("UPDATE t SET b = 1000 + b % 1000 WHERE a < 3" for _ in range(times)))
    assert a.run("UPDATE t SET b = b + 1") == f"UPDATE {ROWS}"
    assert meanwhile.tries == min(times + 1, TRIES)
    assert a.rows("SELECT b FROM t WHERE a = 1") == [("1002",)]


def test_what_has_effects_is_not_done_twice(pair: tuple[Client, Client], meanwhile: Meanwhile) -> None:
    a, b = pair
    a.run("CREATE SEQUENCE s")
    meanwhile.does(b)
    a.run("INSERT INTO t SELECT -a, setval('s', a + 10), c FROM t")
    a.run("UPDATE t SET b = 0 WHERE set_config('application_name', c, false) = c")
    a.run("UPDATE t SET b = 1 WHERE random() < 0.5")  # other rows each time that it is asked
    a.run("DELETE FROM t WHERE a IN (SELECT a FROM t WHERE clock_timestamp() < now())")
    assert meanwhile.tries == 0
    a.run("INSERT INTO t SELECT 10000 + a, nextval('s'), c FROM t WHERE a > 0")
    assert meanwhile.tries == 1
    assert a.rows("SELECT count(DISTINCT b), min(b) > 10 FROM t WHERE a > 10000") == [(str(ROWS), "t")]


@pytest.mark.parametrize("level", ["READ COMMITTED", "SERIALIZABLE"])
def test_a_transaction_sees_its_own_changes(pair: tuple[Client, Client], meanwhile: Meanwhile, level: str) -> None:
    a, b = pair
    a.run(f"BEGIN ISOLATION LEVEL {level}")
    meanwhile.does(b, "INSERT INTO u VALUES (6)")
    a.run("UPDATE t SET b = b + 1 WHERE c = 'x'")
    assert meanwhile.tries == 1
    a.run("UPDATE t SET b = b + 1 WHERE c = 'x'")
    assert meanwhile.tries == 1, "its own changes are not published"
    a.run("COMMIT")
    assert a.rows("SELECT sum(b - a % 100) FROM t") == [(str(2 * (ROWS // 3)),)]


def test_serializable_refuses_what_has_changed_since_it_was_read(
    pair: tuple[Client, Client], meanwhile: Meanwhile
) -> None:
    a, b = pair
    a.run("BEGIN ISOLATION LEVEL SERIALIZABLE")
    a.rows("SELECT sum(b) FROM t")
    meanwhile.does(b, "UPDATE t SET b = 0 WHERE a = 5")
    assert a.state("UPDATE t SET b = b + 1") == "40001"
    a.run("ROLLBACK")
    a.run("BEGIN ISOLATION LEVEL SERIALIZABLE")
    meanwhile.does(b)
    a.run("INSERT INTO u SELECT max(a) FROM t")
    b.run("INSERT INTO t VALUES (77777, 0, 'y')")
    assert a.state("COMMIT") == "40001"


def test_a_change_by_key_is_not_looked_for_ahead(pair: tuple[Client, Client], meanwhile: Meanwhile) -> None:
    a, b = pair
    meanwhile.does(b)
    for k in range(3):
        a.run(f"UPDATE t SET b = CASE WHEN b % 2 = 0 THEN length(c || b) ELSE coalesce(b, {k}) END WHERE a = {k}")
        a.run(f"DELETE FROM t WHERE a IN ({k}, 9) AND c ~ 'z+'")
    assert meanwhile.tries == 0


def test_an_error_in_it_is_reported(pair: tuple[Client, Client], meanwhile: Meanwhile) -> None:
    a, b = pair
    meanwhile.does(b)
    assert a.state("UPDATE t SET b = 1 / (b - 50)") == "22012"
    assert a.state("INSERT INTO t SELECT 1, b, c FROM t") == "23505"
    assert a.run("DELETE FROM t WHERE b = 50") == f"DELETE {ROWS // 100}"


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t",
        "SELECT a, b / 2 AS half, n FROM t JOIN v USING (c) ORDER BY a DESC LIMIT 500",
        "SELECT a FROM t EXCEPT ALL SELECT a FROM u",
    ],
)
def test_a_table_is_made_of_the_newest_rows(
    pair: tuple[Client, Client], meanwhile: Meanwhile, query: str, change: str
) -> None:
    a, b = pair
    meanwhile.does(b, change)
    tag = a.run(f"CREATE TABLE made AS {query}")
    assert meanwhile.tries in (1, 2)
    rows = a.sorted(query)
    assert a.sorted("SELECT * FROM made") == rows
    assert tag == f"SELECT {len(rows)}"
    meanwhile.does(b, "INSERT INTO t VALUES (-7, 1, 'q')")
    assert a.state(f"CREATE TABLE made AS {query}") == "42P07"
    a.run("BEGIN")
    a.run("DELETE FROM t WHERE a < 50")
    a.run(f"CREATE TABLE again AS {query}")
    assert a.sorted("SELECT * FROM again") == a.sorted(query), "with its own changes"
    a.run("ROLLBACK")
    a.run("DROP TABLE made")
