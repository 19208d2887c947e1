"""What many relations have in the dataflow is freed at once: each pass costs the whole dataflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ivm.network import Network
from tests.support.sessions import Server


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    plain = Network._ancestors

    def counted(self: Network, operators: Sequence[Any]) -> Any:
        found.append(len(operators))
        return plain(self, operators)

    monkeypatch.setattr(Network, "_ancestors", counted)
    return found


def test_a_schema_of_many_tables_is_freed_in_one_pass(server: Server, passes: list[int]) -> None:
    client = server.client()
    client.run("CREATE SCHEMA many")
    for i in range(12):
        client.run(f"CREATE TABLE many.t{i} (id int PRIMARY KEY, x int UNIQUE)")
        client.run(f"CREATE MATERIALIZED VIEW many.v{i} AS SELECT x, count(*) AS n FROM many.t{i} GROUP BY x")
    passes.clear()
    client.run("DROP SCHEMA many CASCADE")
    assert 0 < len(passes) <= 2, passes


def test_what_an_open_transaction_has_made_is_taken_out_in_one_pass(server: Server, passes: list[int]) -> None:
    client, other = server.client(), server.client()
    other.run("CREATE TABLE apart (i int)")
    client.run("BEGIN")
    for i in range(6):
        client.run(f"CREATE TABLE made_{i} (id int PRIMARY KEY, x int UNIQUE)")
    passes.clear()
    other.run("INSERT INTO apart VALUES (1)")
    assert 0 < len(passes) <= 2, passes
    client.run("ROLLBACK")
    other.run("DROP TABLE apart")
    assert other.rows("SELECT count(*) FROM pg_class WHERE relname LIKE 'made%'") == [("0",)]
    client.close()
    other.close()
