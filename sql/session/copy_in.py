"""COPY … FROM: rows of the client's data, or of files, into a table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from ivm.errors import SqlError
from ivm.rows import RowSet, Vector, Words, pack
from ivm.words import ColumnType
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluated
from sql.catalog.catalog import Catalog, Relation
from sql.coordination.coordinator import Coordinator
from sql.coordination.prepared import StaleError
from sql.coordination.transaction import Transaction
from sql.dml.changes import Changer
from sql.dml.constraints import fit
from sql.dml.loading import insert_load
from sql.dml.triggers import TriggerCaller
from sql.engine.loads import Load
from sql.engine.writer import Writer
from sql.pgwire.copy import CopyParser
from sql.pgwire.copy_binary import BinaryParser
from sql.pgwire.copy_encoding import SMALL, CopyDecoder
from sql.pgwire.file_formats import of_listed
from sql.session.collected import Collected
from sql.session.information import copy_encoding, text_style
from sql.session.rejecting import RowChecks, load_of_stdin, rejects_of, tell
from sql.session.state import SessionState
from sql.statements.results import CommandResult
from sql.statements.statements import CopyFormat, CopyFrom
from sql.system.state import CopyInfo
from storage.load.collector import Few
from storage.load.rejects import Rejects

T = TypeVar("T")


class CopyIn:
    """``sql.statements.results.CopyReceiver``: parses on reader threads, and writes at the end of the data."""

    def __init__(self, session: SessionState, transaction: Transaction, statement: CopyFrom, context: Context) -> None:
        self._session = session
        self._coordinator = session.coordinator
        self._transaction = transaction
        self._statement = statement
        self._context = context
        table = statement.table
        columns = [table.columns[i] for i in statement.columns]
        encoding = copy_encoding(session, statement.options)
        style = replace(text_style(session), encoding=session.settings.encoding)
        self._rejects = rejects_of(statement)
        options, dictionary = of_listed(statement.options, statement.columns), context.dictionary
        self._parser: CopyParser | BinaryParser
        if options.format is CopyFormat.BINARY:
            self._parser = BinaryParser(table.name, columns, dictionary, style)
        else:
            self._parser = CopyParser(table.name, columns, options, dictionary, style, rejects=self._rejects)
        self._decoder: CopyDecoder | None = None
        if encoding is not None and options.format is not CopyFormat.BINARY:
            self._decoder = CopyDecoder(encoding, table.name)
        self._progress = CopyInfo(session.backend_id, table.oid, False, "PIPE")
        session.copying = lambda: self._progress
        session.interrupts.limit(session.settings.milliseconds("statement_timeout"))

    async def feed(self, data: bytes) -> None:
        """Take one piece of data. SqlError if it is malformed, or 57014."""
        if self._decoder is None:
            self._parser.feed(data)
        else:
            decode = partial(self._decoder.feed, data)
            self._parser.feed(decode() if len(data) <= SMALL else await self._beside(decode))
        with self._session.interrupts.interruptible():
            if self._parser.ready:
                await self._beside(self._parser.parse)
        progress = self._progress
        progress.done, progress.rows = progress.done + len(data), self._parser.count
        if self._rejects is not None:
            progress.skipped = len(self._rejects.found)

    async def finish(self) -> CommandResult:
        """Add the rows to the transaction."""
        if self._decoder is not None:
            self._decoder.finish()
        with self._session.interrupts.interruptible():
            rows = await self._beside(self._rows)
            count = await self._write(rows) if self._rejects is None else await self._write_load(rows, self._rejects)
        self._session.interrupts.unlimit()
        return CommandResult(f"COPY {count}")

    async def _write(self, rows: Words) -> int:
        table = self._statement.table
        caller = self._session.routines
        return await write_rows(self._coordinator, self._transaction, table, rows, self._context, caller)

    async def _write_load(self, rows: Words, rejects: Rejects) -> int:
        load = load_of_stdin(self._session, self._statement)
        load.reject(rejects.found)
        with self._coordinator.engine.loads.run(load):
            table, collected = self._statement.table, Collected(Few(rows))
            await write_load(
                self._coordinator, self._transaction, table, collected, self._context, load, self._session.routines
            )  # fmt: skip
        tell(self._session, load)
        return load.rows

    def _rows(self) -> Words:
        vectors, count = self._parser.finish()
        rows = table_rows(self._statement, vectors, count, self._context)
        if self._rejects is None:
            return rows
        return RowChecks(self._statement.table, self._rejects, self._context).passing(rows)

    async def _beside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._coordinator.readers, work)


async def write_rows(
    coordinator: Coordinator, transaction: Transaction, table: Relation, rows: Words, context: Context,
    caller: TriggerCaller | None = None,
) -> int:  # fmt: skip
    """Add whole rows to a table, in one change; their number. ``caller``: of its triggers. 42P01, 40001: it was dropped
    or altered meanwhile."""

    def work(writer: Writer) -> int:
        writer.engine.check_room()
        Changer(writer, coordinator.keys, context, caller=caller).insert_rows(_still(writer.catalog, table), rows)
        return len(rows)

    return await transaction.write(work)


async def write_load(
    coordinator: Coordinator, transaction: Transaction, table: Relation, collected: Collected, context: Context,
    load: Load, caller: TriggerCaller | None = None,
) -> Load | None:  # fmt: skip
    """As ``write_rows``, with the record of the load. If a load of the same id was committed before, that load; nothing
    is added then."""

    def work(writer: Writer) -> Load | None:
        with collected.entering(writer) as rows:
            known = before(writer, load.relation, load.id)
            if known is not None:
                return known
            writer.engine.check_room()
            changer = Changer(writer, coordinator.keys, context, caller=caller)
            insert_load(changer, _still(writer.catalog, table), rows, collected.checks)
        load.join(writer.loads, rows.count)
        return None

    try:
        return await transaction.write(work)
    finally:
        collected.give_up()


def before(writer: Writer, relation: int, id_: str) -> Load | None:
    """The table's load of this id that was committed or is part of this transaction, if there is one."""
    own = [load for load in writer.loads if (load.relation, load.id) == (relation, id_)]
    return own[0] if own else writer.engine.loads.committed(relation, id_)


