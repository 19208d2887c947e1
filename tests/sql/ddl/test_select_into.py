"""SELECT INTO is CREATE TABLE AS, and nothing else may contain it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.sessions import Client, Server


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    server = Server(tmp_path_factory.mktemp("data"))
    yield server.client()
    server.close()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT 1 AS a, 'x' AS b INTO {}", [("1", "x")]),
        ("SELECT 1 AS a INTO TEMP {} FROM (SELECT 1) s WHERE true", [("1",)]),
        ("SELECT 1 INTO TABLE {} UNION SELECT 2", [("1",), ("2",)]),
        ("WITH x AS (SELECT 5 AS a) SELECT a INTO UNLOGGED TABLE {} FROM x GROUP BY a HAVING true", [("5",)]),
        ("(SELECT g INTO {} FROM generate_series(1, 3) g) ORDER BY g LIMIT 2", [("1",), ("2",)]),
    ],
)
def test_it_makes_a_table(client: Client, text: str, rows: list[tuple[str, ...]]) -> None:
    assert client.run(text.format("made")) == f"SELECT {len(rows)}"
    assert client.sorted("SELECT * FROM made") == rows
    assert client.state(text.format("made")) == "42P07"
    client.run("DROP TABLE made")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 UNION SELECT 2 INTO made",
        "SELECT * FROM (SELECT 1 INTO made) s",
        "SELECT (SELECT 1 INTO made)",
        "WITH x AS (SELECT 1 INTO made) SELECT 1",
        "CREATE VIEW made AS SELECT 1 INTO other",
        "CREATE TABLE made AS SELECT 1 INTO other",
        "COPY (SELECT 1 INTO made) TO STDOUT",
    ],
)
def test_elsewhere_it_is_refused(client: Client, text: str) -> None:
    assert client.state(text) in ("42601", "0A000")
    assert client.state("SELECT * FROM made") == "42P01"
