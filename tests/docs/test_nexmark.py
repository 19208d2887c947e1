"""Nexmark's queries as maintained views, against a PostgreSQL's recorded answers."""

from __future__ import annotations

import json
from pathlib import Path

from examples.nexmark.run import answer, rows_of, views
from tests.answers.make_nexmark import FILE, steps
from tests.support.sessions import Server


def test_the_views_are_what_postgres_answers(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    expected = json.loads(FILE.read_text())
    assert len(views()) == 23
    for number, (statements, answers) in enumerate(zip(steps(), expected, strict=True)):
        for statement in statements:
            client.run(statement)
        if number == 0:
            for name, query in views().items():
                client.run(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for name in views():
            found = answer(row[0] for row in client.rows(rows_of(name)))
            assert list(found) == answers[name], (number, name)
    for name in views():
        assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == [], name
    client.close()
    server.close()


def test_windows_of_time(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE b (a int, ts timestamp, tz timestamptz)")
    client.run("INSERT INTO b VALUES (1, '2024-01-01 00:00:07', '2024-01-01 00:00:07+00'), (2, NULL, NULL)")
    day = "2024-01-01 00:00"
    assert client.rows("SELECT a, window_start, window_end FROM tumble(b, ts, interval '10' second)") == [
        ("1", f"{day}:00", f"{day}:10")
    ]
    hop = "SELECT window_start, count(*) FROM hop(b, tz, interval '2 s', interval '5 s') h GROUP BY 1"
    client.run(f"CREATE MATERIALIZED VIEW hops AS {hop}")
    client.run("INSERT INTO b VALUES (3, NULL, '2024-01-01 00:00:09+00')")
    expected = [(f"{day}:04+00", "1"), (f"{day}:06+00", "2"), (f"{day}:08+00", "1")]
    assert client.sorted("SELECT * FROM hops") == client.sorted(hop) == expected
    named = "WITH c AS (SELECT * FROM b) SELECT q, t FROM tumble((SELECT a, ts FROM c), ts, '1 hour') x(q, r, s, t)"
    assert client.rows(named) == [("1", "2024-01-01 01:00:00")]
    assert client.error("SELECT * FROM tumble(b, ts)").sqlstate == "42883"
    assert client.error("SELECT * FROM tumble(b, ts, interval '1 month')").sqlstate == "0A000"
    client.close()
    server.close()
