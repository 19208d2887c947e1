"""pg_export_snapshot and SET TRANSACTION SNAPSHOT: several transactions read the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.sessions import Client, Server

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


@pytest.fixture
def pair(server: Server) -> Iterator[tuple[Client, Client]]:
    a, b = server.client(), server.client()
    a.run("CREATE TABLE counted (x int)")
    a.run("CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM counted")
    a.run("INSERT INTO counted VALUES (1)")
    yield a, b
    a.close()
    b.close()
    last = server.client()
    last.run("DROP TABLE counted CASCADE")
    last.close()


def exported(client: Client) -> str:
    ((name,),) = client.rows("SELECT pg_export_snapshot()")
    return str(name)


def test_others_read_what_the_exporter_reads(pair: tuple[Client, Client], server: Server) -> None:
    a, b = pair
    a.run(_BEGIN)
    name = exported(a)
    writer = server.client()
    writer.run("INSERT INTO counted VALUES (2)")
    writer.run("ALTER TABLE counted ADD y int")
    writer.close()
    b.run(_BEGIN)
    assert b.run(f"SET TRANSACTION SNAPSHOT '{name}'") == "SET"
    for client in (a, b):
        assert client.rows("SELECT * FROM counted") == [("1",)]
        assert client.rows("SELECT n FROM total") == [("1",)]
    a.run("COMMIT")
    assert b.rows("SELECT * FROM counted") == [("1",)]
    b.run("COMMIT")
    assert b.rows("SELECT n FROM total") == [("2",)]


def test_names_hold_until_their_transaction_ends(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("BEGIN")
    first, second = exported(a), exported(a)
    assert first != second
    a.run("ROLLBACK")
    b.run(_BEGIN)
    assert b.state(f"SET TRANSACTION SNAPSHOT '{first}'") == "22023"
    b.run("ROLLBACK")
    name = exported(a)
    b.run(_BEGIN)
    assert b.state(f"SET TRANSACTION SNAPSHOT '{name}'") == "22023"
    b.run("ROLLBACK")


def test_what_may_not_export_or_import(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("BEGIN")
    name = exported(a)
    assert b.state(f"SET TRANSACTION SNAPSHOT '{name}'") == "25P01"
    b.run("BEGIN")
    b.rows("SELECT 1 FROM counted")
    assert b.state(f"SET TRANSACTION SNAPSHOT '{name}'") == "25001"
    b.run("ROLLBACK")
    b.run("BEGIN ISOLATION LEVEL READ COMMITTED")
    assert b.state(f"SET TRANSACTION SNAPSHOT '{name}'") == "0A000"
    b.run("ROLLBACK")
    b.run("BEGIN")
    b.run("INSERT INTO counted VALUES (3)")
    assert b.state("SELECT pg_export_snapshot()") == "0A000"
    b.run("ROLLBACK")
    b.run("BEGIN")
    b.run("SAVEPOINT s")
    assert b.state("SELECT pg_export_snapshot()") == "25001"
    b.run("ROLLBACK")
    a.run("ROLLBACK")


def test_a_writer_over_an_imported_snapshot_is_checked(pair: tuple[Client, Client], server: Server) -> None:
    a, b = pair
    a.run("BEGIN")
    name = exported(a)
    b.run("BEGIN")
    b.run(f"SET TRANSACTION SNAPSHOT '{name}'")
    assert b.rows("SELECT count(*) FROM counted") == [("1",)]
    other = server.client()
    other.run("INSERT INTO counted VALUES (2)")
    other.close()
    assert b.state("INSERT INTO counted SELECT count(*) FROM counted") == "40001"
    b.run("ROLLBACK")
    a.run("ROLLBACK")
