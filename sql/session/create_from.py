"""CREATE TABLE … FROM 'uri': the columns as the files tell them, and their rows, in one change; EXPLAIN COPY."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sql.catalog.catalog import Relation, RelationKind, TableColumn
from sql.coordination.prepared import Prepared
from sql.engine.writer import Writer
from sql.session.collected import Collected
from sql.session.copy_files import new_load, read_rows
from sql.session.load_schema import explain_load, table_columns
from sql.session.reads import Request
from sql.session.state import SessionState
from sql.statements.definitions import CreateTable
from sql.statements.results import CommandResult, Notice
from sql.statements.statements import CopyFrom, CreateTableFrom

if TYPE_CHECKING:
    from sql.session.execute import Executor
    from sql.session.session import Session


@dataclass(frozen=True, slots=True)
class _Read:
    """What the files say. ``rows`` None: they are not wanted."""

    columns: tuple[TableColumn, ...] = ()
    rows: Collected | None = None


async def create_from(
    session: Session, executor: Executor, statement: CreateTableFrom, prepared: Prepared, request: Request
) -> CommandResult:
    """Raises 42P07 before anything is read; then what inferring the columns, loading and creating raise."""
    transaction = session.transaction
    assert transaction is not None, "a statement runs in a transaction"
    known = (statement.schema_name, statement.name) in transaction.catalog.names
    read = _Read() if known else await _read(session, executor, statement, request)
    notices: list[Notice] = []

    def work(writer: Writer) -> str:
        prepared.check_current(writer.catalog)
        writer.engine.check_room()
        changer = executor.changer(writer, request)
        definition = CreateTable(
            statement.schema_name, statement.name, read.columns, if_not_exists=statement.if_not_exists
        )
        table = executor.definer(writer, prepared, notices.append).create_table(definition, changer)
        if table is None or read.rows is None:
            return "CREATE TABLE"
        with read.rows.entering(writer) as rows:
            changer.insert_rows(table, rows)
        return f"COPY {len(rows)}"

    try:
        return CommandResult(await transaction.write(work))
    finally:
        session.notices += notices
        if read.rows is not None:
            read.rows.give_up()


async def _read(session: Session, executor: Executor, statement: CreateTableFrom, request: Request) -> _Read:
    transaction, coordinator, style = session.transaction, session.coordinator, session.text_style
    assert transaction is not None, "a statement runs in a transaction"
    columns = await asyncio.to_thread(table_columns, statement, coordinator.files, style)
    if statement.with_no_data:
        return _Read(columns)
    table = Relation(0, statement.schema_name, statement.name, RelationKind.TABLE, columns)
    load = CopyFrom(table, tuple(range(len(columns))), (None,) * len(columns), statement.options, statement.path)
    state = SessionState(session, transaction.catalog)
    context = executor.reads.context(coordinator.engine.dictionary, request, 0, state)
    location, running = await new_load(session, load)
    return _Read(columns, await read_rows(session, load, location, context, running))


async def explained_load(session: Session, statement: CopyFrom) -> list[str]:
    """EXPLAIN COPY t FROM 'path': its lines."""
    return await asyncio.to_thread(explain_load, statement, session.coordinator.files, session.text_style)
