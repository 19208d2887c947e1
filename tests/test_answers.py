"""Queries of one line each, answered as by a PostgreSQL 15 (``tests/answers/queries.sql``, ``queries.json``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivm.errors import SqlError
from tests.answers.make_queries import ANSWERS, SETTINGS, Answer, lines
from tests.sessions import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("answers") / "data")
    yield server
    server.close()


def _answer(server: Server, text: str) -> Answer:
    client = server.client(**SETTINGS)
    try:
        return [list(row) for row in client.rows(text)]
    except SqlError as error:
        return error.sqlstate
    finally:
        client.close()


def test_queries_are_answered_as_by_postgres(server: Server) -> None:
    wrong = []
    for text, wanted in json.loads(ANSWERS.read_text()):
        got = _answer(server, text)
        if got != wanted:
            wrong.append(f"{text}\n  {got} instead of {wanted}")
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40])


def test_every_query_has_its_answer() -> None:
    assert [text for text, _ in json.loads(Path(ANSWERS).read_text())] == lines()
