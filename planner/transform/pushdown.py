"""Predicate pushdown: moves conditions to where their columns come from, and orders inner joins on the way.

Rule: equal rows, and no expression that can raise sees a row that it did not see before: such conditions stay where
they are, except for equalities between the two sides of a join, which become its keys (as in Postgres). LEFT, RIGHT and
FULL joins are strengthened where a condition above rejects the NULLs that they add.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from planner.expr.functions.boolean import IS_FALSE, IS_NOT_NULL, IS_TRUE
from planner.expr.functions.library import called_function, is_equality
from planner.expr.scalar import And, Call, Column, Or, Scalar
from planner.logical.apart import sets_apart
from planner.logical.fallibility import can_raise
from planner.logical.join_keys import has_classes
from planner.logical.nodes import (
    AsOf,
    Distinct,
    Filter,
    Get,
    Join,
    JoinKind,
    LetRec,
    Locked,
    Project,
    Recursive,
    Reduce,
    Reference,
    Rel,
    SetKind,
    SetOperation,
    TableFunction,
    TemporalFilter,
    TopK,
    Values,
    schema,
)  # fmt: skip
from planner.logical.traversal import (
    children,
    columns_of,
    conjunction,
    conjuncts,
    keeps_types,
    renumber,
    shift,
    substitute,
    with_children,
)  # fmt: skip
from planner.transform.join_order import Region, ordered
from planner.transform.numbering import limited

Predicates = tuple[Scalar, ...]


def push_down(rel: Rel) -> Rel:
    """The plan with its conditions pushed down as far as possible."""
    return _Push().push(rel, ())


class _Push:
    def __init__(self) -> None:
        self._known: dict[tuple[int, Predicates], tuple[Rel, Rel]] = {}

    def push(self, rel: Rel, predicates: Predicates) -> Rel:
        """``rel`` under the predicates. A plan used twice under the same predicates stays one object."""
        key = (id(rel), predicates)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (rel, self._push(rel, predicates))
        return found[1]

    def _push(self, rel: Rel, predicates: Predicates) -> Rel:
        match rel:
            case Get() | Reference() | Values():
                return _filtered(rel, predicates)
            case Filter():
                return self._filter(rel, predicates)
            case Project():
                return self._project(rel, predicates)
            case Join():
                return self._join(rel, predicates)
            case Locked():  # what is kept follows the definition, whatever is read of it
                new = replace(rel, left=self.push(rel.left, ()), right=self.push(rel.right, ()))
                return _filtered(new, predicates)
            case AsOf():
                return self._asof(rel, predicates)
            case Reduce():
                return self._reduce(rel, predicates)
            case Distinct() if not has_classes(schema(rel)):
                return Distinct(self.push(rel.input, predicates))
            case SetOperation() if not has_classes(schema(rel)) or (rel.all and rel.kind is SetKind.UNION):
                return with_children(rel, (self.push(rel.left, predicates), self.push(rel.right, predicates)))
            case TableFunction() if sets_apart(rel):
                return _filtered(replace(rel, input=self.push(rel.input, ())), predicates)
            case TableFunction():
                count = len(schema(rel.input))
                below, above = _split(predicates, lambda p: max(columns_of(p), default=0) < count)
                return _filtered(replace(rel, input=self.push(rel.input, below)), above)
            case LetRec():
                bindings = tuple((b, self.push(value, ())) for b, value in rel.bindings)
                return replace(rel, bindings=bindings, body=self.push(rel.body, predicates))
            case TemporalFilter():
                return _filtered(replace(rel, input=self.push(rel.input, ())), predicates)
            case TopK() | Recursive() | Distinct() | SetOperation() if predicates:
                return self._above(rel, predicates)
            case TopK() | Recursive() | Distinct() | SetOperation():
                return with_children(rel, tuple(self.push(c, ()) for c in children(rel)))
            case _:
                assert_never(rel)

    def _above(self, rel: TopK | Recursive | Distinct | SetOperation, predicates: Predicates) -> Rel:
        """Keeps predicates above, except those that keep or drop whole groups of a TopK.

        A predicate that bounds a row's number also becomes the TopK's limit.
        """
        if not isinstance(rel, TopK):
            return _filtered(self.push(rel, ()), predicates)
        keys = {k.index for k in rel.keys if isinstance(k, Column) and not k.type.has_equality_class}
        below, above = _split(predicates, lambda p: bool(columns_of(p)) and columns_of(p) <= keys)
        rel = limited(rel, above)
        if not below:
            return _filtered(self.push(rel, ()), predicates)
        return _filtered(replace(rel, input=self.push(rel.input, below)), above)

    def _filter(self, rel: Filter, predicates: Predicates) -> Rel:
        joined = isinstance(rel.input, Join)

        def goes_down(predicate: Scalar) -> bool:
            return not can_raise(predicate) or (joined and _may_be_key(predicate))

        down, stay = _split(conjuncts(rel.predicate), goes_down)
        return _filtered(self.push(rel.input, (*down, *predicates)), stay)

    def _project(self, rel: Project, predicates: Predicates) -> Rel:
        down: list[Scalar] = []
        stay: list[Scalar] = []
        for predicate in predicates:
            moved = substitute(predicate, rel.exprs)
            if can_raise(moved) or not keeps_types(rel.exprs, (predicate,)):
                stay.append(predicate)
            else:
                down.append(moved)
        return _filtered(with_children(rel, (self.push(rel.input, tuple(down)),)), tuple(stay))

    def _reduce(self, rel: Reduce, predicates: Predicates) -> Rel:
        def on_keys(predicate: Scalar) -> bool:
            used = columns_of(predicate)
            known = all(i < len(rel.keys) and not rel.keys[i].type.has_equality_class for i in used)
            return bool(used) and known and not can_raise(substitute(predicate, _padded(rel)))

        below, above = _split(predicates, on_keys)
        moved = tuple(substitute(p, _padded(rel)) for p in below)
        return _filtered(with_children(rel, (self.push(rel.input, moved),)), above)

    def _join(self, rel: Join, predicates: Predicates) -> Rel:
        kind = _strengthened(rel, predicates)
        if kind is not rel.kind:
            rel = replace(rel, kind=kind)
        match rel.kind:
            case JoinKind.INNER:
                return self._inner(rel, predicates)
            case JoinKind.SEMI | JoinKind.ANTI:
                return self._semi(rel, predicates)
            case JoinKind.LEFT | JoinKind.RIGHT | JoinKind.FULL:
                return self._outer(rel, predicates)
            case _:
                assert_never(rel.kind)

    def _asof(self, rel: AsOf, predicates: Predicates) -> Rel:
        """Pushes conditions on the left side there. One on its keys alone holds for the matching right rows too."""
        row, other = schema(rel.left), schema(rel.right)
        count = len(row)
        if rel.outer and any(rejects_null(p, lambda i: i >= count) for p in predicates):
            rel = replace(rel, outer=False)
        left, above = _split(predicates, lambda p: _within(p, 0, count) and not can_raise(p))
        partners = {a: b for a, b, _ in rel.keys if row[a].type == other[b].type and not row[a].type.has_equality_class}
        right = tuple(renumber(p, partners.__getitem__) for p in left if columns_of(p) <= partners.keys())
        return _filtered(replace(rel, left=self.push(rel.left, left), right=self.push(rel.right, right)), above)

    def _inner(self, rel: Join, predicates: Predicates) -> Rel:
        region = Region.of(rel, predicates)
        owner = region.owner
        mine: list[list[Scalar]] = [[] for _ in region.inputs]
        rest: list[Scalar] = []
        for predicate in region.predicates:
            read = {owner[i] for i in columns_of(predicate)}
            alone = len(read) == 1 and not can_raise(predicate)
            (mine[read.pop()] if alone else rest).append(predicate)
        inputs = [
            self.push(part, tuple([shift(p, -base) for p in own]))
            for part, own, base in zip(region.inputs, mine, region.starts, strict=True)
        ]
        return ordered(Region(tuple(inputs), tuple(rest)))

    def _semi(self, rel: Join, predicates: Predicates) -> Rel:
        count = len(schema(rel.left))
        parts = conjuncts(rel.on)
        right, rest = _split(parts, lambda p: _within(p, count, None) and not can_raise(p))
        left: Predicates = ()
        if rel.kind is JoinKind.SEMI:
            left, rest = _split(rest, lambda p: _within(p, 0, count) and not can_raise(p))
        return replace(
            rel,
            left=self.push(rel.left, (*left, *predicates)),
            right=self.push(rel.right, tuple(shift(p, -count) for p in right)),
            on=conjunction(rest),
        )

    def _outer(self, rel: Join, predicates: Predicates) -> Rel:
        """Pushes a condition on the preserved side there, and one of ON to the other side."""
        count = len(schema(rel.left))
        parts = conjuncts(rel.on)
        left: Predicates = ()
        right: Predicates = ()
        above = predicates
        if rel.kind is JoinKind.LEFT:
            left, above = _split(above, lambda p: _within(p, 0, count))
            right, parts = _split(parts, lambda p: _within(p, count, None) and not can_raise(p))
        elif rel.kind is JoinKind.RIGHT:
            right, above = _split(above, lambda p: _within(p, count, None))
            left, parts = _split(parts, lambda p: _within(p, 0, count) and not can_raise(p))
        new = replace(
            rel,
            left=self.push(rel.left, left),
            right=self.push(rel.right, tuple(shift(p, -count) for p in right)),
            on=conjunction(parts),
        )
        return _filtered(new, above)


def _filtered(rel: Rel, predicates: Predicates) -> Rel:
    if not predicates:
        return rel
    if isinstance(rel, Filter):
        return Filter(rel.input, conjunction((*conjuncts(rel.predicate), *predicates)))
    return Filter(rel, conjunction(predicates))


def _split(predicates: Predicates, chosen: Callable[[Scalar], bool]) -> tuple[Predicates, Predicates]:
    return tuple(p for p in predicates if chosen(p)), tuple(p for p in predicates if not chosen(p))


def _within(predicate: Scalar, low: int, high: int | None) -> bool:
    used = columns_of(predicate)
    return bool(used) and min(used) >= low and (high is None or max(used) < high)


def _padded(rel: Reduce) -> tuple[Scalar, ...]:
    """The keys, and placeholders for the aggregates, which no pushed condition reads."""
    return (*rel.keys, *(Column(-1, a.type) for a in rel.aggregates))


def _may_be_key(predicate: Scalar) -> bool:
    return is_equality(predicate) and all(columns_of(a) for a in predicate.args)


def _strengthened(rel: Join, predicates: Predicates) -> JoinKind:
    """The join kind, given that conditions above may reject the rows that an outer join adds."""
    count = len(schema(rel.left))
    left = any(rejects_null(p, lambda i: i < count) for p in predicates)
    right = any(rejects_null(p, lambda i: i >= count) for p in predicates)
    match rel.kind:
        case JoinKind.LEFT:
            return JoinKind.INNER if right else rel.kind
        case JoinKind.RIGHT:
            return JoinKind.INNER if left else rel.kind
        case JoinKind.FULL:
            if left and right:
                return JoinKind.INNER
            return JoinKind.LEFT if left else JoinKind.RIGHT if right else rel.kind
        case JoinKind.INNER | JoinKind.SEMI | JoinKind.ANTI:
            return rel.kind
        case _:
            assert_never(rel.kind)


def rejects_null(predicate: Scalar, chosen: Callable[[int], bool]) -> bool:
    """Whether the predicate is not true when all chosen columns are NULL."""
    match predicate:
        case And():
            return any(rejects_null(a, chosen) for a in predicate.args)
        case Or():
            return all(rejects_null(a, chosen) for a in predicate.args)
        case Call() if predicate.function in (IS_NOT_NULL, IS_TRUE, IS_FALSE):
            return _null_if_null(predicate.args[0], chosen)
        case _:
            return _null_if_null(predicate, chosen)


def _null_if_null(expr: Scalar, chosen: Callable[[int], bool]) -> bool:
    if isinstance(expr, Column):
        return chosen(expr.index)
    function = called_function(expr)
    if not isinstance(expr, Call) or function is None or not function.strict:
        return False
    return any(_null_if_null(a, chosen) for a in expr.args)
