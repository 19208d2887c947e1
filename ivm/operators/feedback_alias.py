"""Loop variables whose arrangement is their body's, one round later: the join reads the body's spine instead.

A Threshold or Reduce in a loop keeps its output in a spine. Where it is a variable's body, an arrangement of the
variable with the same words in the same order would hold the same rows, each a round later; so joins read the body's
spine with a delay, and nothing is arranged twice. Not done when anything but a join reads the arrangement.
"""

from __future__ import annotations

from collections.abc import Sequence

from ivm.operators.arrange import ArrangeOperator
from ivm.operators.base import is_identity
from ivm.operators.join import JoinOperator
from ivm.operators.loop import DelayedOperator, VariableOperator
from ivm.runtime.operator import Operator


def alias_variables(fresh: Sequence[Operator]) -> dict[int, DelayedOperator]:
    """Changes joins among new operators to read bodies' spines. Returns the stand-ins for the arrangements that they no
    longer read, by the arrangement's identity."""
    readers: dict[int, list[Operator]] = {}
    for operator in fresh:
        for need in operator.needs():
            readers.setdefault(id(need), []).append(operator)
    replaced: dict[int, DelayedOperator] = {}
    for operator in fresh:
        if not isinstance(operator, ArrangeOperator) or not isinstance(operator.source, VariableOperator):
            continue
        body = operator.source.body
        if body is None or body.spine is None or isinstance(body, ArrangeOperator):
            continue
        if operator.scope.stride:  # the variable lacks what its body emitted in a priority's last round
            continue
        joins = readers.get(id(operator), [])
        plain = operator.kept.order == 0 and body.spine.order == 0 and is_identity(operator.gather, body.width)
        if not plain or not all(isinstance(join, JoinOperator) for join in joins):
            continue
        delayed = replaced[id(operator)] = DelayedOperator(operator.source, operator.key_width)
        delayed.id = operator.id
        for join in joins:
            assert isinstance(join, JoinOperator)
            for side in (join.left, join.right):
                if side.arrangement is operator:
                    side.arrangement, side.delta, side.delay = body, operator.source, 1
    return replaced
