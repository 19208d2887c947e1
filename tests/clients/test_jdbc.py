"""JDBC's metadata, updatable result sets, batches, cursors, savepoints and types."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.make_jdbc import ANSWERS, missing, run
from tests.support.program import Program

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.client("pgjdbc", "deb:libpostgresql-jdbc-java"),
]


def test_answers_are_those_of_postgresql(
    dsn: str, program: Program, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    expected, found = json.loads(ANSWERS.read_text()), run(program.port, tmp_path)
    record_property("right", sum(found.get(title) == lines for title, lines in expected.items()))
    record_property("of", len(expected))
    assert list(found) == list(expected)
    assert {title: lines for title, lines in found.items() if lines != expected[title]} == {}
