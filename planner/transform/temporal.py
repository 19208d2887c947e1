"""Conditions on the current time become nodes of their own (``planner.logical.temporal`` says which can be kept).

Rule: a filter, or an inner join's condition, is divided into what reads the clock and the rest; a series up to the
present becomes an endless one under such a condition (``planner.transform.growing_series``). Side condition: nothing
else reads the clock.
"""

from __future__ import annotations

from planner.expr.scalar import Scalar
from planner.logical.nodes import Filter, Join, JoinKind, Rel, TemporalFilter
from planner.logical.temporal import conditions, reads_clock, unsupported_clock
from planner.logical.traversal import bottom_up, conjunction, conjuncts, nodes, scalars
from planner.transform.growing_series import grown, is_growing


def separated(rel: Rel) -> Rel:
    """The plan with its temporal conditions as nodes of their own. Raises 0A000 for those that cannot be maintained."""
    rel = bottom_up(bottom_up(rel, _separated), _grown)
    for node in nodes(rel):
        if not isinstance(node, TemporalFilter) and any(map(reads_clock, scalars(node))):
            raise unsupported_clock()
    return rel


def _separated(rel: Rel) -> Rel:
    match rel:
        case Filter():
            now, rest = _split(rel.predicate)
            below = grown(rel.input, now) if is_growing(rel.input) else rel.input
            below = Filter(below, conjunction(rest)) if rest else below
            return TemporalFilter(below, now) if now else rel
        case Join(kind=JoinKind.INNER, lateral=False):
            now, rest = _split(rel.on)
            if now:
                return TemporalFilter(Join(rel.kind, rel.left, rel.right, conjunction(rest)), now)
        case _:
            pass
    return rel


def _grown(rel: Rel) -> Rel:
    return grown(rel) if is_growing(rel) else rel


def _split(predicate: Scalar) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    parts = conjuncts(predicate)
    now = tuple(c for p in parts if reads_clock(p) for c in conditions(p))
    return now, tuple(p for p in parts if not reads_clock(p))
