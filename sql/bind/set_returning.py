"""Set-returning functions in a select list: collected in the scope, then joined to the query's rows.

Functions of one depth of nesting run side by side, the shorter results padded with NULLs; those around them run on the
rows that these make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ivm.errors import SqlError
from ivm.words import BOOL, INT8, ColumnType
from planner.expr.functions.json.records import no_row_type
from planner.expr.functions.lockstep import lockstep
from planner.expr.scalar import Call, Coalesce, Column, Literal, Scalar
from planner.logical.levels import lift, relevel
from planner.logical.nodes import Join, JoinKind, Numbering, Project, Rel, TableFunction, TopK, schema
from sql.bind import table_functions
from sql.bind.bound_query import UNIT
from sql.bind.environment import Binder
from sql.bind.python_routines import python_rows
from sql.bind.routine_resolution import RoutineCall
from sql.bind.routines import interpreted_rows, lateral, set_rows
from sql.bind.scope import AGGREGATE_BASE, FUNCTION_BASE, WINDOW_ARGUMENTS, SetReturning
from sql.bind.walk import references
from sql.syntax.nodes import queries as nodes

_HINT = "You might be able to move the set-returning function into a LATERAL FROM item."


def set_returning(b: Binder, node: nodes.Apply, name: str) -> Scalar:
    """A call of a built-in function: a placeholder for one value of its result. Raises 42883, 0A000."""
    functions = _collected(b, node)
    args = [b.bind(a) for a in node.args]
    if name in table_functions.DEFINED:
        raise no_row_type(name)
    key, bound, columns = table_functions.apply(b.env, name, args, node.at)
    if len(columns) != 1:
        key, columns = table_functions.as_row(key, bound)
    return _placeholder(functions, SetReturning(key, bound, columns))


def set_returning_routine(b: Binder, node: nodes.Apply, call: RoutineCall) -> Scalar:
    """The same for a user-defined function."""
    functions = _collected(b, node)
    if call.routine.interpreted and not call.columns:
        message = "set-valued function called in context that cannot accept a set"
        raise SqlError("0A000", message, position=node.at + 1)
    if call.routine.interpreted:
        return _placeholder(functions, SetReturning(*interpreted_rows(b.env, call, as_row=call.is_row)))
    if call.routine.language == "python":
        return _placeholder(functions, SetReturning(*python_rows(call, as_row=call.is_row)))
    body, columns = set_rows(b.env, call)
    return _placeholder(functions, SetReturning(call.overload.key, call.args, columns, (call.routine, body)))


def _collected(b: Binder, node: nodes.Apply) -> list[SetReturning]:
    """The scope's set-returning functions so far. Raises 0A000 where none is allowed."""
    if b.inside_aggregate:
        message = "aggregate function calls cannot contain set-returning function calls"
        raise SqlError("0A000", message, hint=_HINT, position=node.at + 1)
    if b.scope.clause == WINDOW_ARGUMENTS:
        message = "window function calls cannot contain set-returning function calls"
        raise SqlError("0A000", message, hint=_HINT, position=node.at + 1)
    if b.scope.functions is None:
        message = f"set-returning functions are not allowed in {b.clause}"
        if b.clause == "functions in FROM":
            message = "set-returning functions must appear at top level of FROM"
        raise SqlError("0A000", message, position=node.at + 1)
    if b.scope.conditional is not None:
        message = f"set-returning functions are not allowed in {b.scope.conditional}"
        raise SqlError("0A000", message, hint=_HINT, position=node.at + 1)
    return b.scope.functions


def _placeholder(functions: list[SetReturning], call: SetReturning) -> Column:
    if call not in functions:
        functions.append(call)
    return Column(FUNCTION_BASE + functions.index(call), call.columns[0].type, True)


def called(exprs: Iterable[Scalar]) -> set[int]:
    """The numbers of the functions whose placeholders the expressions have, arguments of functions aside."""
    found = {index for expr in exprs for level, index in references(expr) if level == 0}
    return {index - FUNCTION_BASE for index in found if FUNCTION_BASE <= index < AGGREGATE_BASE}


def arguments(functions: Sequence[SetReturning], numbers: set[int]) -> list[Scalar]:
    """The arguments of these functions, and of the functions that they call."""
    return [arg for number in sorted(reached(functions, numbers)) for arg in functions[number].args]


def reached(functions: Sequence[SetReturning], numbers: set[int]) -> set[int]:
    """These functions and the functions in their arguments, at any depth."""
    inner = called(arg for number in numbers for arg in functions[number].args)
    return numbers | reached(functions, inner) if inner else numbers


def with_set_returning(
    rel: Rel, functions: Sequence[SetReturning], numbers: set[int]
) -> tuple[Rel, Callable[[Scalar], Scalar]]:
    """The query's rows joined with the results of these functions, and what replaces the placeholders in an
    expression."""
    place: dict[int, int] = {}

    def placed(expr: Scalar) -> Scalar:
        return relevel(expr, lambda level, index: (level, place.get(index, index) if level == 0 else index))

    waiting = reached(functions, numbers)
    while waiting:
        ready = [n for n in sorted(waiting) if not called(placed(arg) for arg in functions[n].args)]
        width = len(schema(rel))
        given = [replace(functions[n], args=tuple(map(placed, functions[n].args))) for n in ready]
        rel = _beside(rel, given)
        place |= {FUNCTION_BASE + n: width + i for i, n in enumerate(ready)}
        waiting = waiting.difference(ready)
    return rel, placed


def _beside(rel: Rel, functions: Sequence[SetReturning]) -> Rel:
    """The rows, each with the rows that the functions side by side return for it."""
    if len(functions) == 1 and functions[0].routine is not None:
        return Join(JoinKind.INNER, rel, _routine_rows(functions[0]), Literal(True, BOOL), True)
    if any(f.routine is not None for f in functions):
        return Join(JoinKind.INNER, rel, _by_number(functions), Literal(True, BOOL), True)
    args = tuple(a for f in functions for a in f.args)
    if len(functions) == 1:
        return TableFunction(rel, functions[0].function, args, functions[0].columns)
    columns = tuple(ColumnType(c.type, True) for f in functions for c in f.columns)
    return TableFunction(rel, lockstep([(f.function, len(f.args)) for f in functions]), args, columns)


def _routine_rows(function: SetReturning) -> Rel:
    """The rows of a user-defined function, for a lateral join."""
    assert function.routine is not None
    routine, body = function.routine
    return lateral(body, routine, tuple(lift(a) for a in function.args))


def _by_number(functions: Sequence[SetReturning]) -> Rel:
    """The functions' rows joined by row number, the shorter results padded with NULLs; for a lateral join."""
    rel: Rel | None = None
    for count, function in enumerate(functions):
        if function.routine is None:
            args = tuple(lift(a) for a in function.args)
            one: Rel = TableFunction(UNIT, function.function, args, function.columns, True)
        else:
            one = TopK(_routine_rows(function), (), (), None, None, (Numbering.ROW_NUMBER,))
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
