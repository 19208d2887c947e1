"""Permission for clients to have the server run Python, and the first run of an aggregate's body."""

from __future__ import annotations

import asyncio

from ivm.errors import SqlError
from sql.coordination.coordinator import Coordinator
from sql.statements.routines import CreateFunction


async def allow_python(coordinator: Coordinator, statement: object) -> None:
    """Run the body of a new aggregate, which defines its function. 42501: the server runs without --python; 38000: the
    body failed."""
    if not isinstance(statement, CreateFunction) or statement.python is None:
        return
    if not coordinator.python:
        raise SqlError(
            "42501", "permission denied for language python",
            "A Python function may do whatever the server's own user may.",
            "Start the server with --python to let everyone who can connect create aggregates in Python.",
        )  # fmt: skip
    await asyncio.to_thread(statement.python.load)
