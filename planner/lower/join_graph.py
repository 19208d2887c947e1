"""The join graph of many inputs: equalities as attributes, whether it is cyclic, and paths through it.

An *attribute* is a class of equal columns, at most one from each input. A path starts with one input's attributes bound
and adds the other inputs in stages: either one input is looked up by its bound attributes, or several are intersected,
if one and the same attribute is all that each still lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

from planner.expr.scalar import Column, Scalar
from planner.logical.fallibility import can_raise
from planner.logical.join_keys import comparable
from planner.logical.nodes import Filter, Join, JoinKind, Project, Rel, schema
from planner.logical.traversal import columns_of, conjuncts, has_subquery, renumber, shift
from planner.memo import by_identity


@dataclass(frozen=True, slots=True)
class Combination:
    """Inputs of an inner join, the conditions over all their columns, and the columns that the join shows."""

    inputs: tuple[Rel, ...]
    predicates: tuple[Scalar, ...]
    columns: tuple[int, ...]
    width: int
    """The number of columns of all inputs."""

    @property
    def starts(self) -> tuple[int, ...]:
        """Each input's first column."""
        widths = [len(schema(rel)) for rel in self.inputs]
        return tuple(accumulate(widths[:-1], initial=0))


@dataclass(frozen=True, slots=True)
class Attributes:
    """For each input, its attributes as expressions over its own columns; and the residual conditions."""

    of: tuple[dict[int, Scalar], ...]
    residual: tuple[Scalar, ...]

    @property
    def connected(self) -> bool:
        """Whether attributes connect all inputs."""
        reached = {0}
        bound = set(self.of[0])
        while more := {i for i, own in enumerate(self.of) if i not in reached and bound & set(own)}:
            reached |= more
            bound |= {a for i in more for a in self.of[i]}
        return len(reached) == len(self.of)

    @property
    def cyclic(self) -> bool:
        """Whether the join is cyclic by the GYO reduction (Graham; Yu and Özsoyoğlu).

        The reduction removes ears, inputs whose shared attributes another input has all; a cyclic join leaves a rest.
        """
        left = [set(own) for own in self.of]
        while len(left) > 1:
            for i, own in enumerate(left):
                others = left[:i] + left[i + 1 :]
                shared = own & set().union(*others)
                if any(shared <= other for other in others):
                    left = others
                    break
            else:
                return True
        return False


@dataclass(frozen=True, slots=True)
class Visit:
    """An input on a path: the bound attributes of its lookup, and the attribute on which a stage intersects it."""

    input: int
    key: tuple[int, ...]
    extension: int | None = None


Stages = tuple[tuple[Visit, ...], ...]


def may_be_cyclic(rel: Join) -> bool:
    """Whether the tree of inner joins under a join can be both connected and cyclic. A class of k equal columns takes
    k - 1 equalities: with fewer of them than inputs, inputs and attributes that are connected are a tree, of which GYO
    leaves nothing."""
    inputs, predicates = _counts(rel)
    return inputs > 2 and predicates >= inputs


@by_identity
def _counts(rel: Rel) -> tuple[int, int]:
    """The number of the inputs and of the predicates of ``_flatten``."""
    if isinstance(rel, Join) and rel.kind is JoinKind.INNER and not rel.lateral:
        (inputs, predicates), (more, others) = _counts(rel.left), _counts(rel.right)
        return inputs + more, predicates + others + len(conjuncts(rel.on))
    if isinstance(rel, Project) and is_join(rel.input) and all(isinstance(e, Column) for e in rel.exprs):
        return _counts(rel.input)
    if isinstance(rel, Filter) and is_join(rel.input):
        parts = conjuncts(rel.predicate)
        if not any(can_raise(p) or has_subquery(p) for p in parts):
            inputs, predicates = _counts(rel.input)
            return inputs, predicates + len(parts)
    return 1, 0


def combination(rel: Join) -> Combination | None:
    """The tree of inner joins under a join, flattened; None if it has fewer than three inputs."""
    found = _flatten(rel)
    return found if len(found.inputs) > 2 else None


@by_identity
def _flatten(rel: Rel) -> Combination:
    """Once for each join of a tree, all of which are asked about."""
    if isinstance(rel, Join) and rel.kind is JoinKind.INNER and not rel.lateral:
        left, right = _flatten(rel.left), _flatten(rel.right)
        by = left.width
        columns = (*left.columns, *(c + by for c in right.columns))
        on = tuple(renumber(p, columns.__getitem__) for p in conjuncts(rel.on))
        predicates = (*left.predicates, *(shift(p, by) for p in right.predicates), *on)
        return Combination((*left.inputs, *right.inputs), predicates, columns, by + right.width)
    if isinstance(rel, Project) and is_join(rel.input) and all(isinstance(e, Column) for e in rel.exprs):
        inner = _flatten(rel.input)
        shown = tuple(inner.columns[e.index] for e in rel.exprs if isinstance(e, Column))
        return Combination(inner.inputs, inner.predicates, shown, inner.width)
    if isinstance(rel, Filter) and is_join(rel.input):
        parts = conjuncts(rel.predicate)
        if not any(can_raise(p) or has_subquery(p) for p in parts):
            inner = _flatten(rel.input)
            added = tuple(renumber(p, inner.columns.__getitem__) for p in parts)
            return Combination(inner.inputs, (*inner.predicates, *added), inner.columns, inner.width)
    width = len(schema(rel))
    return Combination((rel,), (), tuple(range(width)), width)


