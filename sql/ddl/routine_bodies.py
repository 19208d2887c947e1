"""Checks the body of a new function that is interpreted: each statement of LANGUAGE sql binds, and PL/pgSQL parses."""

from __future__ import annotations

from ivm.errors import SqlError
from ivm.words import UNKNOWN, SqlType
from sql.bind.coerce import castable, type_name
from sql.bind.routine_bodies import body_statements
from sql.bind.statement import bind_statement
from sql.bind.variables import Name, Variables
from sql.catalog.catalog import CatalogReader, Relation
from sql.catalog.routine import Routine
from sql.statements.queries import OutputColumn, Query
from sql.statements.statements import Compound, DataChange, Statement
from sql.syntax.plpgsql import checking as plpgsql
from sql.syntax.plpgsql.checking import Returns
from sql.syntax.plpgsql.grammar import parse_body
from storage.types.type_names import format_type


def check_body(function: Relation, catalog: CatalogReader) -> None:
    """Raises the errors of the statements, without positions, and 42P13 where the last one's rows are not what the
    function returns."""
    routine = function.routine
    if routine is not None and routine.language == "plpgsql" and function.definition is not None:
        _check_plpgsql(function, routine, function.definition)
        return
    if routine is None or not routine.statements or function.definition is None:
        return
    last: Statement | None = None
    variables, types = argument_names(function)
    for text in body_statements(routine, function.definition):
        try:
            last = bind_statement(text, catalog, types, variables).statement
        except SqlError as error:
            raise SqlError(error.sqlstate, error.message, error.detail, error.hint) from None
    if not routine.returns_nothing:
        _check_result(function, last)


def _check_plpgsql(function: Relation, routine: Routine, text: str) -> None:
    names = [a.name for a in routine.arguments if a.name is not None]
    names += [f"${i + 1}" for i in range(len(routine.arguments))]
    names += [c.name for c in function.columns if routine.table]
    returns = Returns(routine.returns_set, routine.returns_nothing, routine.table)
    plpgsql.check_body(parse_body(text), names, routine.name, returns)


def argument_names(function: Relation) -> tuple[Variables, tuple[SqlType, ...]]:
    """What a routine's arguments are called in its statements, and their types."""
    routine = function.routine
    assert routine is not None, "a routine"
    types = routine.types

    def type_of(name: Name) -> SqlType | None:
        place = argument_place(function, name)
        return None if place is None else types[place]

    return Variables(type_of, (function.id, tuple(a.name for a in routine.arguments))), types


def argument_place(function: Relation, name: Name) -> int | None:
    """The number of the argument that a name means: alone, or qualified by the function's name."""
    routine = function.routine
    assert routine is not None, "a routine"
    if len(name) > 1 and name[-2] != routine.name:
        return None
    return next((i for i, a in enumerate(routine.arguments) if a.name == name[-1]), None)


def _check_result(function: Relation, last: Statement | None) -> None:
    columns = _columns(last)
    wanted = [c.type for c in function.columns]
    if columns is None:
        detail = "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING."
        raise _mismatch(function, detail)
    if len(columns) != len(wanted):
        many = "many" if len(columns) > len(wanted) else "few"
        one = "Final statement must return exactly one column."
        raise _mismatch(function, f"Final statement returns too {many} columns." if len(wanted) > 1 else one)
    for i, (have, want) in enumerate(zip(columns, wanted, strict=True)):
        if have.type != UNKNOWN and not castable(have.type, want, "assignment"):
            shown = f"Actual return type is {type_name(have.type)}."
            if len(wanted) > 1:
                shown = (
                    f"Final statement returns {type_name(have.type)} instead of {type_name(want)} at column {i + 1}."
                )
            raise _mismatch(function, shown)


def _columns(statement: Statement | None) -> tuple[OutputColumn, ...] | None:
    """The columns of the rows that a statement returns; None if it returns none."""
    if isinstance(statement, Compound):
        statement = statement.main
    if isinstance(statement, Query):
        return statement.columns
    returns = isinstance(statement, DataChange) and statement.returning is not None
    return statement.columns if returns and isinstance(statement, DataChange) else None


def _mismatch(function: Relation, detail: str) -> SqlError:
    routine = function.routine
    assert routine is not None, "a routine"
    shown = "record" if len(function.columns) > 1 else format_type(routine.result, False)
    return SqlError("42P13", f"return type mismatch in function declared to return {shown}", detail)
