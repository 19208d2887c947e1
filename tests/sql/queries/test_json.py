"""json and jsonb, answered as by PostgreSQL 15 and 17 (``tests/answers/make_json.py``)."""

from __future__ import annotations

import json

import pytest

from ivm.errors import SqlError
from planner.expr.functions.jsonpath import evaluator
from sql.statements.results import RowsResult
from tests.answers.make_json import VERSIONS, answers, lines
from tests.answers.make_queries import SETTINGS, Answer
from tests.support.sessions import Server, text_rows


def _answer(server: Server, text: str) -> Answer:
    client = server.client(**SETTINGS)
    try:
        last = client.results(text)[-1]
        return [list(row) for row in text_rows(last)] if isinstance(last, RowsResult) else []
    except SqlError as error:
        return error.sqlstate
    finally:
        client.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_json_is_as_in_postgres(server: Server, version: str) -> None:
    wrong = []
    for text, wanted in json.loads(answers(version).read_text()):
        got = _answer(server, text)
        if got != wanted:
            wrong.append(f"{text}\n  {got} instead of {wanted}")
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40])


@pytest.mark.parametrize("version", VERSIONS)
def test_every_case_has_its_answer(version: str) -> None:
    assert [text for text, _ in json.loads(answers(version).read_text())] == lines(version)


def test_jsonpaths_that_take_too_much_are_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _answer(server, "SELECT repeat('(', 5000)::jsonpath") == "54001"
    assert _answer(server, "SELECT '1'::jsonb @? ('1' || repeat('+1', 5000) || ' == 1')::jsonpath") == "54001"
    monkeypatch.setattr(evaluator, "MAX_STEPS", 100)
    assert _answer(server, "SELECT jsonb_path_exists('[[[[[[[[]]]]]]]]', '$.**.**.** ? (@ == 1)')") == "54000"
