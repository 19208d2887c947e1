"""A query whose relations another session drops between binding and reading."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ivm.errors import SqlError
from sql.coordination.transaction import Extent
from sql.parse import StatementText
from sql.session.preparing import prepare
from sql.session.request import Request
from sql.statements.results import CopyOutResult, RowsResult
from tests.support.sessions import Client, Server, text_rows


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data")
    yield server
    server.close()


def read_after(client: Client, other: Client, query: str, change: str) -> list[tuple[str | None, ...]]:
    async def work() -> list[tuple[str | None, ...]]:
        prepared = prepare(client.session.state, StatementText(query))
        await other.work(change)
        client.session.state.begin_implicit(Extent.STATEMENT)
        try:
            result = await client.session._executor.run(prepared, Request(single=True))
        finally:
            await client.session.fail()
        if isinstance(result, CopyOutResult):
            return [(bytes(chunk).decode().split()[-1],) async for chunk in result.data]
        assert isinstance(result, RowsResult)
        return text_rows(result)

    return client.server.run(work())


@pytest.mark.parametrize(
    "query", ["SELECT count(*) FROM t", "SELECT a FROM t WHERE a > 0", "SELECT n FROM v", "SELECT a FROM p"]
)
def test_it_reads_what_has_that_name_now(server: Server, query: str) -> None:
    client, other = server.client(), server.client()
    made = (
        "CREATE TABLE t (a int); INSERT INTO t VALUES ({0}); CREATE VIEW p AS SELECT a FROM t;"
        " CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t"
    )
    client.run(made.format(1))
    found = read_after(client, other, query, "DROP TABLE t CASCADE; " + made.format("7), (8"))
    assert found == {"c": [("2",)], "a": [("7",), ("8",)], "n": [("2",)]}[query[7]]
    assert state_after(client, other, query) == "42P01"


@pytest.mark.parametrize(("query", "found"), [
    ("VERIFY MATERIALIZED VIEW v", []),
    ("COPY (SUBSCRIBE v) TO STDOUT", None),
    ("COPY (SELECT a FROM t) TO STDOUT", [("7",)]),
])  # fmt: skip
def test_verify_subscribe_and_copy(server: Server, query: str, found: list[tuple[str]]) -> None:
    client, other = server.client(), server.client()
    made = "CREATE TABLE t (a int); INSERT INTO t VALUES (7); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS n FROM t"
    client.run(made)
    if found is not None:
        assert read_after(client, other, query, "DROP TABLE t CASCADE; " + made) == found
    assert state_after(client, other, query) == "42P01"


def state_after(client: Client, other: Client, query: str) -> str:
    with pytest.raises(SqlError) as raised:
        read_after(client, other, query, "DROP TABLE t CASCADE")
    return raised.value.sqlstate
