"""COPY FROM STDIN while other sessions drop or alter the table, after the rows and before CopyDone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ivm.errors import SqlError
from sql.statements.results import CommandResult, CopyInResult, CopyOutResult, Result, RowsResult
from tests.support.sessions import Client, Row, Server, text_rows


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data")
    yield server
    server.close()


def copied(client: Client, other: Client, change: str) -> str | None:
    """Runs COPY t and, after its rows, a change in another session. Returns the SQLSTATE of the COPY's error."""

    async def work() -> None:
        async for result in client.session.simple("COPY t FROM STDIN"):
            assert isinstance(result, CopyInResult)
            await result.receiver.feed(b"1\tx\n2\ty\n")
            await other.work(change)
            assert isinstance(await result.receiver.finish(), CommandResult)

    try:
        client.server.run(work())
    except SqlError as error:
        client.server.run(client.session.fail())
        return error.sqlstate
    return None


def test_how_far_a_copy_is(server: Server) -> None:
    client, other = server.client(), server.client()
    client.run("CREATE TABLE t (a int, b text)")
    shown = "SELECT relid::regclass::text, command, type, bytes_processed, bytes_total, tuples_processed"
    shown += " FROM pg_stat_progress_copy"
    lines = b"1\tx\n" * (1 << 18)

    async def copy_in() -> list[Row]:
        async for result in client.session.simple("COPY t FROM STDIN"):
            assert isinstance(result, CopyInResult)
            await result.receiver.feed(lines)
            (told,) = await other.work(shown)
            await result.receiver.finish()
        return rows_of(told)

    async def copy_out() -> list[Row]:
        found = []
        async for result in client.session.simple("COPY t TO STDOUT"):
            assert isinstance(result, CopyOutResult)
            async for _ in result.data:
                found += rows_of((await other.work(shown))[0])
        return found

    def rows_of(result: Result) -> list[Row]:
        assert isinstance(result, RowsResult)
        return text_rows(result)

    assert server.run(copy_in()) == [("t", "COPY FROM", "PIPE", str(len(lines)), "0", str(1 << 18))]
    sent = server.run(copy_out())
    assert sent[-1] == ("-", "COPY TO", "PIPE", str(len(lines)), "0", str(1 << 18))
    assert len(sent) > 1
    assert other.rows(shown) == []
    assert client.state("COPY t FROM STDIN WITH (FORMAT nothing)") == "22023"
    assert copied(client, other, "DROP TABLE t") == "42P01"
    assert other.rows(shown) == []


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ("DROP TABLE t CASCADE", "42P01"),
        ("DROP TABLE t CASCADE; CREATE TABLE t (a int, s text)", "42P01"),
        ("ALTER TABLE t ADD COLUMN b int", "40001"),
        ("ALTER TABLE t ALTER COLUMN a TYPE bigint", "40001"),
        ("ALTER TABLE t ALTER COLUMN s SET NOT NULL", "40001"),
        ("ALTER TABLE t ADD CHECK (a > 1)", "23514"),
        ("ALTER TABLE t ADD UNIQUE (a); INSERT INTO t VALUES (2, NULL)", "23505"),
        ("ALTER TABLE t RENAME TO other; ALTER TABLE other RENAME TO t", None),
        ("CREATE INDEX ON t (a)", None),
        ("TRUNCATE t", None),
    ],
)
def test_the_table_as_it_is_at_the_end(server: Server, change: str, state: str | None) -> None:
    client, other = server.client(), server.client()
    client.run("CREATE TABLE t (a int, s text)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT a, count(s) AS n FROM t GROUP BY a")
    change = change if "TYPE" not in change else f"DROP MATERIALIZED VIEW v; {change}"
    assert copied(client, other, change) == state
    if state == "42P01":
        assert client.rows("SELECT relname FROM pg_class WHERE relname = 'v'") == []
        other.run("CREATE TABLE IF NOT EXISTS t (a int, s text)")
        assert client.rows("SELECT * FROM t") == []
        return
    rows = client.sorted("SELECT a, s FROM t")
    assert rows == ([("1", "x"), ("2", "y")] if state is None else [("2", None)] if state == "23505" else [])
    if "TYPE" not in change:
        assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    server.restart()
    assert server.client().sorted("SELECT a, s FROM t") == rows
