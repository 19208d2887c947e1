"""One-shot queries skip the partitions that their conditions exclude, and find the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from tests.support.sessions import Client, Server

PARTITIONS = {"p1", "p2", "p3x", "p3d", "pd"}
QUERIES = {
    "a = 5": {"p1"},
    "5 = a AND n > 3": {"p1"},
    "a BETWEEN 8 AND 12": {"p1", "p2", "pd"},
    "a >= 10 AND a < 20": {"p2"},
    "a > 9": PARTITIONS,
    "a > 50 AND b = 'x'": {"p3x", "pd"},
    "a = 50 AND b = 'x'": {"p3x"},
    "a = 50 AND b = 'z'": {"p3d"},
    "a IN (1, 15)": {"p1", "p2"},
    "a < 3 OR a = 12": {"p1", "p2", "pd"},
    "a IS NULL": {"pd"},
    "a = 30 AND b IS NULL": {"p3x"},
    "a = 30 AND b IS NOT NULL": {"p3x", "p3d"},
    "a <> 5": PARTITIONS,
    "n = 5": PARTITIONS,
    "a = 5 AND a = 15": set(),
    "a + 0 = 5": PARTITIONS,
}


@pytest.fixture(scope="module")
def table(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("CREATE TABLE t (a int, b text, n int) PARTITION BY RANGE (a)")
    client.run("CREATE TABLE p1 PARTITION OF t FOR VALUES FROM (0) TO (10)")
    client.run("CREATE TABLE p2 (n int, b text, a int)")
    client.run("ALTER TABLE t ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20)")
    client.run("CREATE TABLE p3 PARTITION OF t FOR VALUES FROM (20) TO (100) PARTITION BY LIST (b)")
    client.run("CREATE TABLE p3x PARTITION OF p3 FOR VALUES IN ('x', 'y', NULL)")
    client.run("CREATE TABLE p3d PARTITION OF p3 DEFAULT")
    client.run("CREATE TABLE pd PARTITION OF t DEFAULT")
    client.run("INSERT INTO t SELECT g - 5, chr(115 + g % 8), g FROM generate_series(0, 120) g")
    client.run("INSERT INTO t VALUES (NULL, 'x', 1), (25, NULL, 1), (99, NULL, 5), (NULL, NULL, NULL)")
    client.run("CREATE TABLE plain AS TABLE t")
    yield client
    client.close()


def read(client: Client, query: str) -> set[str]:
    lines = [str(line) for (line,) in client.rows(f"EXPLAIN {query}")]
    return {line.split()[-1] for line in lines if " Table " in f" {line.strip()}"}


def test_plans_read_the_partitions_that_may_have_rows(table: Client) -> None:
    for condition, wanted in QUERIES.items():
        assert read(table, f"SELECT * FROM t WHERE {condition}") == wanted, condition
        assert read(table, f"SELECT count(*) FROM t WHERE {condition}") == wanted, condition
        assert read(table, f"SELECT n FROM t WHERE {condition}") == wanted, condition
        assert read(table, f"DELETE FROM t WHERE {condition}") == wanted, condition
    assert read(table, "SELECT * FROM p3 WHERE b = 'q'") == {"p3d"}
    assert read(table, "SELECT * FROM p1 WHERE a = 50") == set()


def test_the_rows_are_the_same(table: Client) -> None:
    random = Random(4)
    conditions = list(QUERIES)
    for _ in range(120):
        one, two = random.sample(conditions, 2)
        condition = f"({one}) {random.choice(('AND', 'OR', 'AND NOT'))} ({two})"
        found = [table.sorted(f"SELECT a, b, n FROM {name} WHERE {condition}") for name in ("t", "plain")]
        assert found[0] == found[1], condition


def test_changes_find_their_rows(table: Client) -> None:
    table.run("BEGIN")
    for condition in QUERIES:
        for name in ("t", "plain"):
            table.run(f"UPDATE {name} SET n = n + 1 WHERE {condition}")
        assert table.sorted("SELECT a, b, n FROM t") == table.sorted("SELECT a, b, n FROM plain"), condition
    table.run("ROLLBACK")


def test_a_new_partition_is_read_again(table: Client) -> None:
    table.run("PREPARE q AS SELECT count(*) FROM t WHERE a = 200")
    assert table.rows("EXECUTE q") == [("0",)]
    table.run("CREATE TABLE p4 PARTITION OF t FOR VALUES FROM (200) TO (300)")
    table.run("INSERT INTO t VALUES (200, 'x', 1)")
    assert table.rows("EXECUTE q") == [("1",)]
    assert read(table, "SELECT * FROM t WHERE a = 200") == {"p4"}
    table.run("ALTER TABLE t DETACH PARTITION p4")
    assert table.rows("EXECUTE q") == [("0",)]
    table.run("INSERT INTO p4 VALUES (5, 'x', 1)")
    assert read(table, "SELECT * FROM p4 WHERE a = 5") == {"p4"}
    table.run("DROP TABLE p4")
