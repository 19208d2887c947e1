"""Set-returning functions in a select list: collected in the scope, then joined to the query's rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL, INT8, ColumnType
from planner.expr.scalar import Call, Coalesce, Column, Literal, Scalar
from planner.logical.levels import lift, relevel
from planner.logical.nodes import Join, JoinKind, Project, Rel, TableFunction, schema
from sql.bind import table_functions
from sql.bind.bound_query import UNIT
from sql.bind.environment import Binder
from sql.bind.routines import RoutineCall, lateral, routine_body
from sql.bind.scope import AGGREGATE_BASE, FUNCTION_BASE, SetReturning
from sql.syntax.nodes import queries as nodes


def set_returning(b: Binder, node: nodes.Apply, name: str) -> Scalar:
    """A call of a built-in function: a placeholder for one value of its result. Raises 42883, 0A000."""
    functions = _collected(b, node)
    if b.inside_aggregate:
        raise SqlError(
            "0A000", "aggregate function calls cannot contain set-returning function calls", position=node.at + 1
        )
    before = len(functions)
    args = [b.bind(a) for a in node.args]
    if len(functions) > before:
        raise unsupported("a set-returning function of a set-returning function", position=node.at + 1)
    key, bound, columns = table_functions.apply(b.env, name, args, node.at)
    if len(columns) != 1:
        raise SqlError("0A000", "a row as a value is not supported", position=node.at + 1)
    return _placeholder(functions, SetReturning(key, bound, columns, node.at))


def set_returning_routine(b: Binder, node: nodes.Apply, call: RoutineCall) -> Scalar:
    """The same for a user-defined function."""
    functions = _collected(b, node)
    overload = call.overload
    columns = overload.relation.columns
    if len(columns) != 1:
        raise unsupported("a row as the value of a function", "Call it in FROM.", node.at + 1)
    body = routine_body(b.env, overload)
    shown = (ColumnType(columns[0].type, True),)
    return _placeholder(functions, SetReturning(overload.key, call.args, shown, node.at, (overload.routine, body)))


def _collected(b: Binder, node: nodes.Apply) -> list[SetReturning]:
    """The scope's set-returning functions so far. Raises 0A000 where none is allowed."""
    if b.scope.functions is None:
        raise SqlError("0A000", f"set-returning functions are not allowed in {b.clause}", position=node.at + 1)
    return b.scope.functions


def _placeholder(functions: list[SetReturning], call: SetReturning) -> Column:
    if call not in functions:
        functions.append(call)
    return Column(FUNCTION_BASE + functions.index(call), call.columns[0].type, True)


def with_set_returning(rel: Rel, functions: Sequence[SetReturning]) -> tuple[Rel, Callable[[Scalar], Scalar]]:
    """The query's rows joined with the functions' results, and what replaces the placeholders in an expression."""
    width = len(schema(rel))
    if any(f.routine is not None for f in functions):
        rel = Join(JoinKind.INNER, rel, _routine_rows(functions), Literal(True, BOOL), True)
    elif len(functions) == 1 or {f.function for f in functions} == {"unnest"}:
        args = tuple(a for f in functions for a in f.args)
        columns = tuple(c for f in functions for c in f.columns)
        rel = TableFunction(rel, functions[0].function, args, columns)
    else:
        rel = Join(JoinKind.INNER, rel, _in_lockstep(functions), Literal(True, BOOL), True)

    def place(level: int, index: int) -> tuple[int, int]:
        if level == 0 and FUNCTION_BASE <= index < AGGREGATE_BASE:
            return level, width + index - FUNCTION_BASE
        return level, index

    return rel, lambda expr: relevel(expr, place)


def _routine_rows(functions: Sequence[SetReturning]) -> Rel:
    """The rows of a user-defined function, for a lateral join."""
    function = functions[0]
    if len(functions) > 1 or function.routine is None:
        raise unsupported("a user's function beside another set-returning one", position=functions[0].at + 1)
    routine, body = function.routine
    return lateral(body, routine, tuple(lift(a) for a in function.args))


def _in_lockstep(functions: Sequence[SetReturning]) -> Rel:
    """The functions' rows joined by row number, the shorter results padded with NULLs; for a lateral join."""
    rel: Rel | None = None
    for count, function in enumerate(functions):
        args = tuple(lift(a) for a in function.args)
        one = TableFunction(UNIT, function.function, args, function.columns, True)
        if rel is None:
            rel = one
            continue
        equal = Call("=(int8,int8)", (Column(count, INT8), Column(count + 2, INT8)), BOOL, True)
        joined = Join(JoinKind.FULL, rel, one, equal)
        columns = schema(joined)
        values = [Column(i, columns[i].type, True) for i in (*range(count), count + 1)]
        number = Coalesce((Column(count, INT8), Column(count + 2, INT8)), INT8)
        rel = Project(joined, (*values, number))
    assert rel is not None
    return rel
