"""A row that a join gives more than 2^60 times is an error, never another number."""

from __future__ import annotations

from pathlib import Path

import pytest

from ivm.errors import SqlError
from tests.support.sessions import Server

JOINS = ("linear", "delta", "wco")
EIGHT = "SELECT count(*) FROM t a, t b, t c, t d, t e, t f, t g, t h"


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


def test_a_query_says_so(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (a int); INSERT INTO t SELECT i FROM generate_series(1, 150) i")
    assert client.rows(EIGHT) == [(str(150**8),)]
    client.run("INSERT INTO t SELECT i FROM generate_series(151, 250) i")
    with pytest.raises(SqlError) as raised:
        client.rows(EIGHT)
    assert raised.value.sqlstate == "22003"
    assert client.rows("SELECT count(*) FROM t") == [("250",)]
    server.close()


@pytest.mark.parametrize("implementation", JOINS)
def test_a_view_says_so_and_heals(server: Server, implementation: str) -> None:
    client = server.client()
    client.run("CREATE TABLE t (k int, a int)")
    client.run(f"SET join_implementation = {implementation}")
    inputs = ", ".join(f"(SELECT k FROM t) {name}" for name in "abcdefgh")
    equal = " AND ".join(f"a.k = {name}.k" for name in "bcdefgh")
    client.run(f"CREATE MATERIALIZED VIEW v AS SELECT a.k, count(*) AS n FROM {inputs} WHERE {equal} GROUP BY a.k")
    client.run("CREATE MATERIALIZED VIEW other AS SELECT count(*) AS n FROM t")
    client.run("INSERT INTO t SELECT 1, i FROM generate_series(1, 250) i")
    with pytest.raises(SqlError) as raised:
        client.rows("SELECT n FROM v")
    assert raised.value.sqlstate == "22003"
    assert client.rows("SELECT n FROM other") == [("250",)]
    client.run("DELETE FROM t WHERE a > 100")
    assert client.rows("SELECT n FROM v") == [(str(100**8),)]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    server.close()
