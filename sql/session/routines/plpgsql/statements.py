"""Assignments, SQL with and without INTO, EXECUTE, and GET DIAGNOSTICS."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ivm.errors import SqlError
from ivm.words import INT8, TEXT, SqlType
from planner.expr.scalar import Parameter
from sql.parse import StatementText
from sql.session.routines.nested import Outcome
from sql.session.routines.plpgsql.frame import Frame, Leave, within
from sql.session.routines.plpgsql.parts import assign_part
from sql.session.routines.plpgsql.scope import Name
from sql.statements.routines import CallProcedure
from sql.statements.statements import Begin, Commit, PrepareTransaction, Rollback, Savepoint
from sql.syntax.plpgsql import nodes


def run_assign(frame: Frame, node: nodes.Assign) -> Leave | None:
    """``target := expression``."""
    target = node.target
    if target.parts or (len(target.name) > 2 and frame.scope.find(target.name) is None):
        assign_part(frame, target, node.value)
        return None
    variable, rest = frame.scope.known(target.name)
    value, type_ = frame.value(node.value)
    if rest:
        try:
            variable.place(rest[0])
        except SqlError as error:
            raise within(error, node.value) from None
        frame.assign(target, value, type_)
    else:
        frame.set(variable, value, type_)
    return None


def rows_of(frame: Frame, query: nodes.Fragment) -> Outcome:
    """A query's rows. Raises 42601 where a statement returns none."""
    outcome = frame.execute(query)
    if outcome.columns is None:
        raise SqlError("42601", f"cannot open {outcome.tag.split(' ')[0]} query as cursor")
    return outcome


def dynamic(frame: Frame, query: nodes.Fragment, using: Sequence[nodes.Fragment]) -> Outcome:
    """EXECUTE's outcome. Raises 22004 where the text is NULL."""
    text = frame.value_as(query, TEXT)
    if text is None:
        raise SqlError("22004", "query string argument of EXECUTE is null")
    given = [frame.value(value) for value in using]
    outcome: Outcome | None = Outcome("", 0)
    text = frame.nested.as_standard(str(text))
    for statement in frame.nested.statements(text):
        try:
            outcome = frame.nested.attempt(partial(_run, frame, statement, given))
        except SqlError as error:
            if error.query is None and error.position is not None:
                error.query = text
            else:
                error.within(f'SQL statement "{text}"')
            raise
        if outcome is None:
            raise SqlError("0A000", "EXECUTE of transaction commands is not implemented")
    assert outcome is not None, "it has run"
    return outcome


def _run(frame: Frame, statement: StatementText, given: Sequence[tuple[object, SqlType]]) -> Outcome | None:
    """One statement of EXECUTE's; None: it would end the transaction."""
    prepared = frame.prepare(statement, tuple(t for _, t in given), own=False)
    if isinstance(prepared.bound.statement, Begin | Commit | Rollback | PrepareTransaction | Savepoint):
        return None
    return frame.nested.run(prepared, tuple(v for v, _ in given), atomic=True)


def run_sql(frame: Frame, node: nodes.Sql) -> Leave | None:
    """A statement of SQL. Raises 42601 where its rows have no destination, 0A000 for SAVEPOINT and its kin."""
    if isinstance(frame.bound(node.statement).prepared.bound.statement, Begin | Savepoint):
        raise SqlError("0A000", "unsupported transaction command in PL/pgSQL")
    outcome = frame.execute(node.statement)
    _note(frame, outcome)
    if node.into is not None:
        _into(frame, outcome, node.into)
    elif outcome.columns is not None and not node.perform:
        word = node.statement.text.split(None, 1)[0].lower()
        hint = (
            None
            if word not in ("select", "with", "values", "table")
            else ("If you want to discard the results of a SELECT, use PERFORM instead.")
        )
        raise SqlError("42601", "query has no destination for result data", hint=hint)
    return None


