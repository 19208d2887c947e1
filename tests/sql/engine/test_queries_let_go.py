"""A query's memory is free as soon as it ends, without waiting for the garbage collector, which may take minutes."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ivm.errors import SqlError
from ivm.runtime.operator import Operator
from tests.support.sessions import Client, Server

TABLES = (
    "CREATE TABLE t (id bigint PRIMARY KEY, a int, b int, c text)",
    "CREATE TABLE u (id bigint, a int)",
    "INSERT INTO t SELECT i, i % 100, i % 7, 'x' || i FROM generate_series(1, 500) AS g(i)",
    "INSERT INTO u SELECT i, i % 100 FROM generate_series(1, 500) AS g(i)",
    "CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a",
)
STATEMENTS = (
    "SELECT sum(a) FROM t",
    "SELECT a, max(c), count(DISTINCT b) FROM t GROUP BY a",
    "SELECT t.id, u.a FROM t LEFT JOIN u ON t.a = u.id",
    "SELECT t.a, count(*) FROM t JOIN u ON t.id = u.id JOIN u AS w ON u.a = w.id GROUP BY t.a",
    "WITH RECURSIVE r(x) AS (SELECT 1 UNION SELECT x + 1 FROM r WHERE x < 50) SELECT count(*) FROM r",
    "WITH RECURSIVE r(x) AS (SELECT 1 UNION SELECT x + 1 FROM r WHERE x < 50) SELECT 1 / (x - 40) FROM r",
    "SELECT id, row_number() OVER (PARTITION BY a ORDER BY id) FROM t",
    "SELECT id FROM t WHERE NOT EXISTS (SELECT FROM u WHERE u.id = t.a)",
    "SELECT a FROM t EXCEPT ALL SELECT a FROM u",
    "SELECT sum(1 / (a - 5)) FROM t",
    "SELECT string_agg(c, ',') FROM t GROUP BY b",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t",
    "VERIFY MATERIALIZED VIEW v",
    "UPDATE t SET b = b + 1 WHERE a IN (SELECT a FROM u WHERE id < 5)",
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    server = Server(tmp_path_factory.mktemp("data"))
    found = server.client()
    for statement in TABLES:
        found.run(statement)
    yield found
    server.close()


def operators() -> set[int]:
    return {id(found) for found in gc.get_objects() if issubclass(type(found), Operator)}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_operator_waits_for_the_collector(client: Client, statement: str) -> None:
    def told() -> str:
        try:
            return str(client.results(statement))
        except SqlError as error:
            return error.sqlstate

    told()
    gc.collect()
    gc.disable()
    try:
        before = operators()
        told()
        assert not operators() - before
    finally:
        gc.enable()
