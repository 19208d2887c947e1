"""Cursors: every direction, answered as by PostgreSQL 15, WITH HOLD, savepoints, and cursors as portals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from sql.statements.results import CommandResult, RowsResult
from tests.programs.crashes import Program
from tests.support.sessions import Client, Server, text_rows

WALK = (
    ("FETCH 2 FROM a", (1, 2)),
    ("FETCH PRIOR FROM a", (1,)),
    ("FETCH PRIOR FROM a", ()),
    ("FETCH PRIOR FROM a", ()),
    ("FETCH NEXT FROM a", (1,)),
    ("FETCH LAST FROM a", (5,)),
    ("FETCH NEXT FROM a", ()),
    ("FETCH BACKWARD 2 FROM a", (5, 4)),
    ("FETCH ABSOLUTE 2 FROM a", (2,)),
    ("FETCH RELATIVE 0 FROM a", (2,)),
    ("FETCH 0 FROM a", (2,)),
    ("FETCH RELATIVE 2 FROM a", (4,)),
    ("FETCH RELATIVE -3 FROM a", (1,)),
    ("FETCH ABSOLUTE -2 FROM a", (4,)),
    ("FETCH ABSOLUTE 0 FROM a", ()),
    ("FETCH ALL FROM a", (1, 2, 3, 4, 5)),
    ("FETCH BACKWARD ALL FROM a", (5, 4, 3, 2, 1)),
    ("FETCH FIRST FROM a", (1,)),
    ("FETCH FORWARD 2 IN a", (2, 3)),
    ("FETCH -2 FROM a", (2, 1)),
    ("FETCH BACKWARD -2 FROM a", (2, 3)),
    ("MOVE 2 IN a", "MOVE 2"),
    ("MOVE ABSOLUTE 1 IN a", "MOVE 1"),
    ("MOVE ABSOLUTE 99 IN a", "MOVE 0"),
    ("FETCH RELATIVE -1 FROM a", (5,)),
    ("MOVE BACKWARD ALL IN a", "MOVE 4"),
    ("MOVE ALL IN a", "MOVE 5"),
    ("FETCH 5 FROM a", ()),
    ("FETCH BACKWARD 0 FROM a", ()),
    ("FETCH ABSOLUTE 9 FROM a", ()),
    ("FETCH BACKWARD 1 FROM a", (5,)),
)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    server = Server(tmp_path)
    yield server.client()
    server.close()


def test_every_direction(client: Client) -> None:
    client.run("BEGIN")
    client.run("DECLARE a SCROLL CURSOR FOR SELECT generate_series(1, 5)")
    for text, answer in WALK:
        if isinstance(answer, str):
            assert client.run(text) == answer, text
        else:
            assert client.rows(text) == [(str(n),) for n in answer], text


def test_no_scroll_goes_forward_only(client: Client) -> None:
    client.run("BEGIN")
    client.run("DECLARE b NO SCROLL CURSOR FOR SELECT generate_series(1, 3)")
    assert client.rows("FETCH b") == [("1",)]
    error = client.error("FETCH PRIOR FROM b")
    assert (error.sqlstate, error.message) == ("55000", "cursor can only scan forward")
    assert error.hint == "Declare it with SCROLL option to enable backward scan."


def test_with_hold_outlives_its_transaction_if_that_commits(client: Client) -> None:
    client.run("BEGIN")
    client.run("DECLARE h CURSOR WITH HOLD FOR VALUES (1), (2)")
    client.run("DECLARE plain CURSOR FOR VALUES (1), (2)")
    client.run("ROLLBACK")
    assert client.state("FETCH h") == "34000"
    client.run("DECLARE h CURSOR WITH HOLD FOR VALUES (1), (2)")
    assert client.rows("FETCH h") == [("1",)]
    assert client.state("DECLARE h CURSOR WITH HOLD FOR VALUES (1)") == "42P03"
    assert client.rows("FETCH h") == [("2",)]
    client.run("CLOSE h")
    assert client.state("FETCH h") == "34000"
    assert client.state("DECLARE plain CURSOR FOR VALUES (1)") == "25P01"


def test_savepoints_take_their_cursors_along(client: Client) -> None:
    client.run("BEGIN")
    client.run("DECLARE before CURSOR FOR VALUES (1), (2)")
    client.run("SAVEPOINT s")
    client.run("DECLARE within CURSOR FOR VALUES (1)")
    client.run("ROLLBACK TO s")
    assert client.rows("FETCH before") == [("1",)]
    assert client.state("FETCH within") == "34000"
    client.run("ROLLBACK TO s")
    client.run("DECLARE within CURSOR FOR VALUES (1)")
    client.run("RELEASE s")
    client.run("SAVEPOINT t")
    client.run("ROLLBACK TO t")
    assert client.rows("FETCH within") == [("1",)]


def test_the_catalog_lists_cursors_and_prepared_statements(client: Client) -> None:
    client.run("BEGIN")
    client.run("DECLARE a SCROLL CURSOR FOR SELECT 1")
    query = "SELECT name, statement, is_scrollable, is_holdable FROM pg_cursors"
    assert client.rows(query) == [("a", "DECLARE a SCROLL CURSOR FOR SELECT 1", "t", "f")]
    client.run("PREPARE p (int) AS SELECT $1 + 1")
    query = "SELECT name, parameter_types::oid[], from_sql, prepare_time > '2000-01-02' FROM pg_prepared_statements"
    assert client.rows(query) == [("p", "{23}", "t", "t")]
    client.run("DEALLOCATE p")
    assert client.rows(query) == []


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    running = Program(tmp_path_factory.mktemp("cursors"), ())
    running.wait()
    yield running
    running.kill()


def test_cursors_are_portals(program: Program) -> None:
    """psycopg's server-side cursors describe the portal that DECLARE made."""
    with psycopg.connect(f"host=127.0.0.1 port={program.port} user=u dbname=postgres") as connection:
        with connection.cursor("named", scrollable=True) as cursor:
            cursor.itersize = 3
            cursor.execute("SELECT n, 'x' AS t FROM generate_series(1, %s) AS n", (8,))
            assert [d.name for d in cursor.description or ()] == ["n", "t"]
            assert [n for n, _ in cursor] == list(range(1, 9))
            cursor.scroll(2, mode="absolute")
            assert cursor.fetchmany(2) == [(3, "x"), (4, "x")]
        result = connection.pgconn.exec_(b"DECLARE w CURSOR FOR SELECT generate_series(1, 2)")
        assert result.error_message == b""
        described = connection.pgconn.describe_portal(b"w")
        assert described.fname(0) == b"generate_series"


