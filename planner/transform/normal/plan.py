"""One normal form for plans that mean the same, so that common subexpressions of all views are found.

It removes differences in: the order of inner joins, of the sides of outer joins, of stacked semijoins, of the arms of
UNION, of columns, keys and aggregates; projections that only select or reorder columns (except where whole rows count);
DISTINCT versus GROUP BY without aggregates; and what ``planner.transform.normal.scalar`` normalizes in expressions. A
node has its columns in an order of its own; its reader finds them by ``Form.places``.

Rule: equal rows and errors: an expression that can raise sees the same rows as before. Where the order of columns
matters it is kept: ties of a TopK, the representative of equal values that differ, an as-of join's right side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice, permutations, product
from typing import assert_never

from planner.expr.literal_rows import LiteralRows
from planner.expr.scalar import Aggregate, Column, Literal
from planner.logical.aggregates import aggregate_scalars, with_aggregate_scalars
from planner.logical.fallibility import can_raise, rel_is_volatile
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
    bottom_up,
    children,
    columns_of,
    conjunction,
    conjuncts,
    own_columns,
    renumber,
    scalars,
    settle,
    with_children,
    with_scalars,
)  # fmt: skip
from planner.memo import by_identity
from planner.transform.normal.form import (
    MOST,
    Form,
    Ranks,
    closed,
    columns_in_order,
    exact,
    filtered,
    projected,
    together,
    whole,
)  # fmt: skip
from planner.transform.normal.joins import chooses, reaches_region, region_form
from planner.transform.normal.scalar import Order, in_order, normal, order, orderless

MOST_ARMS = 64
"""The most arms of nested unions. Larger ones stay as written, since nested CTEs grow exponentially."""


def spell(rel: Rel) -> Rel:
    """The plan with its expressions in normal form, so that the other rewrites see equal ones."""
    if rel_is_volatile(rel):
        return rel

    def change(node: Rel) -> Rel:
        old = scalars(node)
        new = tuple(map(normal, old))
        return node if all(a is b for a, b in zip(old, new, strict=True)) else with_scalars(node, new)

    return bottom_up(rel, change)


def normalize(rel: Rel) -> Form:
    """The plan's normal form, without columns that the plan lacks. A volatile plan is left as it is."""
    return whole(rel) if rel_is_volatile(rel) else closed(_Normal().form(rel))


