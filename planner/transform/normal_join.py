"""Inner joins of the same inputs under the same conditions as one tree, however they were written.

Inputs are put in the order of their ranks; where several are the same, in the one of their orders that makes the
conditions come first. Columns that equalities make the same are a class, and a class is written as the equality of its
members with its first one. Then the joins are ordered as ever (``join_order``).

Rule: equal rows. A region has no condition that may raise: those see the rows that they saw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, permutations, product
from math import factorial, prod

from ivm.words import BOOL
from planner.logical import Filter, Join, JoinKind, Project, Rel, schema
from planner.memo import by_identity
from planner.raising import can_raise
from planner.scalar import Call, Column, Scalar
from planner.transform.form import Form, Ranks, filtered
from planner.transform.join_order import LARGEST, Region, column_equality, joined, sequence
from planner.transform.normal_scalar import Order, in_order, normal, order
from planner.traverse import conjuncts, renumber, settle, shift

MOST = 120
"""Orders of equal inputs that are tried."""


@dataclass(frozen=True, slots=True)
class Class:
    """Columns that are the same under ``function``, ascending."""

    function: str
    members: tuple[Column, ...]

    def equality(self, left: Column, right: Column) -> Scalar:
        """Two members are equal."""
        return Call(self.function, (left, right), BOOL, left.nullable or right.nullable)


Classes = tuple[Class, ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """Inputs side by side, conditions over all their columns, and where the columns of what was joined stand."""

    inputs: tuple[Rel, ...]
    predicates: tuple[Scalar, ...]
    places: tuple[int, ...]

    @property
    def width(self) -> int:
        """How many columns the inputs have."""
        return sum(len(schema(rel)) for rel in self.inputs)


def is_region(rel: Rel) -> bool:
    """Whether an inner join is one that may be reordered with those below it."""
    return isinstance(rel, Join) and rel.kind is JoinKind.INNER and not rel.lateral and not can_raise(rel.on)


def reaches_region(rel: Rel) -> bool:
    """Whether a plan is such a join, or conditions on one and a choice of its columns."""
    below = _through(rel)
    return is_region(rel) if below is None else reaches_region(below)


@by_identity
def _count(rel: Rel) -> int:
    if isinstance(rel, Join) and is_region(rel):
        return _count(rel.left) + _count(rel.right)
    below = _through(rel)
    return 1 if below is None else _count(below)


def _through(rel: Rel) -> Rel | None:
    """What is below a filter or a choice of columns that a region reaches through."""
    if isinstance(rel, Filter) and not can_raise(rel.predicate):
        return rel.input
    if isinstance(rel, Project):
        row = schema(rel.input)
        plain = all(isinstance(e, Column) and e.type == row[e.index].type for e in rel.exprs)
        return rel.input if plain else None
    return None


def region_form(rel: Rel, form: Callable[[Rel], Form], ranks: Ranks) -> Form:
    """The form of a plan that reaches a region, with all the inner joins below it; ``form`` gives its inputs'.

    Of inputs that are the same, one that shows columns differs from one that does not: so no column may stand in the
    plan that nothing reads.
    """
    found = _gather(rel, form, _count(rel) <= LARGEST)
    found = _settled(found)
    return _tree(*_sorted(found, ranks))


def _gather(rel: Rel, form: Callable[[Rel], Form], deep: bool) -> Joined:
    if isinstance(rel, Join) and is_region(rel):
        left, right = (_gather(r, form, deep) if deep else _alone(form(r)) for r in (rel.left, rel.right))
        by = left.width
        places = (*left.places, *(p + by for p in right.places))
        on = tuple(renumber(c, places.__getitem__) for c in conjuncts(rel.on))
        moved = tuple(shift(p, by) for p in right.predicates)
        return Joined((*left.inputs, *right.inputs), (*left.predicates, *moved, *on), places)
    below = _through(rel)
    if below is None or _count(below) == 1:
        return _alone(form(rel))
    inner = _gather(below, form, deep)
    if isinstance(rel, Filter):
        more = tuple(renumber(c, inner.places.__getitem__) for c in conjuncts(rel.predicate))
        return Joined(inner.inputs, (*inner.predicates, *more), inner.places)
    assert isinstance(rel, Project)
    return Joined(inner.inputs, inner.predicates,
                  tuple(inner.places[e.index] for e in rel.exprs if isinstance(e, Column)))  # fmt: skip


def _alone(form: Form) -> Joined:
    return Joined((form.rel,), (), form.places)


def _starts(inputs: tuple[Rel, ...]) -> list[int]:
    starts = [0]
    for rel in inputs:
        starts.append(starts[-1] + len(schema(rel)))
    return starts


def _owners(inputs: tuple[Rel, ...]) -> list[int]:
    return [i for i, rel in enumerate(inputs) for _ in schema(rel)]


def _settled(found: Joined) -> Joined:
    """The equality of columns of one class in one input goes into that; the class has one member of each then."""
    classes, others = _classes(found.predicates)
    owner, starts = _owners(found.inputs), _starts(found.inputs)
    own: list[list[Scalar]] = [[] for _ in found.inputs]
    kept: list[Scalar] = []
    for known in classes:
        firsts = []
        for i, some in groupby(known.members, lambda c: owner[c.index]):
            first, *rest = some
            firsts.append(first)
            own[i] += [shift(known.equality(first, c), -starts[i]) for c in rest]
        kept += [known.equality(firsts[0], c) for c in firsts[1:]]
    inputs = tuple(
        filtered(rel, tuple(normal(settle(p, schema(rel))) for p in more)) if more else rel
        for rel, more in zip(found.inputs, own, strict=True)
    )
    return Joined(inputs, (*kept, *others), found.places)


def _classes(predicates: tuple[Scalar, ...]) -> tuple[Classes, tuple[Scalar, ...]]:
    """The classes of columns that equalities make the same, and the other predicates."""
    parent: dict[int, int] = {}
    columns: dict[int, Column] = {}
    functions: dict[int, str] = {}
    others = []

    def root(i: int) -> int:
        while parent.setdefault(i, i) != i:
            i = parent[i]
        return i

    for predicate in predicates:
        pair = column_equality(predicate)
        if pair is None or not isinstance(predicate, Call):
            others.append(predicate)
            continue
        for column in pair:
            columns[column.index] = column
            functions[column.index] = predicate.function
        one, two = root(pair[0].index), root(pair[1].index)
        parent[max(one, two)] = min(one, two)
    members: dict[int, list[Column]] = {}
    for i in sorted(columns):
        members.setdefault(root(i), []).append(columns[i])
    return tuple(Class(functions[i], tuple(m)) for i, m in sorted(members.items())), tuple(others)


def _sorted(found: Joined, ranks: Ranks) -> list[Joined]:
    """The inputs in the order of their ranks; several where the same inputs may change places among each other."""
    by_rank = sorted(range(len(found.inputs)), key=lambda i: ranks.of(found.inputs[i]))
    groups = [tuple(g) for _, g in groupby(by_rank, lambda i: ranks.of(found.inputs[i]))]
    if all(len(g) == 1 for g in groups) or prod(factorial(len(g)) for g in groups) > MOST:
        return [_reordered(found, tuple(by_rank))]
    told = [(_told(new), new) for new in (_reordered(found, chosen) for chosen in _orders(groups))]
    least = min(key for key, _ in told)
    return [new for key, new in told if key == least]


def _orders(groups: list[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    for chosen in product(*(permutations(g) for g in groups)):
        yield tuple(i for g in chosen for i in g)


def _told(found: Joined) -> tuple[list[tuple[int, ...]], list[Order], list[int]]:
    classes, others = _classes(found.predicates)
    own = sorted(tuple(c.index for c in known.members) for known in classes)
    return own, [order(p) for p in others], sorted(found.places)


def _reordered(found: Joined, chosen: tuple[int, ...]) -> Joined:
    starts = _starts(found.inputs)
    inputs = tuple(found.inputs[i] for i in chosen)
    place: dict[int, int] = {}
    for i in chosen:
        for c in range(starts[i], starts[i + 1]):
            place[c] = len(place)
    row = tuple(c for rel in inputs for c in schema(rel))
    moved = tuple(normal(settle(renumber(p, place.__getitem__), row)) for p in found.predicates)
    return Joined(inputs, in_order(moved), tuple(place[p] for p in found.places))


def _tree(found: Joined, *alike: Joined) -> Form:
    """The joins in order. Any pair of a class may connect two inputs; written down are those with its first member."""
    classes, others = _classes(found.predicates)
    pairs = tuple(c.equality(a, b) for c in classes for k, a in enumerate(c.members) for b in c.members[k + 1 :])
    chosen = sequence(Region(found.inputs, (*pairs, *others)))
    owner = _owners(found.inputs)
    stars: list[Scalar] = []
    for known in classes:
        first, *rest = sorted(known.members, key=lambda c: chosen.index(owner[c.index]))
        stars += [known.equality(first, c) for c in rest]
    rel, place = joined(Region(found.inputs, (*stars, *others)), chosen)
    return Form(rel, found.places, tuple(other.places for other in alike)).through(
        lambda places: tuple(place[p] for p in places)
    )
