"""Several sessions of one server, of which some wait for others, or for Spark."""

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
    """Start a statement that is to wait for a lock, and wait until it does."""
    found: Future[Any] = client.server.start(client.work(text))
    backend, waiting = client.session.state.backend_id, client.server.coordinator.jobs.waits
    until = time.monotonic() + LONG
    while all(owner.backend != backend for owner, _, _ in waiting.waited_for()):
        assert not found.done(), text
        assert time.monotonic() < until, f"it does not wait for a lock: {text}"
        time.sleep(0.002)
    return found


def waits_for_spark(client: Client, text: str) -> Future[Any]:
    """Start a statement that is to wait for a job of Spark's, and wait until it does."""
    found: Future[Any] = client.server.start(client.work(text))
    until = time.monotonic() + LONG
    while not client.server.coordinator.scattered._waiters:
        assert not found.done(), text
        assert time.monotonic() < until, f"it does not wait for a job: {text}"
        time.sleep(0.002)
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
