"""One form for plans that mean the same, so that equal subplans of all views are found to be equal.

What is gone then: the order of inner joins, of the sides of outer ones, of semijoins on one another, of the arms of
UNION, of columns, keys and aggregates; projections that only choose or order columns (but where whole rows count);
DISTINCT beside GROUP BY without aggregates; what ``normal_scalar`` says of expressions. A node has its columns in an
order of its own, and what reads it finds them by ``Form.places``.

Rule: equal rows and errors: what may raise sees the same rows as before. What depends on the order of columns keeps it:
ties of a TopK, the row that stands for equal ones of types whose equal values differ, an as-of join's right side.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import assert_never

from planner.logical import (
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
    TopK,
    Values,
    schema,
)  # fmt: skip
from planner.lower_sets import has_classes
from planner.memo import by_identity
from planner.raising import can_raise, rel_is_volatile
from planner.scalar import Aggregate, Literal
from planner.transform.form import Form, Ranks, closed, columns_in_order, exact, filtered, projected, whole
from planner.transform.normal_join import reaches_region, region_form
from planner.transform.normal_scalar import Order, in_order, normal, order, orderless
from planner.traverse import (
    aggregate_scalars,
    bottom_up,
    children,
    columns_of,
    conjunction,
    conjuncts,
    own_columns,
    renumber,
    scalars,
    settle,
    with_aggregate_scalars,
    with_children,
    with_scalars,
)  # fmt: skip

MOST_ARMS = 64
"""Of unions on one another; more stay as they are written, since CTEs of CTEs grow by powers of two."""


def spell(rel: Rel) -> Rel:
    """The plan with its expressions in normal form, so that the other rewrites see the same ones."""
    if rel_is_volatile(rel):
        return rel

    def change(node: Rel) -> Rel:
        old = scalars(node)
        new = tuple(map(normal, old))
        return node if all(a is b for a, b in zip(old, new, strict=True)) else with_scalars(node, new)

    return bottom_up(rel, change)


def normalize(rel: Rel) -> Form:
    """The plan in the one form of all that mean the same, without columns that it has not."""
    return whole(rel) if rel_is_volatile(rel) else closed(_Normal().form(rel))


@dataclass(slots=True)
class _Normal:
    """One walk over a plan; equal subplans of it become one object."""

    ranks: Ranks = field(default_factory=Ranks)
    _known: dict[int, tuple[Rel, Form]] = field(default_factory=dict)
    _around: int = 0

    def form(self, rel: Rel) -> Form:
        found = self._known.get(id(rel))
        if found is None:
            new = self._form(rel)
            assert len(new.places) == len(schema(rel)), (rel, new)
            found = self._known[id(rel)] = (rel, replace(new, rel=self.ranks.one(new.rel)))
        return found[1]

    def exact(self, rel: Rel) -> Rel:
        """The form with the plan's own columns, in their order."""
        return self.ranks.one(exact(self.form(rel), schema(rel)))

    def _form(self, rel: Rel) -> Form:
        match rel:
            case Get() | Reference() | Locked():
                return whole(rel)
            case Values():
                return whole(_values(rel))
            case Filter() | Project() | Join() if reaches_region(rel):
                return region_form(rel, self.form, self.ranks)
            case Filter():
                below = self.form(rel.input).chosen(conjuncts(rel.predicate))
                return replace(below, rel=filtered(below.rel, tuple(map(below.scalar, conjuncts(rel.predicate)))))
            case Project():
                return projected(self._read(rel), rel.exprs)
            case Join():
                return self._join(rel)
            case AsOf():
                return whole(with_children(rel, tuple(self.exact(c) for c in children(rel))))
            case Reduce():
                return self._reduce(rel)
            case Distinct():
                return self._distinct(rel)
            case TopK():
                return whole(self._topk(rel))
            case SetOperation():
                return self._set_operation(rel)
            case TableFunction():
                return self._table_function(rel)
            case Recursive():
                return self._recursive(rel)
            case LetRec():
                return self._letrec(rel)
            case _:
                assert_never(rel)

    def _read(self, rel: Project) -> Form:
        """A projection's input; where that is a region, without the columns that are not read, whose place is 0."""
        used = sorted(frozenset[int]().union(*map(columns_of, rel.exprs)))
        own = own_columns(schema(rel.input))
        if len(used) == len(own) or not reaches_region(rel.input):
            return self.form(rel.input)
        below = self.form(Project(rel.input, tuple(own[c] for c in used)))
        at = {c: i for i, c in enumerate(used)}
        return below.through(lambda places: tuple(places[at[c]] if c in at else 0 for c in range(len(own))))

    def _recursive(self, rel: Recursive) -> Form:
        base = self.exact(rel.base)
        (step,) = self._inside((rel.binding,), (rel.step,))
        return whole(with_children(rel, (base, step)))

    def _inside(self, bindings: tuple[int, ...], values: tuple[Rel, ...]) -> tuple[Rel, ...]:
        """Values that refer to bindings, which are known by how many there are around them."""
        self._around += len(bindings)
        self.ranks.labels |= {binding: self._around - i for i, binding in enumerate(bindings)}
        found = tuple(map(self.exact, values))
        self._around -= len(bindings)
        return found

    def _letrec(self, rel: LetRec) -> Form:
        names, values = tuple(b for b, _ in rel.bindings), tuple(value for _, value in rel.bindings)
        bindings = tuple(zip(names, self._inside(names, values), strict=True))
        body = self.form(rel.body)
        return Form(replace(rel, bindings=bindings, body=body.rel), body.places)

    def _join(self, rel: Join) -> Form:
        match rel.kind:
            case JoinKind.SEMI | JoinKind.ANTI:
                return self._semi(rel)
            case JoinKind.RIGHT:
                return self._turned(rel, JoinKind.LEFT)
            case JoinKind.INNER | JoinKind.FULL:
                left, right = self.form(rel.left), self.form(rel.right)
                if self.ranks.of(right.rel) < self.ranks.of(left.rel):
                    return self._turned(rel, rel.kind)
                return self._sides(rel, left, right)
            case JoinKind.LEFT:
                return self._sides(rel, self.form(rel.left), self.form(rel.right))
            case _:
                assert_never(rel.kind)

    def _turned(self, rel: Join, kind: JoinKind) -> Form:
        """The join with its sides changed round."""
        left, right = len(schema(rel.left)), len(schema(rel.right))
        on = renumber(rel.on, lambda i: i + right if i < left else i - left)
        found = self._sides(Join(kind, rel.right, rel.left, on), self.form(rel.right), self.form(rel.left))
        return found.through(lambda places: (*places[right:], *places[:right]))

    def _sides(self, rel: Join, left: Form, right: Form) -> Form:
        by, width = len(schema(left.rel)), len(schema(rel.left))
        left = left.chosen(tuple(c for c in own_columns(schema(rel.left)) if c.index in columns_of(rel.on)))
        places = (*left.places, *(p + by for p in right.places))
        row = (*schema(left.rel), *schema(right.rel))
        on = tuple(normal(settle(renumber(c, places.__getitem__), row)) for c in conjuncts(rel.on))
        new = Join(rel.kind, left.rel, right.rel, conjunction(in_order(on)))
        return left.through(lambda own: (*own, *places[width:]), new)

    def _semi(self, rel: Join) -> Form:
        """Semijoins and antijoins on one another in the order of what they ask for."""
        sides = self._sides(rel, self.form(rel.left), self.form(rel.right))
        found, width = sides.rel, len(schema(rel.left))
        assert isinstance(found, Join)
        right = found.right
        if isinstance(right, Distinct) and not has_classes(schema(right)):
            found = replace(found, right=right.input)
        chain, base = [found], found.left
        while isinstance(base, Join) and base.kind in (JoinKind.SEMI, JoinKind.ANTI) and not can_raise(base.on):
            chain.append(base)
            base = base.left
        if not can_raise(found.on):
            chain.sort(key=lambda j: (self.ranks.of(j.right), j.kind.value, order(j.on)))
        else:
            chain, base = [found], found.left
        out = base
        last = None
        for join in chain:
            told = (join.kind, self.ranks.of(join.right), order(join.on))
            if told != last:
                out = self.ranks.one(replace(join, left=out))
            last = told
        return sides.through(lambda places: places[:width], out)

    def _reduce(self, rel: Reduce) -> Form:
        below = self.form(rel.input).chosen(scalars(rel))
        keys = tuple(map(below.scalar, rel.keys))
        if keys and not rel.aggregates:
            chosen = closed(projected(below, rel.keys))
            if not has_classes(schema(chosen.rel)):
                return _distinct(chosen)
        aggregates = tuple(
            with_aggregate_scalars(a, tuple(map(below.scalar, aggregate_scalars(a)))) for a in rel.aggregates
        )
        own_keys = columns_in_order(keys)
        own = _aggregates_in_order(aggregates)
        places = (*(own_keys.index(k) for k in keys), *(len(own_keys) + own.index(a) for a in aggregates))
        return Form(Reduce(below.rel, own_keys, own), places)

    def _distinct(self, rel: Distinct) -> Form:
        row = schema(rel)
        if has_classes(row):
            return whole(Distinct(self.exact(rel.input)))
        return _distinct(closed(self.form(rel.input)))

    def _topk(self, rel: TopK) -> TopK:
        """Ties are broken by the columns' order, so that stays."""
        below = self.exact(rel.input)
        form = whole(below)
        keys = columns_in_order(tuple(map(form.scalar, rel.keys)))
        return replace(
            rel, input=below, keys=keys, order=tuple(replace(k, expr=form.scalar(k.expr)) for k in rel.order)
        )

    def _table_function(self, rel: TableFunction) -> Form:
        below = closed(self.form(rel.input))
        width = len(schema(below.rel))
        new = replace(rel, input=below.rel, args=tuple(map(below.scalar, rel.args)))
        return Form(new, (*below.places, *range(width, len(schema(new)))))

    def _set_operation(self, rel: SetOperation) -> Form:
        every = rel.all and rel.kind is SetKind.UNION
        if has_classes(schema(rel)) and not every:
            return whole(with_children(rel, tuple(self.exact(c) for c in children(rel))))
        if rel.kind is SetKind.UNION:
            united = self._union(rel)
            return united if rel.all else _distinct(united)
        arms = [self.form(rel.left), self.form(rel.right)]
        columns = self._columns(rel, arms)
        if rel.kind is SetKind.INTERSECT:
            arms.sort(key=lambda a: self._arm_rank(a, columns))
        left, right = (self._arm(a, rel, columns) for a in arms)
        return Form(replace(rel, left=left, right=right), _places(columns))

    def _union(self, rel: SetOperation) -> Form:
        """The arms of unions on one another, in order."""
        arms = self._arms(rel, rel.all)
        columns = self._columns(rel, arms)
        arms.sort(key=lambda a: self._arm_rank(a, columns))
        if not rel.all:
            arms = [next(same) for _, same in groupby(arms, lambda a: self._arm_rank(a, columns))]
        out = self._arm(arms[0], rel, columns)
        for arm in arms[1:]:
            out = self.ranks.one(SetOperation(SetKind.UNION, True, out, self._arm(arm, rel, columns)))
        return Form(out, _places(columns))

    def _arms(self, rel: Rel, every: bool) -> list[Form]:
        """``every``: each row counts; else duplicates of arms and in arms make no difference."""
        flat = isinstance(rel, SetOperation) and rel.kind is SetKind.UNION and (rel.all or not every)
        if isinstance(rel, SetOperation) and flat and _arms(rel) <= MOST_ARMS:
            return [*self._arms(rel.left, every), *self._arms(rel.right, every)]
        found = self.form(rel)
        if not every and isinstance(found.rel, Distinct):
            return [Form(found.rel.input, found.places)]
        return [found]

    def _arm_rank(self, arm: Form, columns: tuple[int, ...]) -> Order:
        return self.ranks.of(arm.rel), tuple(arm.places[c] for c in columns)

    def _columns(self, rel: SetOperation, arms: list[Form]) -> tuple[int, ...]:
        """The order of the columns: by what they are in the arms."""
        told = [(self.ranks.of(a.rel), a.places) for a in arms]
        return tuple(sorted(range(len(schema(rel))), key=lambda c: sorted((rank, p[c]) for rank, p in told)))

    def _arm(self, arm: Form, rel: SetOperation, columns: tuple[int, ...]) -> Rel:
        row = schema(rel)
        chosen = Form(arm.rel, tuple(arm.places[c] for c in columns))
        return self.ranks.one(exact(chosen, tuple(row[c] for c in columns)))


