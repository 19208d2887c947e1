"""COPY … FROM 'path': loads the server's files, inside the folders that ``--files`` allows, in one change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, TypeVar

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Words, unpack
from planner.expr.context import Context
from sql.bind.constraints import domain_columns
from sql.bind.copying import format_of
from sql.catalog.catalog import Relation
from sql.coordination.coordinator import Coordinator
from sql.coordination.transaction import Transaction
from sql.dml.loading import order_of
from sql.engine.clock import POSTGRES_EPOCH, wall_clock
from sql.engine.loads import Load, LoadState
from sql.session.collected import Collected
from sql.session.copy_in import gone, table_rows, write_load
from sql.session.information import text_style
from sql.session.load_source import costs_of, for_executors, load_columns, location_of, source_of
from sql.session.rejecting import RowChecks, rejects_of, tell
from sql.session.state import SessionState
from sql.statements.statements import CopyFormat, CopyFrom, CopyOptions
from sql.system.state import CopyInfo
from storage.load.collector import RowCollector
from storage.load.columns import load_schema
from storage.load.engine import choose_engine
from storage.load.paths import LocalFiles, Location
from storage.load.rejects import Rejects
from storage.load.source import LoadSource, read_here
from storage.passwords import hide_passwords
from storage.row_file import FROM_ROWS
from storage.sorted_rows import Run
from storage.spark.costs import cores_of
from storage.types.text_style import TextStyle

T = TypeVar("T")

LOOK_SECONDS: Final = 0.5
"""How often a load checks that its table has not been dropped."""


async def load_file(session: SessionState, transaction: Transaction, statement: CopyFrom, context: Context) -> int:
    """Load files; the number of rows, 0 if this load was committed before.

    42501: outside of --files; 58P01: no such file; 55006: a load of the same id runs; 42P01: the table was dropped.
    """
    coordinator = session.coordinator
    location, load = await new_load(session, statement.path, statement.options, statement.table)
    loads = coordinator.engine.loads
    session.copying = load_progress(load, location)
    with loads.run(load):
        known = await coordinator.jobs.submit(lambda: loads.committed(load.relation, load.id))
        if known is None:
            rows = await read_rows(session, statement, location, context, load)
            load.state = LoadState.COMMITTING
            known = await write_load(coordinator, transaction, statement.table, rows, context, load)
        if known is None:
            tell(session, load)
            return load.rows
    return loaded_before(session, load.id, load.table)


def load_progress(load: Load, location: Location) -> Callable[[], CopyInfo]:
    """Reports a load's progress for pg_stat_progress_copy. Bytes are estimated from rows; 0 if the files do not tell
    their number of rows."""
    size = location.size if isinstance(location, LocalFiles) else 0

    def info() -> CopyInfo:
        done = size * min(load.rows, load.total) // load.total if load.total else 0
        return CopyInfo(load.backend, load.relation, False, "FILE", done, size, load.rows, load.rejected)

    return info


def loaded_before(session: SessionState, id_: str, table: str) -> int:
    """Tell the client that this load was committed before; the number of rows, 0."""
    session.notice(f'load "{id_}" of table {table} was committed before: nothing is loaded again',
                   hint="Its rows are counted in freshet.loads.")  # fmt: skip
    return 0


async def new_load(
    session: SessionState, path: str | None, options: CopyOptions, table: Relation
) -> tuple[Location, Load]:
    """The files that a statement reads, and a new load. Raises 42501, 58P01, 0A000."""
    assert path is not None
    location = await asyncio.to_thread(location_of, path, options.format, session.coordinator.reach)
    cores = cores_of(session.coordinator.spark.session().settings.master)
    choice = choose_engine(options.engine, location, costs_of(options.format), cores)
    engine = "spark" if choice.spark else "local"
    now, backend = wall_clock(), session.backend_id
    id_, named = options.load_id or f"{now:x}-{backend}", options.load_id is not None
    return location, Load(
        id_, table.oid, table.name, hide_passwords(path), engine, backend, now - POSTGRES_EPOCH, named
    )


async def read_rows(
    session: SessionState, statement: CopyFrom, location: Location, context: Context, load: Load
) -> Collected:
    """Whole rows of the statement's table, read from its files on another thread.

    If the statement is cancelled or the table dropped, reading stops and leaves nothing behind.
    """
    coordinator, style = session.coordinator, text_style(session)

    def read() -> Collected:
        return _collected(coordinator, statement, _rows(coordinator, statement, location, context, style, load), load)

    try:
        return await read_beside(coordinator, load, read)
    except SqlError as error:
        named = format_of(statement.path or "")
        if error.hint is None and statement.options.format is CopyFormat.TEXT and named not in (None, CopyFormat.TEXT):
            error.hint = f"By its name this is {named.value}: COPY ... WITH (FORMAT {named.value})."
        raise


async def read_beside(coordinator: Coordinator, load: Load, read: Callable[[], T]) -> T:
    """Run ``read`` on another thread. It is stopped if the statement is cancelled, or the load's table dropped
    (42P01)."""
    there = _is_there(coordinator, load)  # else this transaction has created the table
    reading = asyncio.ensure_future(asyncio.to_thread(read))
    try:
        while not (await asyncio.wait({reading}, timeout=LOOK_SECONDS))[0]:
            if there and not _is_there(coordinator, load):
                raise gone(load.table)
        return reading.result()
    except BaseException:
        load.cancel.set()
        with suppress(SqlError):
            await asyncio.shield(reading)
        raise


def _is_there(coordinator: Coordinator, load: Load) -> bool:
    return any(r.oid == load.relation for r in coordinator.engine.published.catalog.relations.values())


def _collected(coordinator: Coordinator, statement: CopyFrom, parts: Iterator[Run], load: Load) -> Collected:
    """All rows; in a file if there are many."""
    persistence = coordinator.engine.persistence
    folder = None if persistence is None else persistence.row_files
    table = statement.table
    collector = RowCollector(folder, order_of(table), FROM_ROWS)
    for rows, counts in parts:
        load.cancel.check()
        collector.add(rows, counts)
        load.see(collector.count)
    return Collected(collector.finish(load.cancel.check), table.checks)


def _rows(
    coordinator: Coordinator, statement: CopyFrom, location: Location, context: Context, style: TextStyle, load: Load
) -> Iterator[Run]:
    """Whole rows of the table that pass its CHECKs."""
    source = source_of(statement, location, for_executors(style) if load.engine == "spark" else style)
    load.total = source.check()
    table, rejects = statement.table, rejects_of(statement)
    checks = RowChecks(table, rejects, context)
    for run in _loaded(coordinator, source, context, load, rejects):
        rows = _whole_rows(statement, run.rows, context)
        if checks.conditions:  # each row that is left out becomes a reject
            yield Run(checks.passing(rows if run.counts is None else np.repeat(rows, run.counts, axis=0)))
        else:
            yield Run(rows, run.counts)
    if rejects is not None:
        load.reject(rejects.found)


def _whole_rows(statement: CopyFrom, rows: Words, context: Context) -> Words:
    table, schema = statement.table, load_schema(load_columns(statement))
    whole = statement.columns == tuple(range(len(table.columns))) and schema == table.row_schema
    if whole and not domain_columns(table):
        return rows
    return table_rows(statement, unpack(rows, schema), len(rows), context)


def _loaded(
    coordinator: Coordinator, source: LoadSource, context: Context, load: Load, rejects: Rejects | None
) -> Iterator[Run]:
    if load.engine == "spark":
        from storage.load.spark import read_with_spark

        return read_with_spark(
            coordinator.spark.session(), source, context.dictionary, cancel=load.cancel, rejects=rejects, tell=load.see
        )
    return read_here(source, context.dictionary, rejects)
