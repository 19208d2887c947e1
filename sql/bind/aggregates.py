"""Calls of aggregates, built-in and user-defined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ivm.errors import SqlError
from ivm.words import INT4, INT8, TEXT, SqlType
from planner.aggregates.table import COUNT_ROWS, PYTHON, aggregate_overloads, result_nullable
from planner.expr.python_function import PythonFunction
from planner.expr.scalar import Aggregate, Call, Case, Column, Literal, OuterColumn, Scalar
from planner.expr.state_fold import StateFold
from planner.logical.levels import unlift
from sql.bind.coerce import cast_arguments, resolve_unknown, to_boolean
from sql.bind.comparable import check_equality
from sql.bind.environment import Binder
from sql.bind.order_by import sort_key
from sql.bind.overloads import resolve_call
from sql.bind.overloads import signature as shown_call
from sql.bind.routine_resolution import RoutineOverload, resolve_routine
from sql.bind.scope import AGGREGATE_BASE, GROUPING_BASE, NameScope
from sql.bind.state_aggregates import state_fold
from sql.bind.walk import references
from sql.syntax.nodes import queries as nodes


def aggregate(
    b: Binder,
    node: nodes.Apply,
    name: str,
    become: Callable[[Aggregate], Aggregate] | None = None,
    overload: RoutineOverload | None = None,
) -> Scalar:
    """A placeholder for an aggregate's result; the aggregate is added to the scope of the query it belongs to.

    That is the innermost query that a column in it comes from (parse_agg.c). ``become``: turns the aggregate of the
    call into the one that is meant. ``overload``: the user-defined aggregate that is called. Raises 42803, 42883.
    """
    if b.inside_aggregate:
        raise SqlError("42803", "aggregate function calls cannot be nested", position=node.at + 1)
    b.inside_aggregate = True
    try:
        made = called_aggregate(b, node, name, overload)
    finally:
        b.inside_aggregate = False
    made = made if become is None else become(made)
    parts = [*made.args, *(k.expr for k in made.order), *([made.filter] if made.filter is not None else [])]
    owner, level = _owner(b, parts, "aggregate functions", node.at)
    _check_nesting(owner, level, parts)
    if level:
        made = _outer_aggregate(made, level)
    index = AGGREGATE_BASE + owner.add_aggregate(made)
    owner.seen.setdefault(index, (node.at, level > 0))
    if level:
        return OuterColumn(level, index, made.type, made.nullable)
    return Column(index, made.type, made.nullable)


def _owner(b: Binder, parts: Sequence[Scalar], what: str, at: int) -> tuple[NameScope, int]:
    """The query that an aggregate of these expressions belongs to, and how far out it is. Raises 42803."""
    level = min((level for part in parts for level, _ in references(part)), default=0)
    owner = b.scope
    for _ in range(level):
        assert owner.parent is not None
        owner = owner.parent
    if owner.aggregates is None:
        clause = b.clause if level == 0 else owner.clause
        if level and clause == "FROM":
            clause = "FROM clause of their own query level"
        raise SqlError("42803", f"{what} are not allowed in {clause}", position=at + 1)
    return owner, level


def grouping(b: Binder, node: nodes.Apply) -> Scalar:
    """GROUPING(key, …): a placeholder for its result. Raises 42803, 54023."""
    if b.inside_aggregate:
        raise SqlError("42803", "aggregate function calls cannot be nested", position=node.at + 1)
    if len(node.args) > 31:
        raise SqlError("54023", "GROUPING must have fewer than 32 arguments", position=node.at + 1)
    args = tuple(resolve_unknown(b.env, b.bind(a), a.at) for a in node.args)
    owner, level = _owner(b, args, "grouping operations", node.at)
    made = tuple(unlift(a, level) for a in args) if level else args
    owner.groupings.append((made, node.args[0].at))
    index = GROUPING_BASE + len(owner.groupings) - 1
    return OuterColumn(level, index, INT4, False) if level else Column(index, INT4, False)


def _check_nesting(owner: NameScope, level: int, parts: Sequence[Scalar]) -> None:
    """Raises 42803 where an aggregate of a query has another one of the same query in it, in a subquery."""
    for part in parts:
        for other, index in references(part):
            if other == level and AGGREGATE_BASE <= index < GROUPING_BASE:
                at, _ = owner.seen[index]
                raise SqlError("42803", "aggregate function calls cannot be nested", position=at + 1)


def _outer_aggregate(made: Aggregate, level: int) -> Aggregate:
    """An aggregate of an enclosing query, over that query's columns."""
    filter_ = None if made.filter is None else unlift(made.filter, level)
    args = tuple(unlift(a, level) for a in made.args)
    order = tuple(replace(key, expr=unlift(key.expr, level)) for key in made.order)
    return replace(made, args=args, filter=filter_, order=order)


