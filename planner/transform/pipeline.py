"""The visible, ordered tuple of rewrites between binding and lowering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from planner.expr.scalar import Column
from planner.logical.nodes import Project, Rel, schema
from planner.logical.traversal import own_columns
from planner.transform.decorrelate.subqueries import decorrelate
from planner.transform.demand.recursion import demand
from planner.transform.fold import fold
from planner.transform.normal.plan import normalize, spell
from planner.transform.prune import prune
from planner.transform.pushdown import push_down

Transforms = tuple[Callable[[Rel], Rel], ...]
TRANSFORMS: Final[Transforms] = (decorrelate, fold, push_down, fold, demand, fold, prune, fold)
MAINTAINED: Final[Transforms] = (decorrelate, spell, *TRANSFORMS[1:])


def optimize(rel: Rel, demanding: bool = True, transforms: Transforms = TRANSFORMS) -> Rel:
    """A bound plan, without subqueries and lateral joins, cheaper to compute and equal in its rows and schema.

    ``demanding``: recursions compute what is asked of them only.
    """
    row = schema(rel)
    for transform in transforms:
        if demanding or transform is not demand:
            rel = transform(rel)
    if schema(rel) != row:
        # a rewrite may find out that a column is never NULL; the rows' layout is what was promised
        rel = Project(rel, own_columns(row))
    return rel


def maintained(rel: Rel, demanding: bool = True) -> Rel:
    """``optimize`` for a view: in the one form of all plans that mean the same, whose parts others may have already.

    The last projection puts the columns in their own order and is no part of that form.
    """
    row = schema(rel)
    form = normalize(optimize(rel, demanding, MAINTAINED))
    rel = fold(prune(form.rel))
    if schema(rel) == row and form.places == tuple(range(len(row))):
        return rel
    return Project(rel, tuple(Column(p, c.type, c.nullable) for p, c in zip(form.places, row, strict=True)))