def is_join(rel: Rel) -> bool:
    """Whether there is an inner join under filters and projections."""
    while isinstance(rel, Filter | Project):
        rel = rel.input
    return isinstance(rel, Join) and rel.kind is JoinKind.INNER and not rel.lateral


InputExpr = tuple[int, Scalar]
"""An input, and an expression over its own columns."""


def attributes(joined: Combination) -> Attributes:
    """The equivalence classes of the equalities between inputs."""
    starts = joined.starts
    owner = [i for i, rel in enumerate(joined.inputs) for _ in schema(rel)]
    members: dict[InputExpr, list[InputExpr]] = {}
    residual: list[Scalar] = []
    for predicate in dict.fromkeys(joined.predicates):
        pair = _equality(predicate, owner, starts)
        if pair is None or not _unite(members, *pair):
            residual.append(predicate)
    classes: list[list[InputExpr]] = []
    for found in members.values():
        if not any(found is known for known in classes):
            classes.append(found)
    of: tuple[dict[int, Scalar], ...] = tuple({} for _ in joined.inputs)
    for number, found in enumerate(classes):
        for i, expr in found:
            of[i][number] = expr
    return Attributes(of, tuple(residual))


def _equality(predicate: Scalar, owner: Sequence[int], starts: Sequence[int]) -> tuple[InputExpr, InputExpr] | None:
    """The two sides of an equality between two different inputs; None: the predicate is none."""
    found = None if has_subquery(predicate) else comparable(predicate)
    if found is None or found[2]:
        return None
    sides = []
    for expr in found[:2]:
        inputs = {owner[c] for c in columns_of(expr)}
        if len(inputs) != 1 or can_raise(expr):
            return None
        (i,) = inputs
        sides.append((i, shift(expr, -starts[i])))
    return (sides[0], sides[1]) if sides[0][0] != sides[1][0] else None


def _unite(members: dict[InputExpr, list[InputExpr]], one: InputExpr, two: InputExpr) -> bool:
    """Merges the classes of two items, unless an input would then have two expressions in one class; whether it did."""
    a, b = members.get(one, [one]), members.get(two, [two])
    if a is b:
        return True
    if {i for i, _ in a} & {i for i, _ in b}:
        return False
    united = a + b
    for item in united:
        members[item] = united
    return True


def stages(start: int, of: Sequence[Collection[int]], meet: bool, rank: Callable[[int, frozenset[int]], int]) -> Stages:
    """The path of an input's updates.

    ``meet``: inputs that lack only the same attribute are visited together. ``rank(input, attributes)``: the cost of a
    lookup of an input by these attributes.
    """
    bound = set(of[start])
    left = [i for i in range(len(of)) if i != start]
    found: list[tuple[Visit, ...]] = []
    while left:
        stage = _meeting(left, of, bound) if meet else None
        if stage is None:
            i = min(left, key=lambda i: (_distance(of[i], bound), rank(i, frozenset(of[i]) & bound), i))
            stage = (Visit(i, tuple(a for a in of[i] if a in bound)),)
        found.append(stage)
        for visit in stage:
            bound |= set(of[visit.input])
            left.remove(visit.input)
    return tuple(found)


def _distance(own: Collection[int], bound: set[int]) -> tuple[int, int]:
    """Sort key: fully bound inputs, then partly bound ones, then others; those with most bound attributes first."""
    known = sum(a in bound for a in own)
    return (0 if known == len(own) else 1 if known else 2), -known


def _meeting(left: Sequence[int], of: Sequence[Collection[int]], bound: set[int]) -> tuple[Visit, ...] | None:
    """The inputs that lack only one and the same attribute, for the attribute that most inputs lack."""
    if any(set(of[i]) <= bound for i in left):
        return None
    lacking: dict[int, list[int]] = {}
    for i in left:
        missing = set(of[i]) - bound
        if len(missing) == 1 and len(of[i]) > 1:
            lacking.setdefault(missing.pop(), []).append(i)
    if not lacking:
        return None
    extension = max(lacking, key=lambda a: (len(lacking[a]), -a))
    inputs = lacking[extension]
    return tuple(
        Visit(i, tuple(a for a in of[i] if a in bound), extension if len(inputs) > 1 else None) for i in inputs
    )
