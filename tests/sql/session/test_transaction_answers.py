"""Random histories of one session, against the answers of a real PostgreSQL: settings in every state of a transaction,
blocks and savepoints, chains, modes, cursors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ivm.errors import SqlError
from sql.statements.results import CommandResult, RowsResult
from tests.answers.make_transactions import SETUP
from tests.support.sessions import Client, Server, text_rows

HISTORIES = json.loads(Path("tests/answers/transactions.json").read_text())
WITHOUT_DETAIL = ("42601", "42703", "42P01")
"""Errors of names and syntax: other tests compare their texts."""


async def gives(client: Client, text: str) -> list[Any]:
    """What a message gives, in the form of the recorded answers."""
    session = client.session
    found: list[Any] = []
    try:
        async for result in session.simple(text):
            if isinstance(result, RowsResult):
                found.append([list(row) for row in text_rows(result)])
            else:
                assert isinstance(result, CommandResult), result
                found.append(result.tag)
    except SqlError as error:
        await session.fail()
        found.append({"error": error.sqlstate, "message": error.message})
    return [*({"warning": n.sqlstate, "message": n.message} for n in client.notices()), *found]


def _comparable(given: list[Any]) -> list[Any]:
    return [
        {"error": each["error"]} if isinstance(each, dict) and each.get("error") in WITHOUT_DETAIL else each
        for each in given
    ]


@pytest.mark.parametrize("number", range(len(HISTORIES)))
def test_histories_are_those_of_postgres(server: Server, number: int) -> None:
    setup = server.client()
    for text in ("DROP TABLE IF EXISTS made", *SETUP):
        setup.run(text)
    setup.close()
    client = server.client()
    try:
        for message in HISTORIES[number]:
            given = _comparable(server.run(gives(client, message["send"])))
            status = client.session.transaction_status
            assert (given, status) == (_comparable(message["gives"]), message["status"]), message["send"]
    finally:
        client.close()
