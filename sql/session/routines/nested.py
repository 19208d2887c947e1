"""Statements that a routine runs inside of the statement that calls it.

They run on the engine thread, in the session's transaction: over the writer's own state, each seeing the changes of
those before it. Everything here is synchronous. An interpreter of a language (``sql.session.routines.calling`` names
them) gets a ``Nested`` with each call::

    variables = Variables(type_of, key)                        # what names mean besides columns
    prepared = nested.prepare("SELECT x + n FROM t WHERE k = $1", (INT4,), variables)
    outcome = nested.run(prepared, (arguments[0], *(values[name] for name in prepared.names)))
    nested.check()                                             # in loops: 57014 if the statement has been cancelled
    mark = nested.mark(); …; nested.rollback_to(mark)          # a subtransaction
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar

from ivm.errors import SqlError, unsupported
from ivm.rows import RowSet, pack
from ivm.words import ColumnType, SqlType
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import constant, evaluate
from planner.expr.functions.casts.registry import CastContext
from planner.expr.scalar import Literal, Scalar
from sql.bind.coerce import cast
from sql.bind.entry_points import empty_environment
from sql.bind.variables import Variables
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.search_path import SearchPathReader
from sql.coordination.prepared import Prepared
from sql.coordination.stepping import Steps
from sql.dml.triggers import check_unchanged
from sql.engine.mark import Mark
from sql.engine.row_locks import BlockedError
from sql.engine.writer import Writer
from sql.parse import StatementText, split
from sql.session.control import run_control
from sql.session.databases import check_in_routine
from sql.session.defining import Definitions
from sql.session.explaining import explained, plan_rows
from sql.session.information import text_style
from sql.session.modes import check_modes, set_modes, set_variable
from sql.session.portal import PortalRows
from sql.session.reads import Reads
from sql.session.refreshing import refresh_here
from sql.session.request import Request
from sql.session.state import SessionState
from sql.session.writes import Writes
from sql.statements import statements as bound
from sql.statements.connections import CreateSource
from sql.statements.definitions import Definition
from sql.statements.queries import OutputColumn, Query
from sql.statements.results import Notice, Result, RowsResult
from sql.statements.routines import CallProcedure, CreateFunction
from sql.statements.sinks import CreateSink
from sql.statements.statements import Direction, Fetch
from storage.dictionary import Dictionary
from storage.types.codec import decode, encode
from storage.types.text_style import TextStyle

Row = tuple[object, ...]
T = TypeVar("T")
MOST_SECONDS: Final = 30.0
"""How long a routine may go on while others wait for the engine, which it has to itself."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a statement has done: its tag, how many rows it changed or returned, and the rows, as datums; ``columns`` is
    None if it returns none."""

    tag: str
    count: int
    columns: tuple[OutputColumn, ...] | None = None
    rows: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class Start:
    """Where a subtransaction began. ``depth``: the number of its level of settings."""

    mark: Mark
    depth: int


@dataclass(frozen=True, slots=True)
class Runners:
    """What runs the session's statements."""

    reads: Reads
    writes: Writes
    definitions: Definitions


@dataclass(slots=True)
class Control:
    """A CALL or DO that may end its transaction, shared by the procedures that it calls. ``depth``: of the settings'
    levels outside of all subtransactions; ``changing``: how many loops over the rows of changes are running."""

    depth: int
    changing: int = 0


class ProcedureCaller(Protocol):
    """What runs CALL and DO (``sql.session.routines.calling``). ``busy``: the tables whose triggers are running;
    ``still``: nobody goes on in this context, because a statement runs that sees one state."""

    busy: list[Relation]

    def call_procedure(
        self, writer: Writer, statement: CallProcedure, prepared: Prepared, request: Request, control: Control | None
    ) -> Outcome: ...
    def still(self) -> AbstractContextManager[None]: ...
    def inline(self, writer: Writer, text: str, control: Control | None) -> None: ...


