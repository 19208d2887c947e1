"""Text search in maintained views, and its limits."""

from __future__ import annotations

import pytest

from planner.expr.functions.textsearch import headlines, ranking
from tests.support.sessions import Server

VIEWS = (
    "SELECT id, ts_rank(to_tsvector('english', body), q) AS r, ts_rank_cd(to_tsvector('english', body), q, 1) AS c "
    "FROM docs, asked WHERE to_tsvector('english', body) @@ q",
    "SELECT id, ts_headline('english', body, q, 'MaxWords=4, MinWords=2') AS h FROM docs LEFT JOIN asked ON true",
    "SELECT u.lexeme, count(*) AS n FROM docs, unnest(to_tsvector('english', body)) AS u GROUP BY u.lexeme",
    "SELECT p.tokid, count(DISTINCT p.token) AS n FROM docs, ts_parse('default', body) AS p GROUP BY p.tokid",
    "SELECT max(ts_rewrite(q, 'fox', 'wolf | dog')::text) AS m FROM asked",
)
CHANGES = (
    "INSERT INTO docs VALUES (1, 'The quick brown fox'), (2, NULL), (3, 'foxes and dogs, dogs'), (4, '')",
    "INSERT INTO asked VALUES ('fox'), ('dog & fox'), (NULL), ('')",
    "INSERT INTO docs VALUES (3, 'foxes and dogs, dogs')",
    "UPDATE docs SET body = body || ' over a lazy dog' WHERE id = 1",
    "UPDATE asked SET q = 'lazi | quick' WHERE q = 'fox'",
    "DELETE FROM docs WHERE id = 3",
    "DELETE FROM asked",
)


def test_views_are_maintained(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE docs (id int, body text); CREATE TABLE asked (q tsquery)")
    for i, query in enumerate(VIEWS):
        client.run(f"CREATE MATERIALIZED VIEW ts{i} AS {query}")
    for change in CHANGES:
        client.run(change)
        for i, query in enumerate(VIEWS):
            assert client.rows(f"VERIFY MATERIALIZED VIEW ts{i}") == [], (change, query)
            assert sorted(map(str, client.rows(f"SELECT * FROM ts{i}"))) == sorted(map(str, client.rows(query)))


def test_hostile_arguments_end_soon(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """With smaller limits, up to which the work takes seconds."""
    monkeypatch.setattr(ranking, "_MOST_PAIRS", 1_000_000)
    monkeypatch.setattr(headlines, "_MOST_STEPS", 200_000)
    client = server.client()
    vector = "(SELECT string_agg('w' || a || ':' || (SELECT string_agg((b * 64)::text, ',') FROM "
    vector += "generate_series(1, 250) b), ' ')::tsvector FROM generate_series(1, 300) a)"
    query = "(SELECT string_agg('w' || a, ' & ')::tsquery FROM generate_series(1, 300) a)"
    assert client.state(f"SELECT ts_rank({vector}, {query})") == "54001"
    assert client.state("SELECT ts_headline('simple', repeat('a ', 60000), 'a & !a & z')") in ("54001", None)
    assert client.state("SELECT ts_stat('SELECT 1')") == "0A000"
    assert client.state("SELECT ts_rewrite('a', 'SELECT 1')") == "0A000"
    assert client.state("SELECT ts_lexize('german_stem', 'a')") == "0A000"