def called_aggregate(b: Binder, node: nodes.Apply, name: str, overload: RoutineOverload | None) -> Aggregate:
    """The aggregate of a call, which is not added to any scope. Raises 42883, 42809, 42P10."""
    filter_ = None if node.filter is None else to_boolean(b.env, b.bind(node.filter), "FILTER", node.filter.at)
    keys = [b.bind(i.expr) for i in node.order]
    if node.star:
        if name == "count" and overload is None:
            return Aggregate(COUNT_ROWS, (), INT8, False, False, filter_)
        if overload is None or overload.routine.arguments:
            raise SqlError("42883", f"function {name}() does not exist", position=node.at + 1)
    elif not node.args and (name == "count" or (overload is not None and not overload.routine.arguments)):
        message = f"{name}(*) must be used to call a parameterless aggregate function"
        raise SqlError("42809", message, position=node.at + 1)
    args = [b.bind(a) for a in node.args]
    if overload is not None:
        function, bound = PYTHON, _routine_arguments(b, node, overload)
    else:
        choice = resolve_call(aggregate_overloads(name), name, tuple(a.type for a in args), node.at)
        function, bound = choice.overload, cast_arguments(b.env, args, choice.args, node.at)
    if node.distinct and any(k not in args for k in keys):
        raise SqlError(
            "42P10", "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
            position=node.at + 1,
        )  # fmt: skip
    if node.distinct:
        for arg in bound:
            check_equality(arg.type, node.at)
    # A sort key that equals an argument is that argument as the aggregate gets it, cast included.
    keys = [
        bound[args.index(k)] if k in args and len(bound) == len(args) else resolve_unknown(b.env, k, node.at)
        for k in keys
    ]
    order = tuple(sort_key(k, i) for k, i in zip(keys, node.order, strict=True))
    types = tuple(a.type for a in bound)
    if function.beside is not None:
        bound = (*bound, _beside(function.beside, bound, filter_))
    nullable = result_nullable(function, tuple(a.nullable for a in bound), b.scope.grouped, filter_ is not None)
    python = None if overload is None else _user_aggregate(b, overload, types, node.at)
    result = (function.result_type(types) if python is None else python.result).plain
    return Aggregate(function.key, bound, result, nullable, node.distinct, filter_, order, python)


def _user_aggregate(
    b: Binder, overload: RoutineOverload, types: tuple[SqlType, ...], at: int
) -> PythonFunction | StateFold:
    return python_function(overload) if overload.routine.fold is None else state_fold(b, overload, types, at)


def _beside(key: str, args: tuple[Scalar, ...], filter_: Scalar | None) -> Scalar:
    """An aggregate's last argument, computed from the others on the rows that pass its FILTER."""
    call = Call(key, args, TEXT, True)
    return call if filter_ is None else Case(((filter_, call),), Literal(None, TEXT), TEXT)


def python_function(overload: RoutineOverload) -> PythonFunction:
    """The Python function of a user-defined aggregate."""
    routine, body = overload.routine, overload.relation.definition
    assert body is not None, "an aggregate has a body"
    assert isinstance(routine.result, SqlType), "checked when it was created"
    types = [t for t in overload.args if isinstance(t, SqlType)]
    return PythonFunction(shown_call(overload.name, types), overload.name, body, routine.result, routine.strict)


def _routine_arguments(b: Binder, node: nodes.Apply, overload: RoutineOverload) -> tuple[Scalar, ...]:
    """The arguments as the user-defined aggregate takes them, which the call was resolved to."""
    call = resolve_routine(b, node, (overload,))
    assert call is not None, "resolved before"
    return call.args
