"""Several sessions of one server, of which some wait for others."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any, Final

from ivm.errors import SqlError
from tests.support.sessions import Client

Clients = tuple[Client, Client, Client]
LONG: Final = 20.0
"""Seconds within which a statement ends that nobody blocks any more."""


def waits(client: Client, text: str) -> Future[Any]:
    """Start a statement that is to wait for a lock."""
    found: Future[Any] = client.server.start(client.work(text))
    time.sleep(0.1)
    assert not found.done(), text
    return found


def begin(*clients: Client, level: str = "SERIALIZABLE") -> None:
    """Open a transaction in each session."""
    for client in clients:
        client.run(f"BEGIN ISOLATION LEVEL {level}")


def error_of(found: Future[Any]) -> SqlError:
    """The error with which a statement ends that has waited."""
    error = found.exception(LONG)
    assert isinstance(error, SqlError)
    return error
