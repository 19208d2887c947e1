"""Calls of ordered-set aggregates of one's own: ``f(direct) WITHIN GROUP (ORDER BY x)``.

Their state is that of a plain aggregate of the sorted values; the final function is applied to it and the direct
arguments outside of the aggregate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ivm.errors import SqlError
from planner.expr.functions.table import ANY
from planner.expr.parts import COLUMNS, rebuild
from planner.expr.scalar import Literal, Scalar
from sql.bind.aggregates import aggregate
from sql.bind.coerce import cast
from sql.bind.environment import Binder
from sql.bind.ordered_sets import ordered_set, sorted_type
from sql.bind.overloads import Resolution, no_function, not_resolved, resolve_uncached
from sql.bind.routine_resolution import RoutineOverload
from sql.bind.state_aggregates import function_over
from sql.syntax.nodes import queries as nodes


def own_ordered_set(b: Binder, node: nodes.Apply, found: Sequence[RoutineOverload]) -> Scalar | None:
    """The aggregate's value; None if the name is that of no aggregate. Raises 42883, 42725, 42809, 0A000."""
    name = node.name[-1]
    aggregates = [o for o in found if o.routine.aggregate]
    ordered = [o for o in aggregates if o.routine.fold is not None and o.routine.fold.direct is not None]
    if not aggregates:
        return None
    direct = [b.bind(a) for a in node.args]
    types = (*(d.type for d in direct), *(sorted_type(b, i.expr) for i in node.order))
    loose = next((o for o in ordered if o.args == (ANY,)), None)
    choice: Resolution[Any] | None = None
    try:
        choice = resolve_uncached([o for o in ordered if o is not loose], types)
    except SqlError as error:
        raise not_resolved(error, no_function(name, types, node.at, ambiguous=True)) from None
    overload = loose if choice is None else choice.overload
    if overload is None and resolve_uncached([o for o in aggregates if o not in ordered], types) is not None:
        message = f"{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
        raise SqlError("42809", message, position=node.at + 1)
    if overload is None:
        raise no_function(name, types, node.at)
    if node.over is not None:
        message = f"OVER is not supported for ordered-set aggregate {name}"
        raise SqlError("0A000", message, position=node.at + 1)
    fold = overload.routine.fold
    assert fold is not None, "chosen so"
    b.env.catalog.by_id(overload.relation.id)  # a recording catalog notes the dependency
    if fold.stands_for:
        return ordered_set(b, replace(node, name=(fold.stands_for,)), fold.stands_for)
    assert choice is not None, "only those that stand for others take anything"
    return _folded(b, node, overload, choice, direct)


def _folded(
    b: Binder, node: nodes.Apply, overload: RoutineOverload, choice: Resolution[Any], direct: Sequence[Scalar]
) -> Scalar:
    routine = overload.routine
    fold = routine.fold
    assert fold is not None, "an ordered-set aggregate"
    count = fold.direct or 0
    inner = replace(routine, declared=routine.declared[count:], fold=replace(fold, final=None, direct=None))
    gathered = nodes.Apply(
        node.name, tuple(i.expr for i in node.order), node.at, order=node.order, filter=node.filter
    )  # fmt: skip
    state = aggregate(b, gathered, overload.name, overload=RoutineOverload(overload.relation, inner))
    if fold.final is None:
        return state
    given = [cast(b.env, d, t, "implicit", node.at) for d, t in zip(direct, choice.args[:count], strict=True)]
    extra = [Literal(None, t) for t in choice.args[count:]] if fold.final_extra else []
    values = (state, *given, *extra)
    types = [v.type for v in values]
    final, _ = function_over(b.env, fold.final, types, types)
    return rebuild(final, COLUMNS, lambda part: values[part.index])
