"""The ordered tuple of rewrites between binding and lowering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from planner.expr.scalar import Column
from planner.logical.nodes import Project, Rel, schema
from planner.logical.traversal import Changed, own_columns
from planner.transform.apart import apart
from planner.transform.branches import together
from planner.transform.decorrelate.subqueries import decorrelate
from planner.transform.demand.recursion import demand
from planner.transform.dense_rank import by_groups
from planner.transform.fold import fold
from planner.transform.normal.plan import normalize, spell
from planner.transform.prune import prune
from planner.transform.pushdown import push_down
from planner.transform.temporal import separated

Transforms = tuple[Callable[[Rel], Rel], ...]
TRANSFORMS: Final[Transforms] = (together, apart, decorrelate, fold, push_down, fold, demand, fold, prune, fold)
MAINTAINED: Final[Transforms] = (decorrelate, spell, *TRANSFORMS[3:], by_groups)


def optimize(rel: Rel, demanding: bool = True, transforms: Transforms = TRANSFORMS) -> Rel:
    """Optimizes a bound plan: equal rows and schema, no subqueries or lateral joins, cheaper to compute.

    ``demanding``: recursions compute only what is demanded of them.
    """
    row = schema(rel)
    while isinstance(rel, Project) and rel.exprs == own_columns(schema(rel.input)):
        rel = rel.input  # ``SELECT *``, which each transform would walk
    folded: Changed = {}
    for transform in transforms:
        if transform is fold:
            rel = fold(rel, folded)
        elif demanding or transform is not demand:
            rel = transform(rel)
    if schema(rel) != row:
        # A rewrite may learn that a column is never NULL; the promised row layout must not change.
        rel = Project(rel, own_columns(row))
    return rel


def maintained(rel: Rel, demanding: bool = True) -> Rel:
    """``optimize`` for a view: in the normal form of plans that mean the same, so that views share subplans.

    The final projection restores the columns' order and is not part of that form.
    """
    row = schema(rel)
    form = normalize(optimize(rel, demanding, MAINTAINED))
    rel = separated(fold(prune(form.rel)))
    if schema(rel) == row and form.places == tuple(range(len(row))):
        return rel
    return Project(rel, tuple(Column(p, c.type, c.nullable) for p, c in zip(form.places, row, strict=True)))
