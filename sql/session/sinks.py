"""What sessions have to do with sinks: where one may write, and freshet.sinks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ivm.errors import SqlError
from sql.catalog.catalog import RelationKind
from sql.catalog.search_path import Lookup
from sql.catalog.sink import sink_of, source_of
from sql.ddl.sinks import sink_options
from sql.engine.snapshot import Published
from sql.statements.sinks import CreateSink, SinkStatement
from storage.sinks.manifest import FOLDER, taken
from storage.sinks.target import scheme_of, writable_path, writable_uri

if TYPE_CHECKING:
    from sql.coordination.coordinator import Coordinator


async def prepared_sink(coordinator: Coordinator, statement: SinkStatement) -> SinkStatement:
    """The statement with the place that its URI means, a folder of this machine made if need be.

    42501: outside of ``--sinks``; 55006: another sink's; 58P01, 58030: it cannot be made.
    """
    if not isinstance(statement, CreateSink):
        return statement
    sink_options(statement)
    if scheme_of(statement.uri) not in ("", "file"):
        return replace(statement, uri=writable_uri(statement.uri, coordinator.places))
    path = writable_path(statement.uri, coordinator.places)
    await asyncio.to_thread(_made, path)
    return replace(statement, uri=str(path))


def _made(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        if (path / FOLDER).exists():
            raise taken(str(path))
    except PermissionError:
        raise SqlError("42501", f'could not create "{path}": Permission denied') from None
    except FileExistsError:
        raise SqlError("42809", f'"{path}" is not a folder') from None
    except OSError as error:
        raise SqlError("58030", f'could not create "{path}": {error.strerror}') from error


def sink_rows(coordinator: Coordinator, published: Published, names: Lookup) -> Iterator[tuple[object, ...]]:
    """freshet.sinks: each sink, the oldest first."""
    now = published.epoch
    for relation in sorted(published.catalog.relations.values(), key=lambda r: r.oid):
        if relation.kind is not RelationKind.SINK:
            continue
        sink, at = sink_of(relation), coordinator.sinks.standing(relation.id)
        last, source = at.last, published.catalog.relations[source_of(relation)]
        lag = None if at.epoch is None else (0, 0, max(now - at.epoch, 0))
        totals = (0, 0, 0) if last is None else (last.totals.files, last.totals.rows, last.totals.bytes)
        yield (
            names.shown(relation), names.shown(source), sink.uri, sink.format.value, sink.envelope.value,
            "paused" if sink.paused else at.state, at.epoch, lag, None if last is None else last.generation,
            None if last is None else last.version, *totals, at.error,
        )  # fmt: skip