def test_portals_are_cursors(client: Client) -> None:
    """asyncpg continues with FETCH and MOVE in the portal that it has bound and started."""
    session, run = client.session, client.server.run
    client.run("BEGIN")
    run(session.parse("s", "SELECT generate_series(1, 9)", []))
    run(session.bind("p", "s", [], [], []))
    first = run(session.execute("p", 3))
    assert (text_rows(first), first.suspended) == ([("1",), ("2",), ("3",)], True)
    assert client.run("MOVE FORWARD 2 p") == "MOVE 2"
    assert client.rows("FETCH 2 FROM p") == [("6",), ("7",)]
    last = run(session.execute("p", 3))
    assert (text_rows(last), last.suspended) == ([("8",), ("9",)], False)
    client.run("CLOSE p")
    assert client.state("FETCH p") == "34000"


def test_a_row_that_fails_is_an_error_of_its_fetch(client: Client) -> None:
    client.run("BEGIN")
    client.run("DECLARE a CURSOR FOR SELECT 1 / (x - 1) FROM generate_series(1, 3) x")
    client.run("SAVEPOINT s")
    assert client.error("MOVE a").sqlstate == "22012"
    client.run("ROLLBACK TO s")
    error = client.error("FETCH a")
    assert (error.sqlstate, error.message) == ("55000", 'portal "a" cannot be run')
    client.run("ROLLBACK TO s")
    client.run("CLOSE a")
    client.run("COMMIT")


def test_a_held_cursor_fails_at_commit(client: Client) -> None:
    client.run("CREATE TABLE t (x int)")
    client.run("BEGIN")
    client.run("INSERT INTO t VALUES (1)")
    client.run("DECLARE a CURSOR WITH HOLD FOR SELECT 1 / (x - 1) FROM t")
    assert client.error("COMMIT").sqlstate == "22012"
    assert client.rows("SELECT count(*) FROM t") == [("0",)]
    assert client.error("DECLARE a CURSOR WITH HOLD FOR SELECT 1 / 0").sqlstate == "22012"
    assert client.error("FETCH a").sqlstate == "34000"


def test_a_binary_cursor_gives_its_rows_in_binary(client: Client) -> None:
    client.run("BEGIN")
    client.run("DECLARE b BINARY CURSOR FOR SELECT 1, 'x'")
    client.run("DECLARE t CURSOR FOR SELECT 1")
    (fetched,) = client.results("FETCH b")
    assert isinstance(fetched, RowsResult)
    assert fetched.formats == (1,)
    (fetched,) = client.results("FETCH t")
    assert isinstance(fetched, RowsResult)
    assert fetched.formats == ()
    assert client.rows("SELECT name, is_binary FROM pg_cursors ORDER BY 1") == [("b", "t"), ("t", "f")]
    client.run("ROLLBACK")


def test_move_opens_a_portal_that_has_not_run(server: Server) -> None:
    client = server.client()
    session = client.session
    client.run("BEGIN")

    async def moved() -> tuple[object, object]:
        await session.parse("", "SELECT generate_series(0, 100)", ())
        await session.bind("p", "", (), (), ())
        await session.parse("", "MOVE 42 p", ())
        await session.bind("", "", (), (), ())
        first = await session.execute("", 0)
        return first, await session.execute("p", 1)

    first, row = server.run(moved())
    assert isinstance(first, CommandResult)
    assert isinstance(row, RowsResult)
    assert (first.tag, row.rows.rows[:, 0].tolist()) == ("MOVE 42", [42])
    client.close()
