"""Several window functions: ties are broken alike in all functions of a window, whatever else the query has."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Row, Server

VIEW = """CREATE MATERIALIZED VIEW v AS SELECT g, a, b, x,
  row_number() OVER (PARTITION BY g ORDER BY a) AS r, lag(x) OVER (PARTITION BY g ORDER BY a) AS before,
  row_number() OVER (ORDER BY b DESC) AS place, lead(x, 2) OVER (ORDER BY b DESC) AS behind,
  first_value(x) OVER (PARTITION BY g ORDER BY a) AS first, count(*) OVER (PARTITION BY a) AS alike FROM t"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.close()


@pytest.mark.parametrize("ddl", [
    "g int, a int, b text, x int", "g int, a int NOT NULL, b numeric, x int NOT NULL",
    "g int NOT NULL, a int NOT NULL, b int NOT NULL, x int NOT NULL",
])  # fmt: skip
def test_ties(server: Server, ddl: str) -> None:
    client = server.client()
    rnd = random.Random(ddl)
    client.run(f"CREATE TABLE t ({ddl})")
    client.run(VIEW)
    columns = [c.split() for c in ddl.split(", ")]
    for step in range(9):
        rows = [
            ", ".join("NULL" if len(c) == 2 and rnd.random() < 0.2 else f"'{rnd.randint(1, 2)}'" for c in columns)
            for _ in range(rnd.randint(1, 6))
        ]
        client.run("INSERT INTO t VALUES " + ", ".join(f"({row})" for row in rows))
        if step % 3 == 2:
            client.run(f"DELETE FROM t WHERE a = {rnd.randint(1, 2)} AND x = {rnd.randint(1, 2)}")
        check(client.rows("SELECT * FROM v"))
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []


def check(rows: list[Row]) -> None:
    """Checks that neighbours agree with the row numbers, in either window."""
    group = {(r[0], int(r[4] or 0)): r[3] for r in rows}
    whole = {int(r[6] or 0): r[3] for r in rows}
    assert len(group) == len(whole) == len(rows)
    for row in rows:
        g, number, place = row[0], int(row[4] or 0), int(row[6] or 0)
        assert row[5] == group.get((g, number - 1)), row
        assert row[7] == whole.get(place + 2), row
        assert row[8] == group[g, 1], row
        assert row[9] == str(sum(r[1] == row[1] for r in rows)), row
