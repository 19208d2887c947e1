"""Every function, operator and cast over the extremes of its types answers as PostgreSQL 15 does."""

from __future__ import annotations

import json

from planner.expr.context import Context
from storage.dictionary import Dictionary
from tests.support.extreme_answers import asked, digest
from tests.support.paths import ANSWERS


def test_calls_over_extremes_are_answered_as_by_postgres() -> None:
    """``make_extremes.py`` tells which answers of a call differ."""
    wanted = json.loads((ANSWERS / "extremes.json").read_text())
    context = Context(Dictionary(b"0123456789abcdef"))
    wrong, compared = [], 0
    for call in asked():
        if call.name in wanted:
            compared += 1
            if digest(call.answers(context)) != wanted[call.name]:
                wrong.append(call.name)
    assert not wrong
    assert compared > 3000