def gone(name: str) -> SqlError:
    """The error when a table was dropped while its rows were read."""
    return SqlError("42P01", f'relation "{name}" does not exist', detail="It was dropped while the rows were read.")


def _still(catalog: Catalog, table: Relation) -> Relation:
    """The table as it is now. Its columns must not have changed since the COPY began."""
    now = catalog.relations.get(table.id)
    if now is None and all(r.oid != table.oid for r in catalog.relations.values()):
        raise gone(table.name)
    if now is None or now.columns != table.columns:
        raise StaleError
    return now


def table_rows(statement: CopyFrom, given: list[Vector], count: int, context: Context) -> Words:
    """Whole rows of the table from the columns given that meet WHERE, defaults filled in; 23502."""
    table = statement.table
    place = {column: i for i, column in enumerate(statement.columns)}
    vectors = []
    for i, column in enumerate(table.columns):
        default = statement.defaults[i] if i < len(statement.defaults) else None
        if i in place:
            vectors.append(given[place[i]])
        elif default is None:
            vectors.append(_nulls(count))
        else:
            (vector,) = evaluated((default,), [], count, context)
            assert column.type == default.type, "the binder casts defaults"
            vectors.append(vector)
    if statement.where is not None:
        (met,) = evaluated((statement.where,), vectors, count, context)
        kept = np.flatnonzero((met.words != 0) & (True if met.nulls is None else ~met.nulls))
        vectors, count = [Vector(v.words[kept], None if v.nulls is None else v.nulls[kept]) for v in vectors], len(kept)
    schema = tuple(ColumnType(c.type, v.nulls is not None) for c, v in zip(table.columns, vectors, strict=True))
    return fit(table, RowSet(pack(vectors, schema, count), schema), context)


def _nulls(count: int) -> Vector:
    return Vector(np.zeros(count, np.int64), np.ones(count, np.bool_))
