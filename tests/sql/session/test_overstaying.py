"""A routine in a query does not keep others from writing for ever, and who waits for it can be cancelled.

Between the statements of a routine that is a statement of its own others go on: ``test_stepping.py``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ivm.errors import SqlError
from sql.session.routines import nested
from tests.support.sessions import Client, Server
from tests.support.waiting import LONG, error_of

ENDLESS = [
    "SELECT endless() FROM one",
    "INSERT INTO one SELECT endless()",
    "DO $$ BEGIN PERFORM endless() FROM one; END $$",
    "SELECT looking()",
    "SELECT catching() FROM one",
]


@pytest.fixture
def pair(server: Server) -> Iterator[tuple[Client, Client]]:
    a, b = server.client(), server.client()
    a.run("CREATE TABLE t (i int PRIMARY KEY)")
    a.run("CREATE FUNCTION endless() RETURNS int LANGUAGE plpgsql AS 'BEGIN LOOP END LOOP; END'")
    a.run("CREATE TABLE one AS SELECT 1 AS a")
    look = "BEGIN LOOP PERFORM count(*) FROM t; END LOOP; END"
    a.run(f"CREATE FUNCTION looking() RETURNS int STABLE LANGUAGE plpgsql AS '{look}'")
    catch = "BEGIN LOOP BEGIN PERFORM 1; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END"
    a.run(f"CREATE FUNCTION catching() RETURNS int LANGUAGE plpgsql AS '{catch}'")
    yield a, b
    a.run("DROP FUNCTION endless(), looking(), catching()")
    a.run("DROP TABLE t, one")
    a.close()
    b.close()


def until_busy(server: Server, text: str) -> None:
    end = time.monotonic() + LONG
    while (server.coordinator.jobs._thread.busy or (0, ""))[1] != text:
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("text", ENDLESS)
def test_others_wait_for_so_long(
    server: Server, pair: tuple[Client, Client], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair
    monkeypatch.setattr(nested, "MOST_SECONDS", 0.05)
    endless = server.start(a.work(text))
    until_busy(server, text)
    rows = 0
    while not endless.done():
        b.run(f"INSERT INTO t VALUES ({rows})")
        rows += 1
    error = error_of(endless)
    assert (error.sqlstate, error.hint) == ("57014", "Do the work in several statements.")
    assert b.rows("SELECT count(*) FROM t") == [(str(rows),)]


def test_it_goes_on_while_nobody_waits(
    server: Server, pair: tuple[Client, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nested, "MOST_SECONDS", 0.0)
    fill = "BEGIN FOR i IN 1..200 LOOP INSERT INTO t VALUES (i); END LOOP; RETURN 1; END"
    pair[0].run(f"CREATE FUNCTION fill() RETURNS int LANGUAGE plpgsql AS '{fill}'")
    pair[0].run("SELECT fill() FROM one")
    assert pair[1].rows("SELECT count(*) FROM t") == [("200",)]
    pair[0].run("DROP FUNCTION fill()")


def test_who_waits_behind_it_is_cancelled_at_once(server: Server, pair: tuple[Client, Client]) -> None:
    """It has not begun, so nobody has to wait for its end."""
    a, b = pair
    endless = server.start(a.work(ENDLESS[0]))
    until_busy(server, ENDLESS[0])
    b.run("SET statement_timeout = '30ms'")
    with pytest.raises(SqlError) as error:
        b.run("INSERT INTO t VALUES (2)")
    assert error.value.sqlstate == "57014"
    assert not endless.done()
    b.run("RESET statement_timeout")
    waiting = server.start(b.work("INSERT INTO t VALUES (3)"))
    while not server.coordinator.jobs.pending > 1:
        time.sleep(0.001)
    server.run(b.session.cancel())
    assert error_of(waiting).sqlstate == "57014"
    assert not endless.done()
    server.run(a.session.cancel())
    assert error_of(endless).sqlstate == "57014"
    assert b.rows("SELECT * FROM t") == []
    b.run("INSERT INTO t VALUES (4)")
    assert a.rows("SELECT * FROM t") == [("4",)]
