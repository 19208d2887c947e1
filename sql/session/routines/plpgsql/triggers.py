"""Runs one call of a trigger function."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError
from ivm.rows import RowSet
from ivm.words import INT4, NAME, OID, TEXT, Kind, SqlType
from planner.expr.scalar import Literal
from planner.logical.nodes import Values
from sql.catalog.catalog import Relation
from sql.dml.triggers import Datums, Firing
from sql.session.routines.nested import Nested, datums
from sql.session.routines.plpgsql.declaring import row_type
from sql.session.routines.plpgsql.frame import Frame
from sql.session.routines.plpgsql.interpreter import STEPS, run_frame
from sql.session.routines.plpgsql.scope import Scope, Variable
from sql.syntax.plpgsql.grammar import parse_body
from storage.types.arrays import Row

_TEXTS = SqlType(Kind.ARRAY, element=TEXT)


def run_trigger(relation: Relation, firing: Firing, nested: Nested) -> Datums | None:
    """The row that the function returns, as one of the trigger's table; None for NULL. Raises its errors, 2F005 and
    42804."""
    routine = relation.routine
    assert routine is not None, "a routine"
    assert relation.definition is not None, "it has a body"
    body = parse_body(relation.definition)
    frame = Frame(nested, STEPS, Scope(None), body.conflict, (), False, f"{routine.name}()")
    frame.scope.add(frame.found)
    frame.scope = Scope(frame.scope, routine.name)
    _add_variables(frame, firing)
    frame.tables = {name: _transition(firing.table, rows, nested) for name, rows in firing.tables}
    run_frame(frame, body)
    if frame.result is None:
        frame.statement = None
        error = SqlError("2F005", "control reached end of trigger procedure without RETURN")
        frame.complete(error)
        raise error
    return _returned(frame, firing)


def _returned(frame: Frame, firing: Firing) -> Datums | None:
    assert frame.result is not None, "the function has returned"
    value, type_ = frame.result
    if value is None or not firing.trigger.row or firing.trigger.timing == "after":
        return None
    wanted = row_type(firing.table)
    frame.statement = "during function exit"
    try:
        if type_.kind is not Kind.RECORD or not isinstance(value, tuple):
            message = "cannot return non-composite value from function returning composite type"
            raise SqlError("42804", message)
        if type_ == wanted:
            return value
        if len(type_.fields) != len(wanted.fields):
            detail = (
                f"Number of returned columns ({len(type_.fields)}) does not match expected column count "
                f"({len(wanted.fields)})."
            )
            message = "returned row structure does not match the structure of the triggering table"
            raise SqlError("42804", message, detail)
        return frame.row(value, type_, wanted)
    except SqlError as error:
        frame.complete(error)
        raise


def _add_variables(frame: Frame, firing: Firing) -> None:
    trigger, table = firing.trigger, firing.table
    type_ = row_type(table)
    for name, row in (("new", firing.new), ("old", firing.old)):
        value = None if row is None else Row(row)
        frame.scope.add(Variable(name, type_ if trigger.row else None, value, record=True))
    for name, text in (
        ("tg_name", trigger.name), ("tg_relname", table.name), ("tg_table_name", table.name),
        ("tg_table_schema", table.schema_name),
    ):  # fmt: skip
        frame.scope.add(Variable(name, NAME, text))
    frame.scope.add(Variable("tg_when", TEXT, trigger.timing.upper()))
    frame.scope.add(Variable("tg_level", TEXT, "ROW" if trigger.row else "STATEMENT"))
    frame.scope.add(Variable("tg_op", TEXT, firing.event.upper()))
    frame.scope.add(Variable("tg_relid", OID, table.oid))
    frame.scope.add(Variable("tg_nargs", INT4, len(trigger.arguments)))
    frame.scope.add(Variable("tg_argv", _TEXTS, trigger.arguments))


def _transition(table: Relation, rows: object, nested: Nested) -> tuple[tuple[str, ...], Values]:
    """A transition table, as its columns' names and its rows."""
    found = datums(RowSet(rows, table.row_schema), nested.writer.engine.dictionary)  # type: ignore[arg-type]
    schema = tuple(replace(c, nullable=True) for c in table.row_schema)
    literals = tuple(tuple(Literal(v, c.type) for v, c in zip(row, table.columns, strict=True)) for row in found)
    return tuple(c.name for c in table.columns), Values(literals, schema)
