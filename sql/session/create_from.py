"""CREATE TABLE … FROM 'uri': a table with the columns and the rows of files or of a database, in one change; EXPLAIN of
loads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ivm.errors import SqlError
from sql.catalog.catalog import Relation, RelationKind, TableColumn
from sql.coordination.prepared import Prepared, StaleError
from sql.dml.loading import insert_load
from sql.engine.loads import Load, LoadState
from sql.engine.writer import Writer
from sql.session.collected import Collected
from sql.session.copy_files import load_progress, loaded_before, new_load, read_beside, read_rows
from sql.session.copy_in import before
from sql.session.defining import Definitions
from sql.session.information import SystemInformation, text_style
from sql.session.load_schema import explain_load, local_columns, table_columns
from sql.session.load_source import location_of, source_of
from sql.session.reads import Reads
from sql.session.rejecting import tell
from sql.session.request import Request
from sql.session.state import SessionState
from sql.statements.definitions import CreateTable
from sql.statements.results import CommandResult, Notice
from sql.statements.statements import CopyFrom, CreateTableFrom
from storage.load.infer import FoundColumn
from storage.load.paths import LocalFiles, Location
from storage.outbound import Reach
from storage.spark.costs import cores_of
from storage.types.text_style import TextStyle


class TableFrom:
    """One statement that creates a table and fills it."""

    def __init__(
        self, session: SessionState, reads: Reads, definitions: Definitions, statement: CreateTableFrom,
        prepared: Prepared, request: Request,
    ) -> None:  # fmt: skip
        self._session, self._transaction = session, session.running
        self._reads, self._definitions = reads, definitions
        self._statement, self._prepared, self._request = statement, prepared, request
        self._key = statement.schema_name, statement.name
        self._notices: list[Notice] = []

    async def run(self) -> CommandResult:
        """Run the statement. Raises 42P07 before anything is read, unless the table is that of this same load,
        committed before; then the errors of inferring the columns, of loading and of CREATE TABLE."""
        try:
            if self._key in self._transaction.catalog.names:
                return await self._there_already()
            return await self._read()
        finally:
            self._session.notices += self._notices

    async def _there_already(self) -> CommandResult:
        id_ = self._statement.options.load_id

        def work(writer: Writer) -> bool:
            self._prepared.check_current(writer.catalog)
            there = writer.catalog.names.get(self._key)
            if there is None:
                raise StaleError
            if id_ is not None and before(writer, there.oid, id_) is not None:
                return True
            self._create(writer, ())
            return False

        if not await self._transaction.write(work):
            return CommandResult("CREATE TABLE")
        assert id_ is not None
        return CommandResult(f"COPY {loaded_before(self._session, id_, self._statement.name)}")

    async def _read(self) -> CommandResult:
        session, statement = self._session, self._statement
        table = Relation(0, *self._key, RelationKind.TABLE, ())
        location, load = await new_load(session, statement.path, statement.options, table)
        session.copying = load_progress(load, location)
        with session.coordinator.engine.loads.run(load):
            columns = table_columns(statement, await self._found(location, load))
            rows = None if statement.with_no_data else await self._rows(columns, location, load)
            load.state = LoadState.COMMITTING
            tag = await self._write(columns, rows, load)
        tell(session, load)
        return CommandResult(tag)

    async def _found(self, location: Location, load: Load) -> Sequence[FoundColumn]:
        statement, coordinator, style = self._statement, self._session.coordinator, text_style(self._session)

        def read() -> Sequence[FoundColumn]:
            if isinstance(location, LocalFiles):
                return local_columns(statement.options, location, style)
            from storage.load.infer_spark import columns_by_spark

            source = source_of(_copy(statement, ()), location, style)
            return columns_by_spark(coordinator.spark.session(), source, style, load.cancel)

        return await read_beside(coordinator, load, read)

    async def _rows(self, columns: tuple[TableColumn, ...], location: Location, load: Load) -> Collected:
        information = SystemInformation(self._session, self._transaction.catalog)
        dictionary = self._session.coordinator.engine.dictionary
        context = self._reads.context(dictionary, self._request, 0, information)
        return await read_rows(self._session, _copy(self._statement, columns), location, context, load)

    async def _write(self, columns: tuple[TableColumn, ...], collected: Collected | None, load: Load) -> str:
        def work(writer: Writer) -> str:
            self._prepared.check_current(writer.catalog)
            writer.engine.check_room()
            table = self._create(writer, columns)
            if table is None or collected is None:
                return "CREATE TABLE"
            with collected.entering(writer) as rows:
                insert_load(self._definitions.changer(writer, self._request), table, rows, collected.checks)
            load.relation = table.oid
            load.join(writer.loads, rows.count)
            return f"COPY {rows.count}"

        try:
            return await self._transaction.write(work)
        finally:
            if collected is not None:
                collected.give_up()

    def _create(self, writer: Writer, columns: tuple[TableColumn, ...]) -> Relation | None:
        definition = CreateTable(*self._key, columns, if_not_exists=self._statement.if_not_exists)
        definer = self._definitions.definer(writer, self._prepared, self._notices.append)
        return definer.create_table(definition, self._definitions.changer(writer, self._request))


def _copy(statement: CreateTableFrom, columns: tuple[TableColumn, ...]) -> CopyFrom:
    """The COPY that fills a table of these columns."""
    count = len(columns)
    table = Relation(0, statement.schema_name, statement.name, RelationKind.TABLE, columns)
    return CopyFrom(table, tuple(range(count)), (None,) * count, statement.options, statement.path)


async def explained_load(session: SessionState, statement: CopyFrom | CreateTableFrom) -> list[str]:
    """EXPLAIN COPY t FROM 'path' and EXPLAIN CREATE TABLE t FROM 'path': the lines. Raises the errors of the load."""
    coordinator, style = session.coordinator, text_style(session)
    cores = cores_of(coordinator.spark.session().settings.master)
    if isinstance(statement, CreateTableFrom):
        _check_free(session, statement)

    def read() -> list[str]:
        copy = statement if isinstance(statement, CopyFrom) else _found_here(statement, coordinator.reach, style)
        return explain_load(copy, coordinator.reach, style, cores)

    return await asyncio.to_thread(read)


def _check_free(session: SessionState, statement: CreateTableFrom) -> None:
    """42P07: a relation of this name exists, and neither IF NOT EXISTS nor a LOAD_ID accepts it."""
    known = (statement.schema_name, statement.name) in session.running.catalog.names
    if known and not statement.if_not_exists and statement.options.load_id is None:
        raise SqlError("42P07", f'relation "{statement.name}" already exists')


def _found_here(statement: CreateTableFrom, reach: Reach, style: TextStyle) -> CopyFrom:
    """The COPY, with the columns of files on this machine; without columns if only Spark can read the files."""
    location = location_of(statement.path, statement.options.format, reach)
    if not isinstance(location, LocalFiles):
        return _copy(statement, ())
    return _copy(statement, table_columns(statement, local_columns(statement.options, location, style)))
