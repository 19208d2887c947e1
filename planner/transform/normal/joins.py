"""Normalizes trees of inner joins: the same inputs under the same conditions give the same tree.

Inputs are ordered by rank; equal inputs by whichever of their orders makes the conditions least. Columns that are
equated form a class, which is written as equalities of its members with the first one. The joins are then ordered as
usual (``planner.transform.join_order``).

Rule: equal rows. A region has no condition that can raise; those see the same rows as before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice, product

from planner.expr.scalar import Column, Scalar
from planner.logical.fallibility import can_raise
from planner.logical.nodes import Filter, Join, JoinKind, Project, Rel, schema
from planner.logical.traversal import conjuncts, renumber, shift
from planner.memo import by_identity
from planner.transform.join_order import LARGEST, Region, joined, sequence
from planner.transform.normal.form import MOST, Form, Ranks, alike
from planner.transform.normal.region import Joined, classes
from planner.transform.normal.scalar import Order, order
from planner.transform.normal.self_joins import orders


def is_region(rel: Rel) -> bool:
    """Whether an inner join may be reordered with those below it."""
    return isinstance(rel, Join) and rel.kind is JoinKind.INNER and not rel.lateral and not can_raise(rel.on)


def reaches_region(rel: Rel) -> bool:
    """Whether a plan is such a join, possibly under filters and projections of plain columns."""
    below = _through(rel)
    return is_region(rel) if below is None else reaches_region(below)


@by_identity
def _count(rel: Rel) -> int:
    if isinstance(rel, Join) and is_region(rel):
        return _count(rel.left) + _count(rel.right)
    below = _through(rel)
    return 1 if below is None else _count(below)


def _through(rel: Rel) -> Rel | None:
    """The input of a filter or projection of plain columns that a region extends through."""
    if isinstance(rel, Filter) and not can_raise(rel.predicate):
        return rel.input
    return rel.input if isinstance(rel, Project) and chooses(rel) else None


def chooses(rel: Project) -> bool:
    """Whether a projection only selects columns of its input."""
    row = schema(rel.input)
    return all(isinstance(e, Column) and e.type == row[e.index].type for e in rel.exprs)


def region_form(rel: Rel, form: Callable[[Rel], Form], ranks: Ranks) -> Form:
    """The form of a plan that reaches a region, with all inner joins below it; ``form`` normalizes its inputs.

    Of equal inputs, one that shows columns differs from one that shows none, so the plan must have no unused columns.
    """
    return _tree(*_sorted([way.settled() for way in _gather(rel, form, _count(rel) <= LARGEST)], ranks))


def _gather(rel: Rel, form: Callable[[Rel], Form], deep: bool) -> list[Joined]:
    """The inputs and conditions; several alternatives where an input's columns have several equivalent positions."""
    if isinstance(rel, Join) and is_region(rel):
        sides = (_gather(r, form, deep) if deep else _alone(form(r)) for r in (rel.left, rel.right))
        return [_beside(left, right, rel.on) for left, right in islice(product(*sides), MOST)]
    below = _through(rel)
    if below is None or _count(below) == 1:
        return _alone(form(rel))
    inner = _gather(below, form, deep)
    if isinstance(rel, Filter):
        return [replace(way, predicates=(*way.predicates, *_placed(rel.predicate, way.places))) for way in inner]
    assert isinstance(rel, Project)
    columns = tuple(e.index for e in rel.exprs if isinstance(e, Column))
    return [replace(way, places=tuple(way.places[c] for c in columns)) for way in inner]


def _alone(form: Form) -> list[Joined]:
    return [Joined((form.rel,), (), places) for places in form.every]


def _beside(left: Joined, right: Joined, on: Scalar) -> Joined:
    by = left.width
    places = (*left.places, *(p + by for p in right.places))
    moved = tuple(shift(p, by) for p in right.predicates)
    return Joined((*left.inputs, *right.inputs), (*left.predicates, *moved, *_placed(on, places)), places)


def _placed(predicate: Scalar, places: tuple[int, ...]) -> tuple[Scalar, ...]:
    return tuple(renumber(c, places.__getitem__) for c in conjuncts(predicate))


def _sorted(ways: list[Joined], ranks: Ranks) -> list[Joined]:
    """The inputs ordered by rank; several alternatives where equal inputs are interchangeable."""
    found = [way.reordered(chosen) for way in ways for chosen in orders(way, ranks)]
    if len(found) == 1:
        return found
    keyed = [(_sort_key(way, ranks), way) for way in found]
    least = min(key for key, _ in keyed)
    return [way for key, way in keyed if key == least]


def _sort_key(found: Joined, ranks: Ranks) -> Order:
    known, others = classes(found.predicates)
    own = sorted(tuple(c.index for c in same.members) for same in known)
    return [ranks.of(rel) for rel in found.inputs], own, [order(p) for p in others], sorted(found.places)


def _tree(found: Joined, *same: Joined) -> Form:
    """The tree of joins in order. Any pair of a class may connect two inputs; the first member's pairs are written."""
    known, others = classes(found.predicates)
    pairs = tuple(c.equality(a, b) for c in known for k, a in enumerate(c.members) for b in c.members[k + 1 :])
    chosen = sequence(Region(found.inputs, (*pairs, *others)))
    owner = found.owners
    stars: list[Scalar] = []
    for equal in known:
        first, *rest = sorted(equal.members, key=lambda c: chosen.index(owner[c.index]))
        stars += [equal.equality(first, c) for c in rest]
    rel, place = joined(Region(found.inputs, (*stars, *others)), chosen)
    return alike(rel, (tuple(place[p] for p in way.places) for way in (found, *same)))