@dataclass(slots=True)
class _Normal:
    """One walk over a plan. Equal subplans become one object."""

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
        """The normalized plan with its own columns, in their order."""
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
                parts = conjuncts(rel.predicate)
                return self.ranks.least(
                    [replace(b, rel=filtered(b.rel, tuple(map(b.scalar, parts)))) for b in self.form(rel.input).each()]
                )
            case Project():
                return projected(self._read(rel), rel.exprs, self.ranks)
            case Join():
                return self._join(rel)
            case AsOf() | TemporalFilter():
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
        """A projection's input. If it is a region, columns that are not read are dropped; their position is 0."""
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
        """Normalizes values that read bindings. A binding is labelled by the number of bindings around it."""
        self._around += len(bindings)
        self.ranks.labels |= {binding: self._around - i for i, binding in enumerate(bindings)}
        found = tuple(map(self.exact, values))
        self._around -= len(bindings)
        return found

    def _letrec(self, rel: LetRec) -> Form:
        names, values = tuple(b for b, _ in rel.bindings), tuple(value for _, value in rel.bindings)
        bindings = tuple(zip(names, self._inside(names, values), strict=True))
        body = self.form(rel.body)
        return replace(body, rel=replace(rel, bindings=bindings, body=body.rel))

    def _join(self, rel: Join) -> Form:
        match rel.kind:
            case JoinKind.SEMI | JoinKind.ANTI:
                return self._semi(rel)
            case JoinKind.RIGHT:
                return self._turned(rel, JoinKind.LEFT)
            case JoinKind.INNER | JoinKind.FULL:
                left, right = (self.ranks.of(self.form(r).rel) for r in (rel.left, rel.right))
                if left == right:
                    return self.ranks.least((self._sides(rel), self._turned(rel, rel.kind)))
                return self._sides(rel) if left < right else self._turned(rel, rel.kind)
            case JoinKind.LEFT:
                return self._sides(rel)
            case _:
                assert_never(rel.kind)

    def _turned(self, rel: Join, kind: JoinKind) -> Form:
        """The join with its sides swapped."""
        left, right = len(schema(rel.left)), len(schema(rel.right))
        on = renumber(rel.on, lambda i: i + right if i < left else i - left)
        found = self._sides(Join(kind, rel.right, rel.left, on))
        return found.through(lambda places: (*places[right:], *places[:right]))

    def _sides(self, rel: Join) -> Form:
        sides = together((self.form(rel.left), self.form(rel.right)))
        return self.ranks.least([_joined(rel, left, right) for left, right in sides])

    def _semi(self, rel: Join) -> Form:
        """Orders stacked semijoins and antijoins by their right sides."""
        alone = rel.left, (rel,), tuple(range(len(schema(rel))))
        base, asked, places = alone if can_raise(rel.on) else _asked(rel)
        below = self.form(base)
        found = self.ranks.least([Form(self._chain(way, asked), way.places) for way in below.each()])
        return found.through(lambda own: tuple(own[p] for p in places))

    def _chain(self, base: Form, asked: tuple[Join, ...]) -> Rel:
        by_key = {}
        for join in asked:
            ways = [_joined(join, base, right) for right in self.form(join.right).each()]
            semi = self.ranks.least([_unrepeated(way) for way in ways]).rel
            assert isinstance(semi, Join)
            by_key[(self.ranks.of(semi.right), semi.kind.value, order(semi.on))] = semi
        out = base.rel
        for key in sorted(by_key):
            out = self.ranks.one(replace(by_key[key], left=out))
        return out

    def _reduce(self, rel: Reduce) -> Form:
        below = self.form(rel.input)
        if rel.keys and not rel.aggregates:
            chosen = closed(projected(below, rel.keys, self.ranks))
            if not has_classes(schema(chosen.rel)):
                return _distinct(chosen)
        return self.ranks.least([_reduced(rel, way) for way in below.each()])

    def _distinct(self, rel: Distinct) -> Form:
        row = schema(rel)
        if has_classes(row):
            return whole(Distinct(self.exact(rel.input)))
        return _distinct(closed(self.form(rel.input)))

    def _topk(self, rel: TopK) -> TopK:
        """Ties break by the order of the columns, so the input keeps it."""
        below = self.exact(rel.input)
        form = whole(below)
        keys = columns_in_order(tuple(map(form.scalar, rel.keys)))
        order = tuple(replace(k, expr=form.scalar(k.expr)) for k in rel.order)
        framed = tuple(f.with_scalars(tuple(map(form.scalar, f.scalars))) for f in rel.framed)
        return replace(rel, input=below, keys=keys, order=order, framed=framed)

    def _table_function(self, rel: TableFunction) -> Form:
        below = closed(self.form(rel.input))
        width = len(schema(below.rel))
        more = range(width, width + len(schema(rel)) - len(schema(rel.input)))
        return self.ranks.least([
            Form(replace(rel, input=way.rel, args=tuple(map(way.scalar, rel.args))), (*way.places, *more))
            for way in below.each()
        ])  # fmt: skip

    def _set_operation(self, rel: SetOperation) -> Form:
        every = rel.all and rel.kind is SetKind.UNION
        if has_classes(schema(rel)) and not every:
            return whole(with_children(rel, tuple(self.exact(c) for c in children(rel))))
        if rel.kind is not SetKind.UNION:
            return self._of_arms(rel, (self.form(rel.left), self.form(rel.right)))
        united = self._of_arms(rel, self._arms(rel, rel.all))
        return united if rel.all else _distinct(united)

    def _of_arms(self, rel: SetOperation, arms: Sequence[Form]) -> Form:
        found = [(way, columns) for way in together(arms) for columns in self._columns(rel, way)]
        return self.ranks.least([Form(self._in_order(rel, *one), _places(one[1])) for one in found])

    def _in_order(self, rel: SetOperation, arms: Sequence[Form], columns: tuple[int, ...]) -> Rel:
        if rel.kind is not SetKind.EXCEPT:
            arms = sorted(arms, key=lambda a: self._arm_rank(a, columns))
        if rel.kind is SetKind.UNION and not rel.all:
            arms = [next(same) for _, same in groupby(arms, lambda a: self._arm_rank(a, columns))]
        out, *rest = (self._arm(arm, rel, columns) for arm in arms)
        for arm in rest:
            every = rel.all or rel.kind is SetKind.UNION
            out = self.ranks.one(SetOperation(rel.kind, every, out, arm))
        return out

    def _arms(self, rel: Rel, every: bool) -> list[Form]:
        """The arms of nested unions. ``every``: multiplicities count; otherwise duplicate rows are irrelevant."""
        flat = isinstance(rel, SetOperation) and rel.kind is SetKind.UNION and (rel.all or not every)
        if isinstance(rel, SetOperation) and flat and _arms(rel) <= MOST_ARMS:
            return [*self._arms(rel.left, every), *self._arms(rel.right, every)]
        found = self.form(rel)
        if not every and isinstance(found.rel, Distinct):
            return [Form(found.rel.input, found.places)]
        return [found]

    def _arm_rank(self, arm: Form, columns: tuple[int, ...]) -> Order:
        return self.ranks.of(arm.rel), tuple(arm.places[c] for c in columns)

    def _columns(self, rel: SetOperation, arms: Sequence[Form]) -> list[tuple[int, ...]]:
        """The order of the columns, by their positions in the arms; several orders where that leaves ties."""
        ranked = [(self.ranks.of(a.rel), a.places) for a in arms]
        key = {c: sorted((rank, p[c]) for rank, p in ranked) for c in range(len(schema(rel)))}
        groups = [tuple(g) for _, g in groupby(sorted(key, key=key.__getitem__), key.__getitem__)]
        same = [len({tuple(p[c] for _, p in ranked) for c in g}) == 1 for g in groups]
        ways = product(*([g] if s else permutations(g) for g, s in zip(groups, same, strict=True)))
        return [tuple(c for g in way for c in g) for way in islice(ways, MOST)]

    def _arm(self, arm: Form, rel: SetOperation, columns: tuple[int, ...]) -> Rel:
        row = schema(rel)
        chosen = Form(arm.rel, tuple(arm.places[c] for c in columns))
        return self.ranks.one(exact(chosen, tuple(row[c] for c in columns)))


