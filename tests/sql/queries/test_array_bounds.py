"""Arrays with lower bounds other than 1 in tables, keys, maintained views and PL/pgSQL; tests/answers has PostgreSQL's
answers to queries of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from ivm.words import INT4, Kind, SqlType
from storage.types.arrays import bounded
from storage.types.order import canonical, sort_key
from tests.support.sessions import Client, Server

INTS = SqlType(Kind.ARRAY, element=INT4)
GROUPED = "SELECT a, count(*), min(a[0]), max(array_upper(a, 1)) FROM t GROUP BY a"


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    yield client
    client.results("ROLLBACK")
    client.run("DROP TABLE IF EXISTS t CASCADE")
    client.close()


def test_the_order_of_bounds() -> None:
    ascending = [
        (1,), bounded((1,), (4,)), bounded((1, 2), (-7,)), bounded((1, 2), (0,)), (1, 2), bounded((1, 2), (2,)),
        bounded(((1, 2),), (0, 5)), bounded(((1, 2),), (1, 0)), ((1, 2),), bounded(((1, 2),), (1, 2)), (1, 2, 0),
    ]  # fmt: skip
    for less, more in pairwise(ascending):
        assert sort_key(INTS, less) < sort_key(INTS, more)
        assert canonical(INTS, less) != canonical(INTS, more)
    assert len({repr(value) for value in ascending}) == len(ascending)


def test_views_tell_bounds_apart(client: Client) -> None:
    client.run("CREATE TABLE t (i int PRIMARY KEY, a int[])")
    client.run("INSERT INTO t VALUES (1, '[0:1]={1,2}'), (2, '{1,2}'), (3, NULL)")
    client.run(f"CREATE MATERIALIZED VIEW v AS {GROUPED}")
    for change in (
        "INSERT INTO t VALUES (4, '[0:1]={1,2}'), (5, '{1,2}'), (6, '[2:3]={1,2}'), (7, '{}'), (8, NULL)",
        "UPDATE t SET a[0] = 9 WHERE i IN (2, 3)",
        "DELETE FROM t WHERE i = 1",
        "UPDATE t SET a = a || a WHERE a[0] IS NOT NULL",
        "DELETE FROM t WHERE a = '[0:3]={1,2,1,2}'",
    ):
        client.run(change)
        assert client.rows("SELECT * FROM v ORDER BY a") == client.rows(f"{GROUPED} ORDER BY a")
    assert client.rows("SELECT a FROM v ORDER BY a") == [
        ("{}",), ("{1,2}",), ("[2:3]={1,2}",), ("[0:5]={9,1,2,9,1,2}",), ("[0:1]={9,9}",), (None,),
    ]  # fmt: skip


def test_variables_of_plpgsql(client: Client) -> None:
    client.run("CREATE TABLE t (a int[])")
    client.run("DO $$ DECLARE a int[]; BEGIN a[3] := 1; a[1:2] := '{7,8}'; a[0] := 5; INSERT INTO t VALUES (a); END $$")
    assert client.rows("SELECT a, a[0:1] FROM t") == [("[0:3]={5,7,8,1}", "{5,7}")]
