"""Assignment to elements and slices of arrays. Answers are PostgreSQL 15's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Client, Server


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    server = Server(tmp_path)
    client = server.client()
    client.run("CREATE TABLE t (k int PRIMARY KEY, a int[], b text, m int[][])")
    client.run("INSERT INTO t VALUES (1, '{1,2}', 'x', '{{1,2},{3,4}}'), (2, NULL, 'y', NULL)")
    yield client
    server.close()


def test_elements_and_slices(client: Client) -> None:
    client.run("CREATE MATERIALIZED VIEW v AS SELECT a[1] AS first, count(*) FROM t GROUP BY a[1]")
    text = "UPDATE t SET a[5] = k * 10, a[1:2] = '{7,8}', b = 'z' WHERE k = 1 RETURNING a, b"
    assert client.rows(text) == [("{7,8,NULL,NULL,10}", "z")]
    assert client.rows("UPDATE t SET a[1] = 9 RETURNING a") == [("{9,8,NULL,NULL,10}",), ("{9}",)]
    assert client.rows("UPDATE t SET a[2:] = '{1,2,3,4}', a[1] = NULL WHERE k = 1 RETURNING a") == [("{NULL,1,2,3,4}",)]
    assert client.rows("UPDATE t SET m[2][1] = 30 WHERE k = 1 RETURNING m") == [("{{1,2},{30,4}}",)]
    text = "INSERT INTO t VALUES (2, '{5}') ON CONFLICT (k) DO UPDATE SET a[2] = excluded.a[1] RETURNING a"
    assert client.rows(text) == [("{9,5}",)]
    text = "MERGE INTO t USING (VALUES (2, 6)) n (i, x) ON i = k WHEN MATCHED THEN UPDATE SET a[3] = x RETURNING a"
    assert client.rows(text) == [("{9,5,6}",)]
    client.run("CREATE VIEW w AS SELECT a AS other, k FROM t")
    assert client.rows("UPDATE w SET other[1] = k + 100 WHERE k = 2 RETURNING other") == [("{102,5,6}",)]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("UPDATE t SET b[1] = 2", "42804", "cannot subscript type text because it does not support subscripting"),
        ("UPDATE t SET a[1:2] = '{1}'", "2202E", "source array too small"),
        ("UPDATE t SET a[NULL] = 2", "22004", "array subscript in assignment must not be null"),
        ("UPDATE t SET a[1] = 'x'", "22P02", 'invalid input syntax for type integer: "x"'),
        ("UPDATE t SET a[1] = DEFAULT", "0A000", "cannot set an array element to DEFAULT"),
        ("UPDATE t SET a[1] = 1, a = '{}'", "42601", 'multiple assignments to same column "a"'),
        ("UPDATE t SET m[3][1] = 1 WHERE k = 1", "2202E", "array subscript out of range"),
        ("UPDATE t SET m[1] = 1 WHERE k = 1", "2202E", "wrong number of array subscripts"),
    ],
)
def test_errors(client: Client, text: str, state: str, message: str) -> None:
    error = client.error(text)
    assert (error.sqlstate, error.message) == (state, message)
