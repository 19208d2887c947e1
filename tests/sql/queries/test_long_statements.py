"""The work of parsing, binding and planning grows with a statement's length, and no faster."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Iterator

import pytest

from tests.support.sessions import Client, Server

SHORT, LONG = 50, 200
MOST = 6.0
"""Four times the length may take this many times the calls; quadratic work takes sixteen."""


def listed(form: str, between: str = ", ") -> object:
    """A part of a statement that repeats a form."""
    return lambda n: between.join(form.format(i=i) for i in range(n))


STATEMENTS = {
    "IN": ("SELECT count(*) FROM t WHERE b IN ({})", listed("{i}")),
    "IN of a key": ("SELECT * FROM t WHERE a IN ({})", listed("{i}")),
    "NOT IN": ("SELECT count(*) FROM t WHERE b NOT IN ({})", listed("{i}")),
    "OR": ("SELECT count(*) FROM t WHERE {}", listed("(a = {i} AND b > {i})", " OR ")),
    "AND": ("SELECT count(*) FROM t WHERE {}", listed("a + {i} <> 5", " AND ")),
    "VALUES": ("SELECT count(*) FROM (VALUES {}) v(x, y)", listed("({i}, 'x{i}')")),
    "INSERT": ("INSERT INTO t VALUES {} ON CONFLICT DO NOTHING", listed("({i}, {i})")),
    "UNION ALL": ("SELECT * FROM ({}) u", listed("SELECT {i} AS x", " UNION ALL ")),
    "UNION ALL of tables": ("SELECT * FROM ({}) u", listed("SELECT a + {i} AS x FROM t", " UNION ALL ")),
    "columns": ("SELECT {} FROM t", listed("a + {i} AS c{i}")),
    "aggregates": ("SELECT {} FROM t", listed("sum(a + {i})")),
    "CASE": ("SELECT CASE {} END FROM t", listed("WHEN a = {i} THEN b + {i}", " ")),
    "an array": ("SELECT ARRAY[{}]", listed("{i}")),
    "CTEs": ("WITH {} SELECT * FROM w7", listed("w{i} AS (SELECT {i} AS x)")),
    "CREATE TABLE": ("CREATE TABLE wide{n} ({})", listed("c{i} int")),
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    server = Server(tmp_path_factory.mktemp("long"))
    client = server.client()
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int)")
    yield client
    server.close()


def calls(client: Client, text: str) -> int:
    """How many calls of Python functions the event loop's thread makes for a statement."""
    profile = cProfile.Profile()

    async def run() -> None:
        profile.enable()
        try:
            await client.work(text)
        finally:
            profile.disable()

    client.server.run(run())
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", STATEMENTS)
def test_work_grows_with_the_length(client: Client, name: str) -> None:
    text, part = STATEMENTS[name]
    few, many = (calls(client, text.replace("{n}", str(n)).replace("{}", part(n))) for n in (SHORT, LONG))  # type: ignore[operator]
    assert many < MOST * few, (few, many)
