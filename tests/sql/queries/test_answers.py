"""One-line queries, answered as by PostgreSQL (``tests/answers/make_queries.py``)."""

from __future__ import annotations

import random

import pytest

from ivm.errors import SqlError
from sql.pgwire.startup import REPORTED
from sql.statements.results import RowsResult
from tests.answers.make_queries import SETS, SETTINGS, Answer, answered, lines
from tests.support.profiles import scaled
from tests.support.sessions import Server, text_rows


def _answer(server: Server, text: str) -> Answer:
    client = server.client(**SETTINGS)
    try:
        last = client.results(text)[-1]
        return [list(row) for row in text_rows(last, client.session.text_style)] if isinstance(last, RowsResult) else []
    except SqlError as error:
        return error.sqlstate
    finally:
        client.close()


@pytest.mark.parametrize("name", SETS)
def test_queries_are_answered_as_by_postgres(server: Server, name: str) -> None:
    wrong = []
    for text, wanted in answered(name):
        got = _answer(server, text)
        if got != wanted:
            wrong.append(f"{text}\n  {got} instead of {wanted}")
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40])


@pytest.mark.parametrize("name", SETS)
def test_every_query_has_its_answer(name: str) -> None:
    assert [text for text, _ in answered(name)] == lines(name)


def test_the_server_says_one_version(server: Server) -> None:
    ((whole, shown, number),) = server.client().rows(
        "SELECT version(), current_setting('server_version'), current_setting('server_version_num')"
    )
    assert shown == REPORTED["server_version"]
    assert whole == f"PostgreSQL {shown}"
    assert "Freshet" in shown
    assert number == "150000"


VIEWS = (
    "SELECT t.a, l.y FROM t LEFT JOIN LATERAL (SELECT y FROM u WHERE u.x = t.a) l ON l.y > (SELECT min(b) FROM t)",
    "SELECT t.a, l.m FROM t LEFT JOIN LATERAL (SELECT u.y + t.b AS m FROM u) l ON EXISTS (SELECT FROM t WHERE a = l.m)",
    "SELECT a, CASE WHEN a > 2 THEN (SELECT max(10 / (y - 9)) FROM u) ELSE b END AS c FROM t",
    "SELECT x, array_agg(ARRAY[y, x]) AS c FROM u GROUP BY x",
    "SELECT n, f, (SELECT count(*) FROM u WHERE w.n >= w.f AND w.n <= y) FROM w",
    "SELECT n, n IN (SELECT x FROM u WHERE w.n <> w.f) FROM w",
    "SELECT n, (SELECT max(y) FROM u WHERE y > w.n) NOT IN (SELECT x FROM u) FROM w",
    "SELECT x, sum(DISTINCT y::numeric(9, 1) / 2 * 1.0), count(DISTINCT y * 1.0) FROM u GROUP BY x",
    "SELECT array_agg(ARRAY[y] ORDER BY x, y DESC) FILTER (WHERE y < 4) AS c FROM u",
    "SELECT x, percentile_cont(0.3) WITHIN GROUP (ORDER BY y DESC) AS c, mode() WITHIN GROUP (ORDER BY y) AS m, "
    "percentile_disc(x * 0.25) WITHIN GROUP (ORDER BY y) FILTER (WHERE y > 1) AS d FROM u GROUP BY x",
    "SELECT percentile_disc(ARRAY[0, 0.5, 1]) WITHIN GROUP (ORDER BY u.y) AS d, count(*) AS n FROM t JOIN u ON a = x",
)


def test_views_of_these_queries_are_maintained(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (a int, b int); CREATE TABLE u (x int, y int); CREATE TABLE w (n numeric, f float8)")
    for i, query in enumerate(VIEWS):
        client.run(f"CREATE MATERIALIZED VIEW v{i} AS {query}")
    rnd = random.Random(5)
    for step in range(scaled(20)):
        table, one, two = rnd.choice((("t", "a", "b"), ("u", "x", "y"), ("w", "n", "f")))
        row = [rnd.choice(("NULL", "1", "2", "3")), rnd.choice(("NULL", "1", "2", "3", "4"))]
        if table == "w":
            row = [rnd.choice(("NULL", "1.0", "1.00", "2", "2.50")), rnd.choice(("NULL", "0", "'-0'", "1", "2"))]
        if rnd.random() < 0.6:
            client.run(f"INSERT INTO {table} VALUES ({', '.join(row)})")
        elif rnd.random() < 0.5:
            client.run(f"DELETE FROM {table} WHERE {one} = {rnd.randint(1, 3)}")
        else:
            client.run(f"UPDATE {table} SET {one} = {row[0]} WHERE {two} = {rnd.randint(1, 4)}")
        for i in range(len(VIEWS)):
            assert client.rows(f"VERIFY MATERIALIZED VIEW v{i}") == [], (step, VIEWS[i])
