"""What kinds of nodes and expressions a plan has at all: most rewrites are for plans that have some of a few kinds."""

from __future__ import annotations

from planner.expr.parts import kinds_of
from planner.expr.scalar import LEAVES
from planner.logical.nodes import Join, Rel
from planner.logical.traversal import all_inputs, nodes, scalars
from planner.memo import by_identity

Kinds = frozenset[object]
LATERAL = "LATERAL"
"""Stands among the kinds for a lateral join."""


@by_identity
def kinds_in(rel: Rel) -> Kinds:
    """The types of a plan's nodes and of the parts of its expressions, those of subqueries included."""
    found: set[object] = set()
    for node in nodes(rel, all_inputs):
        found.add(type(node))
        if isinstance(node, Join) and node.lateral:
            found.add(LATERAL)
        for expr in scalars(node):
            if type(expr) in LEAVES:
                found.add(type(expr))
            else:
                found |= kinds_of(expr)
    return frozenset(found)
