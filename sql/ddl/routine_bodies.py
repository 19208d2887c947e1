"""Checks the body of a new function that is interpreted: each statement of LANGUAGE sql binds, and PL/pgSQL parses."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from sql.bind.routine_bodies import body_statements
from sql.bind.routines import check_shape, mismatch
from sql.bind.statement import bind_statement
from sql.bind.variables import Name, Variables
from sql.catalog.catalog import CatalogReader, Relation, TableColumn
from sql.catalog.routine import Routine
from sql.statements.queries import OutputColumn, Query
from sql.statements.routines import CallProcedure
from sql.statements.statements import Compound, DataChange, Statement
from sql.syntax.plpgsql import checking as plpgsql
from sql.syntax.plpgsql.checking import TRIGGER_NAMES, Returns
from sql.syntax.plpgsql.grammar import parse_body


def check_body(function: Relation, catalog: CatalogReader) -> Relation:
    """The function, with the columns of a body that says them. Raises the errors of the statements, without positions,
    and 42P13 where the last one's rows are not what the function returns."""
    routine = function.routine
    if routine is not None and routine.language == "plpgsql" and function.definition is not None:
        _check_plpgsql(function, routine, function.definition)
    if routine is None or not routine.statements or function.definition is None or routine.polymorphic:
        return function
    last: Statement | None = None
    types = tuple(t for t in routine.types if isinstance(t, SqlType))
    variables = argument_names(function, types)
    for text in body_statements(routine, function.definition):
        try:
            last = bind_statement(text, catalog, types, variables).statement
        except SqlError as error:
            raise SqlError(error.sqlstate, error.message, error.detail, error.hint) from None
    if routine.returns_nothing:
        return function
    columns = _columns(last)
    if columns is None:
        detail = "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING."
        raise mismatch(routine, detail)
    if routine.record:
        return replace(function, columns=tuple(TableColumn(c.name, c.type) for c in columns))
    given, wanted = [c.type for c in columns], [c.type for c in function.columns]
    if (
        len(given) == 1
        and (len(wanted) > 1 or routine.returns_row)
        and given[0].kind is Kind.RECORD
        and given[0].fields
    ):
        given = [type_ for _, type_ in given[0].fields]
    check_shape(routine, given, wanted)
    return function


def _check_plpgsql(function: Relation, routine: Routine, text: str) -> None:
    names = [a.name for a in routine.declared if a.name is not None]
    names += [f"${i + 1}" for i in range(len(routine.declared))]
    if routine.trigger:
        names += TRIGGER_NAMES
    nothing = routine.returns_nothing and not routine.trigger
    returns = Returns(routine.returns_set, nothing, bool(routine.outputs))
    plpgsql.check_body(parse_body(text), names, routine.name, returns)


def argument_names(function: Relation, types: tuple[SqlType, ...]) -> Variables:
    """What a routine's arguments, of these types, are called in its statements."""
    routine = function.routine
    assert routine is not None, "a routine"

    def type_of(name: Name) -> SqlType | None:
        place = argument_place(function, name)
        return None if place is None else types[place]

    return Variables(type_of, (function.id, tuple(a.name for a in routine.arguments)))


def argument_place(function: Relation, name: Name) -> int | None:
    """The number of the argument that a name means: alone, or qualified by the function's name."""
    routine = function.routine
    assert routine is not None, "a routine"
    if len(name) > 1 and name[-2] != routine.name:
        return None
    return next((i for i, a in enumerate(routine.arguments) if a.name == name[-1]), None)


def _columns(statement: Statement | None) -> tuple[OutputColumn, ...] | None:
    """The columns of the rows that a statement returns; None if it returns none."""
    if isinstance(statement, Compound):
        statement = statement.main
    if isinstance(statement, Query | CallProcedure):
        return statement.columns
    returns = isinstance(statement, DataChange) and statement.returning is not None
    return statement.columns if returns and isinstance(statement, DataChange) else None
