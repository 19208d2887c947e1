"""psql's backslash commands, over objects of all kinds."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.clients.make_psql import ANSWERS, commands, run

pytestmark = pytest.mark.client("psql", "command:psql")


def test_commands_show_what_they_do_on_postgresql(dsn: str, record_property: Callable[[str, object], None]) -> None:
    compared, _ = commands()
    expected, found = json.loads(ANSWERS.read_text()), run(dsn, compared)
    assert list(expected) == compared, "run make_psql again"
    record_property("right", sum(found[c] == expected[c] for c in compared))
    record_property("of", len(compared))
    assert {c: found[c] for c in compared if found[c] != expected[c]} == {}


def test_no_command_fails(dsn: str, record_property: Callable[[str, object], None]) -> None:
    failed = {c: text for c, text in run(dsn, commands()[1]).items() if "ERROR:" in text or "error:" in text}
    record_property("right", len(commands()[1]) - len(failed))
    record_property("of", len(commands()[1]))
    assert failed == {}