class Nested:
    """The statements of one call of a routine. ``control``: None where it may not end the transaction; ``steps``: lets
    others go on between them, None where they may not."""

    def __init__(
        self, session: SessionState, runners: Runners, procedures: ProcedureCaller, writer: Writer,
        control: Control | None = None, steps: Steps[Any] | None = None,
    ) -> None:  # fmt: skip
        self._control = control
        self._steps = steps
        self._session = session
        self._procedures = procedures
        self._runners = runners
        self._writer = writer
        self._known: tuple[object, int, Context] | None = None

    @property
    def writer(self) -> Writer:
        """The transaction's writer."""
        return self._writer if self._steps is None else self._steps.writer

    @property
    def catalog(self) -> Catalog:
        """The transaction's own catalog."""
        return self.writer.catalog

    def prepare(
        self, text: StatementText | str, types: Sequence[SqlType] = (), variables: Variables | None = None
    ) -> Prepared:
        """Parse and bind a statement, or find it in the cache. ``types``: of $1, $2, …. Raises what binding raises."""
        session, catalog = self._session, self.catalog
        statement = StatementText(text) if isinstance(text, str) else text
        given = variables or Variables(lambda name: None, None)
        cache = session.coordinator.statements
        return cache.prepare(statement, catalog, session.path(catalog), tuple(types), session.settings, given)

    @property
    def names(self) -> SearchPathReader:
        """The catalog as the session's search path sees it."""
        return SearchPathReader(self.catalog, self._session.path(self.catalog))

    @property
    def meaning(self) -> object:
        """What the meaning of a statement depends on besides its text; equal while that stays."""
        transaction = self._session.transaction  # None at COMMIT, where deferred triggers run
        started = None if transaction is None else transaction.started
        number = self._session.coordinator.number  # databases share the trees of equal texts
        return number, self.catalog.version, self._session.settings.changes, started, self._session.role

    @property
    def style(self) -> TextStyle:
        """The settings of the text forms of values."""
        return text_style(self._session)

    @property
    def checks_assertions(self) -> bool:
        return self._session.settings.find("plpgsql.check_asserts") != "off"

    def values(self, exprs: tuple[Scalar, ...], parameters: Sequence[object]) -> Row:
        """The values of expressions without columns. Raises their errors."""
        known = self._context()
        context = Context(
            known.dictionary, tuple(parameters), known.now, known.statement_now, known.timezone, known.epoch,
            known.session, known.formats, known.hold,
        )  # fmt: skip
        vectors, failures = evaluate(exprs, (), 1, context)
        if failures is not None:
            raise replace(failures.errors[0])
        return tuple(decode(e.type, v, context.dictionary)[0] for e, v in zip(exprs, vectors, strict=True))

    def _context(self) -> Context:
        """The context of expressions over the present catalog, without parameters."""
        meaning, part = self.meaning, 0 if self._steps is None else self._steps.part
        if self._known is None or self._known[1] != part or self._known[0] != meaning:
            self._known = meaning, part, self._runners.reads.writing(self.writer, Request())[0]
        return self._known[2]

    def run(self, prepared: Prepared, parameters: Sequence[object] = (), *, atomic: bool = False) -> Outcome:
        """Run a statement; ``parameters``: datums, the variables that it names (``prepared.names``) last. ``atomic``:
        a procedure that it calls may not end the transaction. Raises its errors, and 57014."""
        control = None if atomic or self._inside() else self._control
        self.check()
        prepared.check_allowed()
        statement, request = prepared.bound.statement, Request(tuple(parameters))
        check_modes(self._session, statement, prepared.text)
        if self._steps is None or prepared.calls_only or isinstance(statement, CallProcedure | bound.Do):
            return self._run(statement, prepared, request, control)
        with self._procedures.still():
            return self._run(statement, prepared, request, control)

    def _run(
        self, statement: bound.Statement, prepared: Prepared, request: Request, control: Control | None
    ) -> Outcome:
        writer, runners = self.writer, self._runners
        match statement:
            case Query():
                return self._query(statement, prepared, request)
            case bound.Insert() | bound.Update() | bound.Delete() | bound.Merge():
                changed = runners.writes.apply(writer, statement, prepared, request)
                return self._outcome(runners.writes.changed(statement, changed, request), changed.count)
            case bound.Compound():
                changed = runners.writes.compound_now(writer, statement, prepared, request)
                return self._outcome(runners.writes.changed(statement.main, changed, request), changed.count)
            case bound.Truncate():
                return self._outcome(runners.writes.truncate_now(writer, statement, prepared))
            case bound.Do():
                self._procedures.inline(writer, statement.text, control)
                return Outcome("DO", 0)
            case bound.Explain():
                lines = explained(self._session, statement)
                return self._outcome(plan_rows(writer.engine.dictionary, statement, lines))
            case CallProcedure():
                return self._procedures.call_procedure(writer, statement, prepared, request, control)
            case _ if isinstance(statement, Definition):
                return self._define(statement, prepared, request)
            case bound.SetVariable():
                set_variable(self._session, statement.name, statement.value, statement.local)
                return Outcome(statement.tag, 0)
            case bound.SetTransaction(session=False):
                set_modes(self._session, statement.modes)
                return Outcome("SET", 0)
            case (
                bound.SetTransaction() | bound.Show() | bound.Prepare() | bound.Deallocate()
                | bound.Listen() | bound.Notify() | bound.NoOperation()
            ):  # fmt: skip
                return self._outcome(run_control(self._session, statement))
            case bound.RefreshView():
                return self._outcome(refresh_here(self._session, statement))
            case bound.Begin() | bound.Commit() | bound.Rollback() | bound.PrepareTransaction() | bound.Savepoint():
                raise SqlError("0A000", f"{_command(prepared.text)} is not allowed in an SQL function")
            case _:
                raise unsupported(f"{_command(prepared.text)} in a function")

    def attempt(self, run: Callable[[], T]) -> T:
        """The result of a statement, which is bound and run again after each lock that it has waited for. Raises its
        errors."""
        steps, session = self._steps, self._session
        if steps is None:
            return run()
        session.held_locks += session.advisory_locks
        session.advisory_locks.clear()
        while True:
            begun, depth, told = steps.begin(), session.settings.depth, len(session.notices)
            try:
                found = run()
            except BlockedError as blocked:
                if session.settings.depth > depth:
                    session.settings.roll_back_to(depth)
                    session.settings.release(depth)
                del session.notices[told:]
                steps.wait(begun, blocked)
                continue
            if session.pause and steps.pause(session.pause):
                session.pause = 0.0
            return found

    def between(self) -> None:
        """Between two statements, and in loops: others who wait may go on. Raises what ``check`` does."""
        self.check()
        if self._steps is not None:
            self._steps.between()

    def cast(self, value: object, type_: SqlType, wanted: SqlType, context: CastContext = "assignment") -> object:
        """A datum of one type as one of another. Raises 42804, 22P02, ….."""
        if type_ == wanted:
            return value
        expr = cast(empty_environment(), Literal(value, type_), wanted, context, 0)
        return constant(expr, self._runners.reads.writing(self.writer, Request())[0])

    def as_standard(self, text: str) -> str:
        """A text that a routine has made, as the standard writes its strings. Raises 42601, 22P06."""
        return self._session.standard(text).text

    def statements(self, text: str) -> list[StatementText]:
        """The statements of a text. Raises 42601."""
        return split(text)

    def check(self) -> None:
        """57014 if the calling statement has been cancelled, or keeps others from the engine for too long."""
        if self.writer.engine.dataflow.cancel.is_set():
            raise SqlError("57014", "canceling statement due to user request")
        if self._session.coordinator.jobs.overstays(MOST_SECONDS):
            raise SqlError(
                "57014",
                f"canceling statement because others have waited for {MOST_SECONDS:g} s",
                "While a routine runs, nobody else can write.",
                "Do the work in several statements.",
            )

    def mark(self) -> Start:
        """Begin a subtransaction."""
        settings = self._session.settings
        depth = settings.depth
        settings.savepoint()
        return Start(self.writer.mark(), depth)

    def release(self, start: Start) -> None:
        """End a subtransaction whose changes stay."""
        self._session.settings.release(start.depth)

    def rollback_to(self, start: Start) -> None:
        """Undo what was done since the mark. Raises 57014 where the statement has been cancelled: that cannot be
        caught."""
        self.check()
        self.writer.rollback_to(start.mark)
        self._session.settings.roll_back_to(start.depth)
        self._session.settings.release(start.depth)

    def end(self, *, commit: bool, chain: bool) -> None:
        """COMMIT and ROLLBACK. Raises 2D000 and 55000 where the transaction may not end here."""
        control = self._control
        if self._session.acting or control is None:
            raise SqlError("2D000", "invalid transaction termination")
        if self._inside():
            verb = "commit" if commit else "roll back"
            raise SqlError("2D000", f"cannot {verb} while a subtransaction is active")
        if control.changing:
            message = "cannot perform transaction commands inside a cursor loop that is not read-only"
            raise SqlError("55000", message)
        self.check()
        assert self._steps is not None, "who may end the transaction lets others go on"
        error = self._session.cursors.held_error() if commit else None
        self._steps.end(commit=commit and error is None, chain=chain)
        if error is not None:
            raise error

    def _inside(self) -> bool:
        """Whether a subtransaction is active."""
        return self._control is not None and self._session.settings.depth > self._control.depth

    @contextmanager
    def over(self, outcome: Outcome) -> Iterator[None]:
        """A loop over a statement's rows, which may not end the transaction if the statement is a change."""
        changes = self._control is not None and not outcome.tag.startswith("SELECT")
        if self._control is not None:
            self._control.changing += changes
        try:
            yield
        finally:
            if self._control is not None:
                self._control.changing -= changes

    def notice(self, notice: Notice) -> None:
        """Send a message with the answer."""
        self._session.notices.append(notice)

    # Cursors.

    def has_cursor(self, name: str) -> bool:
        """Whether a cursor of that name is open."""
        return self._session.cursors.find(name) is not None

    def open_cursor(
        self, name: str | None, outcome: Outcome, text: str, scroll: bool | None, *, pinned: bool = False
    ) -> str:
        """Open a cursor over a query's rows; its name, a new one for None. ``pinned``: for a loop, which closes it."""
        session, dictionary, columns = self._session, self.writer.engine.dictionary, outcome.columns or ()
        schema = tuple(ColumnType(c.type, True) for c in columns)
        vectors = [encode(c.type, [row[i] for row in outcome.rows], dictionary) for i, c in enumerate(columns)]
        rows = RowSet(pack(vectors, schema, len(outcome.rows)), schema)
        source = PortalRows(columns, rows, dictionary, f"SELECT {len(rows)}")
        return session.cursors.open(name, text, source, scroll, len(session.running.savepoints), pinned=pinned)

    def fetch(self, name: str, direction: str, count: int | None) -> Outcome:
        """The rows that FETCH gives. 34000: no such cursor; 55000: it does not move in that direction."""
        cursor = self._session.cursors.named(name)
        rows = cursor.fetch_now(Fetch(name, count, direction=Direction(direction)))
        found = datums(rows, cursor.source.dictionary) if isinstance(cursor.source, PortalRows) else []
        return Outcome(f"FETCH {len(found)}", len(found), cursor.columns, found)

    def close_cursor(self, name: str) -> None:
        """CLOSE. 34000: no such cursor."""
        self._session.cursors.close(name)

    def _query(self, statement: Query, prepared: Prepared, request: Request) -> Outcome:
        if statement.as_of is not None:
            raise unsupported("AS OF in a function")
        rows = self._runners.writes.rows(self.writer, statement, prepared, request)
        found = datums(rows, self.writer.engine.dictionary)
        return Outcome(f"SELECT {len(found)}", len(found), statement.columns, found)

    def _define(self, statement: Definition, prepared: Prepared, request: Request) -> Outcome:
        if isinstance(statement, CreateSink | CreateSource) or (
            isinstance(statement, CreateFunction) and statement.python is not None
        ):
            raise unsupported(f"{_command(prepared.text)} in a function")
        definitions = self._runners.definitions
        check_in_routine(self._session, statement)
        tag = definitions.define_now(self.writer, statement, prepared, request, self.notice)
        for table in self._procedures.busy:
            check_unchanged(self.writer, table)
        return Outcome(tag, 0)

    def _outcome(self, result: Result, count: int = 0) -> Outcome:
        if isinstance(result, RowsResult):
            found = datums(result.rows, result.dictionary)
            return Outcome(result.tag, count or len(found), result.columns, found)
        return Outcome(getattr(result, "tag", ""), count)


def datums(rows: RowSet, dictionary: Dictionary) -> list[Row]:
    """Rows of words as rows of datums."""
    if not rows.schema:
        return [()] * len(rows)
    columns = [decode(c.type, v, dictionary) for c, v in zip(rows.schema, rows.columns(), strict=True)]
    return list(zip(*columns, strict=True))


def _command(text: str) -> str:
    return (text.split() or [""])[0].upper()
