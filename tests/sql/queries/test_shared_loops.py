"""Views over one recursion, where the first keeps nothing that a later one could read: the loop is run again for the
later one, whatever is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sessions import Client, Server

DOWN = "SELECT n FROM lim UNION ALL SELECT n - 1 FROM t WHERE n > 1"
ONCE = DOWN.replace(" ALL", "")
SOME = "RETURN AT RECURSION LIMIT"
LOOPS = {
    "counter": f"WITH RECURSIVE t (n) AS ({DOWN})",
    "union": f"WITH RECURSIVE t (n) AS ({ONCE})",
    "returns": f"WITH MUTUALLY RECURSIVE ({SOME} 4) t (n int) AS ({DOWN})",
    "returns, distinct": f"WITH MUTUALLY RECURSIVE ({SOME} 4) t (n int) AS ({ONCE})",
    "errors": f"WITH MUTUALLY RECURSIVE (ERROR AT RECURSION LIMIT 30) t (n int) AS ({DOWN})",
    "two": (
        "WITH MUTUALLY RECURSIVE"
        " u (n int) AS (SELECT n FROM lim WHERE n % 2 = 0 UNION ALL SELECT n - 2 FROM t WHERE n > 2),"
        " t (n int) AS (SELECT n FROM lim UNION ALL SELECT n - 1 FROM u WHERE n > 1)"
    ),
    "constant": "WITH RECURSIVE t (n) AS (SELECT 3 UNION ALL SELECT n - 1 FROM t WHERE n > 1 AND n < 9)",
    "kept in part": (
        "WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 5) t (n bigint) AS (SELECT n FROM lim UNION ALL"
        " SELECT n - 1 FROM t WHERE n > 1 UNION ALL SELECT count(*) FROM t WHERE n < 3)"
    ),
}
VIEWS = (
    "SELECT count(*), sum(n) FROM t",
    "SELECT n FROM t",
    "SELECT max(n) FROM t",
    "SELECT n % 3, count(*) FROM t GROUP BY 1",
)


@pytest.mark.parametrize("name", LOOPS)
def test_later_views_of_a_loop_are_right(name: str, tmp_path: Path) -> None:
    server = Server(tmp_path)
    client = server.client()
    client.run("CREATE TABLE lim (n int); INSERT INTO lim VALUES (10), (4), (4), (NULL)")
    for number, body in enumerate(VIEWS):
        client.run(f"CREATE MATERIALIZED VIEW v{number} AS {LOOPS[name]} {body}")
        agree(client, name, number + 1)
        client.run(f"INSERT INTO lim VALUES ({number + 5})")
        agree(client, name, number + 1)
        client.run("DELETE FROM lim WHERE n = 4; UPDATE lim SET n = 12 WHERE n = 10")
        agree(client, name, number + 1)
        client.run("INSERT INTO lim VALUES (4), (10); DELETE FROM lim WHERE n = 12")
    server.close()


def agree(client: Client, name: str, count: int) -> None:
    for number, body in enumerate(VIEWS[:count]):
        assert client.rows(f"VERIFY MATERIALIZED VIEW v{number}") == []
        assert client.sorted(f"TABLE v{number}") == client.sorted(f"{LOOPS[name]} {body}")
