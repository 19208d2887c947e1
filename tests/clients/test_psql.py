"""psql's backslash commands, over objects of all kinds."""

from __future__ import annotations

import json

from tests.clients.make_psql import ANSWERS, commands, run


def test_commands_show_what_they_do_on_postgresql(dsn: str) -> None:
    compared, _ = commands()
    expected, found = json.loads(ANSWERS.read_text()), run(dsn, compared)
    assert list(expected) == compared, "run make_psql again"
    assert {c: found[c] for c in compared if found[c] != expected[c]} == {}


def test_no_command_fails(dsn: str) -> None:
    failed = {c: text for c, text in run(dsn, commands()[1]).items() if "ERROR:" in text or "error:" in text}
    assert failed == {}
