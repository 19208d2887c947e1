"""JDBC's metadata, updatable result sets, batches, cursors, savepoints and types."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.clients.make_jdbc import ANSWERS, missing, run
from tests.support.program import Program

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def test_answers_are_those_of_postgresql(dsn: str, program: Program, tmp_path: Path) -> None:
    expected, found = json.loads(ANSWERS.read_text()), run(program.port, tmp_path)
    assert list(found) == list(expected)
    assert {title: lines for title, lines in found.items() if lines != expected[title]} == {}