@by_identity
def _arms(rel: Rel) -> int:
    """The number of arms of nested unions."""
    if isinstance(rel, SetOperation) and rel.kind is SetKind.UNION:
        return _arms(rel.left) + _arms(rel.right)
    return 1


def _asked(rel: Rel) -> tuple[Rel, tuple[Join, ...], tuple[int, ...]]:
    """Unstacks semijoins and antijoins: (base, the joins over the base's columns, the base's columns that are shown).

    A join whose condition can raise stays apart, because it sees only the rows that the others let through.
    """
    own = tuple(range(len(schema(rel))))
    if isinstance(rel, Join) and rel.kind in (JoinKind.SEMI, JoinKind.ANTI) and not can_raise(rel.on):
        base, asked, places = _asked(rel.left)
        by = len(schema(base))
        on = renumber(rel.on, lambda i: places[i] if i < len(own) else i - len(own) + by)
        return base, (*asked, replace(rel, left=base, on=on)), places
    if isinstance(rel, Project) and chooses(rel):
        base, asked, places = _asked(rel.input)
        if asked:
            return base, asked, tuple(places[e.index] for e in rel.exprs if isinstance(e, Column))
    return rel, (), own


def _joined(rel: Join, left: Form, right: Form) -> Form:
    by = len(schema(left.rel))
    places = (*left.places, *(p + by for p in right.places))
    row = (*schema(left.rel), *schema(right.rel))
    on = tuple(normal(settle(renumber(c, places.__getitem__), row)) for c in conjuncts(rel.on))
    return Form(Join(rel.kind, left.rel, right.rel, conjunction(in_order(on))), places)


def _unrepeated(semi: Form) -> Form:
    """Drops a DISTINCT on a semijoin's right side, where multiplicities are irrelevant."""
    join = semi.rel
    if isinstance(join, Join) and isinstance(join.right, Distinct) and not has_classes(schema(join.right)):
        return replace(semi, rel=replace(join, right=join.right.input))
    return semi


def _reduced(rel: Reduce, below: Form) -> Form:
    keys = tuple(map(below.scalar, rel.keys))
    aggregates = tuple(
        with_aggregate_scalars(a, tuple(map(below.scalar, aggregate_scalars(a)))) for a in rel.aggregates
    )
    own_keys = columns_in_order(keys)
    own = _aggregates_in_order(aggregates)
    places = (*(own_keys.index(k) for k in keys), *(len(own_keys) + own.index(a) for a in aggregates))
    return Form(Reduce(below.rel, own_keys, own), places)


def _places(columns: tuple[int, ...]) -> tuple[int, ...]:
    at = {c: i for i, c in enumerate(columns)}
    return tuple(at[c] for c in range(len(columns)))


def _distinct(form: Form) -> Form:
    return form if isinstance(form.rel, Distinct) else replace(form, rel=Distinct(form.rel))


def _values(rel: Values) -> Values:
    if isinstance(rel.rows, LiteralRows):
        return rel
    rows = tuple(tuple(map(normal, row)) for row in rel.rows)
    if all(isinstance(e, Literal) for row in rows for e in row):
        rows = tuple(sorted(rows, key=lambda row: tuple(map(order, row))))
    return Values(rows, rel.schema)


def _aggregates_in_order(aggregates: tuple[Aggregate, ...]) -> tuple[Aggregate, ...]:
    def sort_key(a: Aggregate) -> tuple[object, ...]:
        return a.function, a.distinct, len(a.args), tuple(map(order, aggregate_scalars(a))), repr(a)

    once = tuple(dict.fromkeys(aggregates))
    free = orderless(tuple(e for a in once for e in aggregate_scalars(a)))
    safe = [a for a in once if free or not any(map(can_raise, aggregate_scalars(a)))]
    return (*sorted(safe, key=sort_key), *(a for a in once if a not in safe))
