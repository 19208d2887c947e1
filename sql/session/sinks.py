"""What sessions have to do with sinks: where one may write, and freshet.sinks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ivm.errors import SqlError
from sql.catalog.catalog import RelationKind
from sql.catalog.search_path import Lookup
from sql.catalog.sink import sink_of, source_of
from sql.ddl.indexes import taken_names
from sql.ddl.sinks import sink_options
from sql.engine.snapshot import Published
from sql.statements.sinks import CreateSink, SinkStatement
from storage.sinks.manifest import FOLDER, taken
from storage.sinks.target import scheme_of, writable_path, writable_uri

if TYPE_CHECKING:
    from sql.coordination.coordinator import Coordinator
    from sql.session.session import Session


@asynccontextmanager
async def prepared_sink(session: Session, statement: SinkStatement) -> AsyncIterator[SinkStatement]:
    """The statement with the place that its URI means, a folder of this machine made if need be, which goes again if
    the statement fails, or its transaction does not commit it.

    42501: outside of ``--sinks``; 55006: another sink's; 58P01, 58030: it cannot be made.
    """
    if not isinstance(statement, CreateSink):
        yield statement
        return
    sink_options(statement)
    places = session.coordinator.places
    if scheme_of(statement.uri) not in ("", "file"):
        yield replace(statement, uri=writable_uri(statement.uri, places))
        return
    path = writable_path(statement.uri, places)
    if _is_taken(session, statement):
        yield replace(statement, uri=str(path))  # to be told so
        return
    made = await asyncio.to_thread(_made, path)
    assert session.transaction is not None, "a statement runs in a transaction"
    session.transaction.afterwards.append(lambda: _remove_unused(session.coordinator, path, made))
    try:
        yield replace(statement, uri=str(path))
    except BaseException:
        _remove(made)
        raise


def _remove_unused(coordinator: Coordinator, path: Path, made: list[Path]) -> None:
    """Unless there is a sink that writes there."""
    relations = coordinator.engine.published.catalog.relations.values()
    if not any(sink_of(r).uri == str(path) for r in relations if r.kind is RelationKind.SINK):
        _remove(made)


def _remove(made: list[Path]) -> None:
    for folder in made:
        with suppress(OSError):  # somebody else has begun to use it
            folder.rmdir()


def _is_taken(session: Session, statement: CreateSink) -> bool:
    """Whether a relation has the sink's name already."""
    assert session.transaction is not None, "a statement runs in a transaction"
    catalog = session.transaction.catalog
    home = Lookup(catalog, session.path(catalog)).home(statement.schema_name, temporary=False)
    return statement.name in taken_names(catalog, home)


def _made(path: Path) -> list[Path]:
    """The folders that were made, the innermost first."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
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
    return missing


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
