"""Queries over tables that change, as PostgreSQL 15 answers them, and their views (``tests/answers/changing``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ivm.errors import SqlError
from tests.answers.make_changing import FAMILIES, Answer, answers, family
from tests.support.sessions import Client, Server

VERIFIED = 8
"""Of so many views, one is compared with a recompute too, word by word: PostgreSQL's rows are those of all."""


def _answer(client: Client, text: str) -> Answer:
    client.run("BEGIN")
    try:
        return [list(row) for row in client.sorted(text)]
    except SqlError as error:
        return error.sqlstate
    finally:
        client.run("ROLLBACK")


@pytest.mark.parametrize("name", FAMILIES)
def test_every_query_has_its_answer(name: str) -> None:
    assert [text for text, _, _ in answers(name)] == family(name).queries()


@pytest.mark.parametrize("name", FAMILIES)
def test_queries_and_views_are_answered_as_by_postgres(name: str, tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    for text in family(name).SETUP:
        client.run(text)
    wrong = []
    views = {}
    for i, (text, before, after) in enumerate(answers(name)):
        if (got := _answer(client, text)) != before:
            wrong.append(f"{text}\n  {got} instead of {before}")
        elif isinstance(before, list) and text.startswith("SELECT"):
            views[text] = f"v{i}"
            width = max(map(len, (*before, *after)), default=0)
            names = f"({', '.join(f'c{n}' for n in range(width))})" if width else ""
            client.run(f"CREATE MATERIALIZED VIEW v{i} {names} AS {text}")
    for text in family(name).CHANGES:
        client.run(text)
    for i, (text, _, after) in enumerate(answers(name)):
        if (got := _answer(client, text)) != after:
            wrong.append(f"{text}\n  {got} instead of {after} after the changes")
        if text in views and (got := _answer(client, f"SELECT * FROM {views[text]}")) != after:
            wrong.append(f"{text}\n  {got} instead of {after} as a view")
        if text in views and i % VERIFIED == 0 and client.rows(f"VERIFY MATERIALIZED VIEW {views[text]}"):
            wrong.append(f"{text}\n  the view is not what a recompute gives")
    server.close()
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:30])
