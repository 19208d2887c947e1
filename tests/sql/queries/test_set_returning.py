"""Set-returning functions in every clause, answered as by PostgreSQL 15 (``tests/answers/make_set_returning.py``)."""

from __future__ import annotations

import json
from pathlib import Path

from ivm.errors import SqlError
from tests.answers.make_set_returning import ANSWERS, CHANGES, SETUP, Answer, queries
from tests.support.sessions import Client, Server


def _answer(client: Client, text: str) -> Answer:
    client.run("BEGIN")
    try:
        return [list(row) for row in client.sorted(text)]
    except SqlError as error:
        return error.sqlstate
    finally:
        client.run("ROLLBACK")


def test_every_query_has_its_answer() -> None:
    assert [text for text, _, _ in json.loads(ANSWERS.read_text())] == queries()


def test_queries_and_views_are_answered_as_by_postgres(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    for text in SETUP:
        client.run(text)
    cases = json.loads(ANSWERS.read_text())
    wrong = []
    views = {}
    for i, (text, before, _) in enumerate(cases):
        if (got := _answer(client, text)) != before:
            wrong.append(f"{text}\n  {got} instead of {before}")
        if isinstance(before, list) and text.startswith("SELECT"):
            views[text] = f"v{i}"
            client.run(f"CREATE MATERIALIZED VIEW v{i} AS {text}")
    for text in CHANGES:
        client.run(text)
    for text, _, after in cases:
        if (got := _answer(client, text)) != after:
            wrong.append(f"{text}\n  {got} instead of {after} after changes")
        if text in views and (got := _answer(client, f"SELECT * FROM {views[text]}")) != after:
            wrong.append(f"{text}\n  {got} instead of {after} as a view")
        if text in views and client.rows(f"VERIFY MATERIALIZED VIEW {views[text]}"):
            wrong.append(f"{text}\n  the view is not what a recompute gives")
    server.close()
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:30])