def run_call(frame: Frame, node: nodes.Call) -> Leave | None:
    """CALL, which assigns to the variables that are given for OUT parameters. Raises 42601, 22005."""
    bound = frame.bound(node.statement)
    statement = bound.prepared.bound.statement
    assert isinstance(statement, CallProcedure), "its grammar is that of CALL"
    targets = _outputs(frame, statement, bound.prepared.names)
    outcome = frame.execute(node.statement)
    if targets:
        frame.assign_row(targets, outcome.rows[0], outcome.columns or ())
    return None


def _outputs(frame: Frame, statement: CallProcedure, names: Sequence[Name]) -> tuple[nodes.Target, ...]:
    """The variables that CALL assigns to."""
    routine = statement.relation.routine
    assert routine is not None, "a procedure"
    targets = []
    given = iter(statement.outputs)
    for i, parameter in enumerate(routine.declared):
        if parameter.mode not in ("out", "inout"):
            continue
        argument = next(given)
        if not isinstance(argument, Parameter):
            shown = f'"{parameter.name}"' if parameter.name else str(i + 1)
            message = "is an output parameter but corresponding argument is not writable"
            raise SqlError("42601", f"procedure parameter {shown} {message}")
        name = names[argument.index - 1]
        frame.assignable(frame.scope.known(name)[0])
        targets.append(nodes.Target(name))
    return tuple(targets)


def run_execute(frame: Frame, node: nodes.Execute) -> Leave | None:
    outcome = dynamic(frame, node.query, node.using)
    frame.row_count = outcome.count
    if node.into is not None:
        _into(frame, outcome, node.into, picky=False)
    return None


def _note(frame: Frame, outcome: Outcome) -> None:
    """Set FOUND and ROW_COUNT after a statement that handles rows."""
    word = outcome.tag.split(" ")[0]
    frame.row_count = outcome.count
    if word in ("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE") or outcome.columns is not None:
        frame.found.value = outcome.count > 0


def _into(frame: Frame, outcome: Outcome, into: nodes.Into, *, picky: bool = True) -> None:
    """Assign the first row. ``picky``: a change may return one at most. Raises P0002, P0003."""
    if outcome.columns is None:
        raise SqlError("42601", "INTO used with a command that cannot return data")
    several = len(outcome.rows) > 1 and (into.strict or (picky and not outcome.tag.startswith("SELECT")))
    if several:
        hint = "Make sure the query returns a single row, or use LIMIT 1."
        raise SqlError("P0003", "query returned more than one row", hint=hint)
    if not outcome.rows and into.strict:
        raise SqlError("P0002", "query returned no rows")
    frame.assign_row(into.targets, outcome.rows[0] if outcome.rows else None, outcome.columns)


def run_diagnostics(frame: Frame, node: nodes.GetDiagnostics) -> Leave | None:
    """GET [STACKED] DIAGNOSTICS. Raises 0Z002."""
    if node.stacked and frame.handled is None:
        message = "GET STACKED DIAGNOSTICS cannot be used outside an exception handler"
        raise SqlError("0Z002", message)
    for target, item in node.items:
        value, type_ = _diagnostic(frame, item)
        frame.assign(target, value, type_)
    return None


def _diagnostic(frame: Frame, item: str) -> tuple[object, SqlType]:
    if item == "row_count":
        return frame.row_count, INT8
    if item == "pg_context":
        return frame.where(), TEXT
    error = frame.handled
    assert error is not None, "a handler runs"
    on = error.subject
    found = {
        "returned_sqlstate": error.sqlstate, "message_text": error.message, "pg_exception_detail": error.detail,
        "pg_exception_hint": error.hint, "pg_exception_context": error.context,
        "column_name": on and on.column, "constraint_name": on and on.constraint, "table_name": on and on.table,
        "schema_name": on and on.schema, "pg_datatype_name": None,
    }  # fmt: skip
    return found[item] or "", TEXT
