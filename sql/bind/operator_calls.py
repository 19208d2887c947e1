"""Users' operators as calls of the functions behind them."""

from __future__ import annotations

from collections.abc import Sequence

from planner.expr.scalar import Scalar
from sql.bind.environment import Environment
from sql.bind.routine_resolution import RoutineOverload, exact_call
from sql.bind.routines import routine_value
from sql.bind.scalar_functions import apply_function
from sql.catalog.catalog import Relation


def call_operator(env: Environment, relation: Relation, args: Sequence[Scalar], at: int) -> Scalar:
    """The function behind an operator that is no shell, applied to operands of the operator's types."""
    env.catalog.by_id(relation.id)  # a recording catalog notes the dependency
    operator = relation.operator
    assert operator is not None, "an operator"
    assert not operator.shell, "resolved so"
    if operator.builtin:
        return apply_function(env, operator.builtin, list(args), at)
    function = env.catalog.by_id(operator.function)
    assert function is not None, "a function goes with the operators over it"
    assert function.routine is not None, "a function"
    if env.asking is not None:
        env.asking.call(function)
    return routine_value(env, exact_call(env, RoutineOverload(function, function.routine), args, at))