@by_identity
def _arms(rel: Rel) -> int:
    """How many arms unions on one another have."""
    if isinstance(rel, SetOperation) and rel.kind is SetKind.UNION:
        return _arms(rel.left) + _arms(rel.right)
    return 1


def _places(columns: tuple[int, ...]) -> tuple[int, ...]:
    at = {c: i for i, c in enumerate(columns)}
    return tuple(at[c] for c in range(len(columns)))


def _distinct(form: Form) -> Form:
    return form if isinstance(form.rel, Distinct) else replace(form, rel=Distinct(form.rel))


def _values(rel: Values) -> Values:
    rows = tuple(tuple(map(normal, row)) for row in rel.rows)
    if all(isinstance(e, Literal) for row in rows for e in row):
        rows = tuple(sorted(rows, key=lambda row: tuple(map(order, row))))
    return Values(rows, rel.schema)


def _aggregates_in_order(aggregates: tuple[Aggregate, ...]) -> tuple[Aggregate, ...]:
    def told(a: Aggregate) -> tuple[object, ...]:
        return a.function, a.distinct, len(a.args), tuple(map(order, aggregate_scalars(a))), repr(a)

    once = tuple(dict.fromkeys(aggregates))
    free = orderless(tuple(e for a in once for e in aggregate_scalars(a)))
    safe = [a for a in once if free or not any(map(can_raise, aggregate_scalars(a)))]
    return (*sorted(safe, key=told), *(a for a in once if a not in safe))
