"""CREATE SINK: checks where a sink may write, and creates its folder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from ivm.errors import SqlError
from sql.catalog.catalog import RelationKind
from sql.catalog.search_path import SearchPathReader
from sql.catalog.sink import sink_of
from sql.coordination.coordinator import Coordinator
from sql.ddl.indexes import taken_names
from sql.ddl.sinks import sink_options
from sql.session.state import SessionState
from sql.statements.sinks import CreateSink
from storage.sinks.manifest import FOLDER, taken
from storage.sinks.target import scheme_of, writable_path, writable_uri


@asynccontextmanager
async def prepared_sink(session: SessionState, statement: CreateSink) -> AsyncIterator[CreateSink]:
    """The statement with its URI resolved.

    A local folder is created if it does not exist, and removed again if the statement fails or its transaction does not
    commit. 42501: outside of ``--sinks``; 55006: another sink's; 58P01, 58030: it cannot be created.
    """
    sink_options(statement)
    places = session.coordinator.places
    if scheme_of(statement.uri) not in ("", "file"):
        yield replace(statement, uri=writable_uri(statement.uri, places))
        return
    path = writable_path(statement.uri, places)
    if _is_taken(session, statement):
        yield replace(statement, uri=str(path))  # the statement itself raises the error
        return
    made = await asyncio.to_thread(_made, path)
    session.running.afterwards.append(lambda: _remove_unused(session.coordinator, path, made))
    try:
        yield replace(statement, uri=str(path))
    except BaseException:
        _remove(made)
        raise


def _remove_unused(coordinator: Coordinator, path: Path, made: list[Path]) -> None:
    """Remove the created folders, unless a sink writes there."""
    relations = coordinator.engine.published.catalog.relations.values()
    if not any(sink_of(r).uri == str(path) for r in relations if r.kind is RelationKind.SINK):
        _remove(made)


def _remove(made: list[Path]) -> None:
    for folder in made:
        with suppress(OSError):  # the folder has come into use by others
            folder.rmdir()


def _is_taken(session: SessionState, statement: CreateSink) -> bool:
    """Whether a relation has the sink's name already."""
    catalog = session.running.catalog
    home = SearchPathReader(catalog, session.path(catalog)).home(statement.schema_name, temporary=False)
    return statement.name in taken_names(catalog, home)


def _made(path: Path) -> list[Path]:
    """Create a folder; the folders created, innermost first."""
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
