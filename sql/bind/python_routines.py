"""Functions in LANGUAGE python: their definitions' checks, and their calls."""

from __future__ import annotations

from collections.abc import Iterable

from ivm.errors import SqlError, unsupported
from ivm.words import TEXT, ColumnType, Kind, Schema, SqlType
from planner.expr.functions.python_calls import PYTHON_CALLS, PYTHON_ROW, PYTHON_ROWS, spec
from planner.expr.functions.table import ArgumentType
from planner.expr.python_function import PythonFunction, check_body
from planner.expr.python_values import is_known
from planner.expr.scalar import Call, Literal, Scalar
from sql.bind.coerce import type_name
from sql.bind.routine_resolution import RoutineCall, argument_type_name, schema_of
from sql.catalog.catalog import Relation
from sql.catalog.routine import Routine


def checked_function(relation: Relation, routine: Routine) -> PythonFunction:
    """The function of a new routine, its body parsed but not run. Raises 0A000, 42601, 42P13."""
    if routine.procedure:
        raise unsupported("a procedure in LANGUAGE python")
    if routine.vectorised and (routine.returns_set or routine.table or routine.record):
        raise SqlError("42P13", "a vectorized function returns one value for each row")
    if routine.expression:
        raise SqlError("42P13", "a function in LANGUAGE python has its body in quotes")
    columns: tuple[ArgumentType, ...] = tuple(c.type for c in relation.columns if c.type.kind is not Kind.UNKNOWN)
    _check_types(t for t in (*routine.types, *columns) if isinstance(t, SqlType) and t.kind is not Kind.VOID)
    function = _function(relation, routine)
    check_body(function, len(routine.arguments))
    return function


def _function(relation: Relation, routine: Routine) -> PythonFunction:
    shown = f"{routine.name}({', '.join(map(argument_type_name, routine.types))})"
    assert relation.definition is not None, "it has a body"
    return PythonFunction(shown, routine.name, relation.definition, TEXT, routine.strict, "function")


def _check_types(types: Iterable[SqlType]) -> None:
    for type_ in types:
        if not is_known(type_.plain):
            raise unsupported(f"a Python function with type {type_name(type_)}")


def python_value(call: RoutineCall) -> Scalar:
    """A call as an expression. Raises 0A000."""
    if call.routine.polymorphic:
        _check_types((*call.types, *(c.type for c in call.columns)))
    if not call.columns:
        raise unsupported("a row of any type as the value of a function", "Call it in FROM, with AS (column type, …).")
    return Call(PYTHON_CALLS[call.routine.volatility], (_spec(call), *call.args), call.result, True)


def python_rows(call: RoutineCall, *, as_row: bool = False) -> tuple[str, tuple[Scalar, ...], Schema]:
    """A set-returning call as a table function: its key, arguments and columns. Raises 0A000."""
    if call.routine.polymorphic:
        _check_types((*call.types, *(c.type for c in call.columns)))
    if not call.columns:
        raise unsupported("a row of any type as the value of a function", "Call it in FROM, with AS (column type, …).")
    row = Literal(None, SqlType(Kind.RECORD, fields=tuple((c.name, c.type) for c in call.columns)))
    args = (row, _spec(call), *call.args)
    if as_row:
        return PYTHON_ROW, args, (ColumnType(row.type, True),)
    return PYTHON_ROWS, args, schema_of(call.columns)


def _spec(call: RoutineCall) -> Literal:
    function = _function(call.overload.relation, call.routine)
    return Literal(spec(function, call.routine.vectorised, call.routine.volatility), TEXT)
