"""Calls of routines that are interpreted: finds the interpreter of the language, and limits how deep calls nest.

``sql.bind.routines`` says which routines are: those whose body is not a part of the calling query's plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from ivm.errors import SqlError
from ivm.words import SqlType
from planner.expr.evaluate.evaluator import constant
from sql.catalog.catalog import Relation
from sql.catalog.routine import Routine
from sql.catalog.securables import securable
from sql.coordination.prepared import Prepared, StaleError
from sql.dml.triggers import Firing
from sql.engine.state import TooLongHereError
from sql.engine.writer import Writer
from sql.session.request import Request
from sql.session.routines.nested import Control, Nested, Outcome, Row, Runners
from sql.session.routines.plpgsql.interpreter import run_inline, run_plpgsql
from sql.session.routines.plpgsql.triggers import run_trigger
from sql.session.routines.sql_body import run_sql
from sql.session.state import SessionState
from sql.statements.routines import CallProcedure

T = TypeVar("T")
DEEPEST: Final = 200
"""Calls inside of calls; deeper 54001."""
_TOGETHER: Final = 5
"""Levels that one thread's stack takes: Python limits how deep each thread's calls nest."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call: the routine, its arguments' datums in the order of the declaration, and what runs its statements.

    ``types``: of the arguments; ``columns``: the types of the result's columns. Polymorphic ones are concrete here.
    """

    relation: Relation
    arguments: tuple[object, ...]
    types: tuple[SqlType, ...]
    columns: tuple[SqlType, ...]
    nested: Nested

    @property
    def routine(self) -> Routine:
        assert self.relation.routine is not None, "a routine"
        return self.relation.routine


Interpreter = Callable[[Invocation], Sequence[Row]]
"""Runs one call. Its rows have the call's ``columns`` (one NULL for void); a routine that does not return a set gives
at most one."""
LANGUAGES: Final[Mapping[str, Interpreter]] = {
    "sql": lambda call: run_sql(call.relation, call.arguments, call.types, call.columns, call.nested),
    "plpgsql": lambda call: run_plpgsql(call.relation, call.arguments, call.types, call.columns, call.nested),
}


class Calls:
    """The routine calls of one session (a ``RoutineCaller``)."""

    def __init__(self, session: SessionState, runners: Runners) -> None:
        self._session = session
        self._runners = runners
        self._depth = 0
        self.trigger_depth = 0
        self.busy: list[Relation] = []

    def call(
        self, writer: Writer, oid: int, arguments: Sequence[object], types: tuple[SqlType, ...], result: SqlType,
        in_from: bool,
    ) -> Sequence[Row]:  # fmt: skip
        """The rows that a routine returns, outside of FROM in one column. Raises what it raises, 54001 and 57014."""
        if writer.engine.rests:
            raise TooLongHereError  # the routine may change something before it needs the engine thread
        relation = writer.catalog.by_id(oid)
        if relation is None or relation.routine is None:
            raise StaleError
        routine = relation.routine
        is_row = in_from or routine.record or routine.returns_row or len(relation.columns) != 1
        columns = tuple(type_ for _, type_ in result.fields) if is_row else (result,)
        if routine.strict and any(a is None for a in arguments):
            return ()
        call = partial(Invocation, relation, tuple(arguments), types, columns)
        if routine.volatility == "volatile":
            steps = self._session.steps
            rows = self.invoke(call(Nested(self._session, self._runners, self, writer, steps=steps)))
        else:  # it sees what its caller sees
            with self.still():
                rows = self.invoke(call(Nested(self._session, self._runners, self, writer)))
        return [(row,) for row in rows] if is_row and not in_from else rows

    def control(self) -> Control | None:
        """For a CALL or DO of the client: None in a transaction block, which only the client may end."""
        return None if self._session.in_any_block else Control(self._session.settings.depth)

    def call_procedure(
        self, writer: Writer, statement: CallProcedure, prepared: Prepared, request: Request, control: Control | None
    ) -> Outcome:
        """CALL: the row of its OUT parameters. ``control``: None where it may not end the transaction. Raises what the
        procedure raises."""
        prepared.check_current(writer.catalog)
        context, _ = self._runners.reads.writing(writer, request)
        arguments = tuple(constant(a, context) for a in statement.args)
        columns = () if statement.columns is None else tuple(c.type for c in statement.columns)
        routine = statement.relation.routine
        ends = control if routine is not None and routine.language == "plpgsql" else None
        nested = Nested(self._session, self._runners, self, writer, ends, self._session.steps)
        rows = self.invoke(Invocation(statement.relation, arguments, statement.types, columns, nested))
        return Outcome("CALL", 0, statement.columns, rows if columns else ())

    def fire(self, writer: Writer, firing: Firing) -> Row | None:
        """The row that a trigger's function returns, None for NULL. Raises what it raises, 54001 and 57014."""
        if writer.engine.rests:
            raise TooLongHereError
        found = [r for r in writer.catalog.relations.values() if r.oid == firing.trigger.function]
        if not found:
            raise SqlError("42883", f"the function of trigger {firing.trigger.name} does not exist")
        nested = Nested(self._session, self._runners, self, writer)
        self.trigger_depth += 1
        self.busy.append(firing.table)
        try:
            with self.still():
                return self._deeper(lambda: run_trigger(found[0], firing, nested), found[0])
        finally:
            self.trigger_depth -= 1
            self.busy.pop()

    @contextmanager
    def still(self) -> Iterator[None]:
        """In this context nobody else goes on: a statement runs that sees one state."""
        steps, self._session.steps = self._session.steps, None
        try:
            yield
        finally:
            self._session.steps = steps

    def inline(self, writer: Writer, text: str, control: Control | None) -> None:
        """Run DO's body. ``control``: as in ``call_procedure``. Raises what it raises, 54001 and 57014."""
        nested = Nested(self._session, self._runners, self, writer, control, self._session.steps)
        self._deeper(lambda: run_inline(text, nested))

    def invoke(self, call: Invocation) -> Sequence[Row]:
        """Run a call by its language's interpreter. Raises what it raises, and 54001."""
        return self._deeper(partial(LANGUAGES[call.routine.language], call), call.relation)

    def _deeper(self, run: Callable[[], T], routine: Relation | None = None) -> T:
        """Run something one level deeper, with SECURITY DEFINER as the owner of the routine. Raises 54001."""
        if self._depth >= DEEPEST:
            hint = "Calls of functions may be nested up to a depth of " + str(DEEPEST) + "."
            raise SqlError("54001", "stack depth limit exceeded", hint=hint)
        self._depth += 1
        acting = self._session.acting
        before = len(acting)
        if routine is not None and routine.routine is not None and routine.routine.definer:
            acting.append(self._session.catalog.access.owner(securable(routine)))
        try:
            if self._depth % _TOGETHER:
                return run()
            with ThreadPoolExecutor(1, "routine") as thread:
                return thread.submit(copy_context().run, run).result()
        except SqlError as error:
            if error.of_row and not self._session.is_superuser(self._session.login):
                error.detail, error.of_row = None, False  # who calls a function may not see what it reads
            raise
        finally:
            self._depth -= 1
            del acting[before:]
