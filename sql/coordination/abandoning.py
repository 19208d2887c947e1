"""DROP of a view whose loop does not end: it does not have to wait for the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, TypeVar

from sql.catalog.search_path import SearchPathReader
from sql.statements.definitions import Drop

if TYPE_CHECKING:
    from sql.engine.engine import Engine

T = TypeVar("T")
PATIENCE_SECONDS: Final = 0.2
"""How often a DROP that waits for a step tries to end the loop, in seconds."""


def going(statement: Drop, names: SearchPathReader) -> frozenset[int]:
    """The relations that a DROP will certainly drop; none if it may be refused."""
    found = [names.resolve(*name) for name in statement.names]
    ids = {r.id for r in found if r is not None and r.kind is statement.kind}
    dependents = names.catalog.dependents(ids)
    if dependents and not statement.cascade:
        return frozenset()
    return frozenset(ids | {r.id for r in dependents})


async def abandoning(engine: Engine, relations: frozenset[int], job: Awaitable[T]) -> T:
    """The job's result. While it waits for the engine, loops that only ``relations`` use end at their next round."""
    task = asyncio.ensure_future(job)
    try:
        while not (await asyncio.wait({task}, timeout=PATIENCE_SECONDS))[0]:
            _abandon(engine, relations)
    except asyncio.CancelledError:
        task.cancel()
    return await task


def _abandon(engine: Engine, relations: frozenset[int]) -> None:
    stored = dict(engine.renderer.stored)
    mine = [node for relation in relations if relation in stored for node in stored[relation].nodes]
    others = [node for relation, held in stored.items() if relation not in relations for node in held.nodes]
    engine.dataflow.end_loop(mine, others)
