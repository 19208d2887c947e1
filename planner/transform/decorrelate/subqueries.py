"""Decorrelation: rewrites subqueries and lateral joins as joins, without ``OuterColumn`` or subquery expressions.

Source: Neumann and Kemper, "Unnesting arbitrary queries" (BTW 2015). A dependent join applies a subquery to the *set*
of its outer bindings, the domain: ``apply(rel, D)`` gives, for each row d of D, d beside each row of rel under d. D has
only the outer columns that the subquery refers to, so that equal bindings are computed once. A subplan that refers to
none of them is multiplied by D as late as possible. The result is joined to the outer rows by equality of words.

Rule: the rows are those of nested evaluation, with the same multiplicities. Side conditions: bindings are distinguished
by their words, not by SQL equality (1.0 and 1.00 print differently), so columns of types with equality classes are in D
as bigint words. A subquery behind a CASE, AND, OR or COALESCE raises errors only for bindings that reach it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import is_
from typing import Final, assert_never

from ivm.errors import unsupported
from ivm.words import Schema
from planner.expr.parts import ALL_COLUMNS, OUTER_COLUMNS, SUBQUERIES, rebuild
from planner.expr.scalar import Aggregate, And, Coalesce, Column, Literal, OuterColumn, Scalar
from planner.logical.kinds import LATERAL, kinds_in
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
    TRUE,
    bottom_up,
    children,
    conjunction,
    conjuncts,
    has_subquery,
    own_columns,
    renumber,
    scalars,
    shift,
    with_children,
    with_scalars,
)
from planner.transform.decorrelate import mentions, pull_up
from planner.transform.decorrelate.domain import UNIT, Domain, ScopedColumn, Scopes, same_words
from planner.transform.decorrelate.lift import Lifter

_CORRELATED: Final = frozenset({LATERAL, *SUBQUERIES, *OUTER_COLUMNS})


def decorrelate(rel: Rel) -> Rel:
    """The plan without subquery expressions, outer columns and lateral joins."""
    if _CORRELATED.isdisjoint(kinds_in(rel)):
        return bottom_up(rel, _truths)
    return Decorrelator().apply(rel, UNIT, ())


def _truths(rel: Rel) -> Rel:
    """A filter as ``Decorrelator`` leaves one without subqueries; any other node as it is."""
    if not isinstance(rel, Filter):
        return rel
    before = rel.predicate.args if isinstance(rel.predicate, And) else (rel.predicate,)
    parts = tuple([p for c in before for p in conjuncts(mentions.simplify_truth(c))])
    if not parts:
        return rel.input
    return rel if len(parts) == len(before) and all(map(is_, parts, before)) else Filter(rel.input, conjunction(parts))


class Decorrelator:
    """One decorrelation: numbers scopes, and memoizes closed plans so that a CTE used twice stays one object."""

    def __init__(self) -> None:
        self._next = 0
        self._closed: dict[int, tuple[Rel, Rel]] = {}
        self.bindings: dict[int, tuple[tuple[ScopedColumn, ...], Schema]] = {}
        """Recursive bindings that were applied to a domain: its columns, and the whole row of a reference."""

    def scope(self) -> int:
        """A new scope number."""
        self._next += 1
        return self._next

    def outer_columns_in(self, rel: Rel, scopes: Scopes) -> frozenset[ScopedColumn]:
        """The outer columns that a plan refers to, including those of the recursive bindings that it reads."""
        found = {(scopes[level - 1], index) for level, index in mentions.outer_columns(rel) if level <= len(scopes)}
        for binding in mentions.references(rel):
            found |= set(self.bindings.get(binding, ((), ()))[0])
        return frozenset(found)

    def apply(self, rel: Rel, domain: Domain, scopes: Scopes) -> Rel:
        """For each row of the domain, its columns, then those of each row of the plan under that binding."""
        if not self.outer_columns_in(rel, scopes) & set(domain.columns):
            return self._product(domain, self.closed_plan(rel, scopes))
        match rel:
            case Get():
                raise AssertionError
            case Reference():
                return self._reference(rel, domain)
            case Values():
                return self._values(rel, domain, scopes)
            case Filter():
                return self._filter(rel, domain, scopes)
            case Project():
                return self._project(rel, domain, scopes)
            case Join():
                return self._lateral(rel, domain, scopes) if rel.lateral else self._join(rel, domain, scopes)
            case TemporalFilter():
                raise AssertionError("made after decorrelation")
            case Locked():
                raise unsupported("FOR SYSTEM_TIME AS OF PROCTIME() in a correlated subquery")
            case AsOf():
                return self._asof(rel, domain, scopes)
            case Reduce():
                return self._reduce(rel, domain, scopes)
            case Distinct():
                return Distinct(self.apply(rel.input, domain, scopes))
            case TopK():
                return self._topk(rel, domain, scopes)
            case SetOperation():
                left, right = self.apply(rel.left, domain, scopes), self.apply(rel.right, domain, scopes)
                return replace(rel, left=left, right=right)
            case TableFunction():
                return self._table_function(rel, domain, scopes)
            case Recursive():
                return self._recursive(rel, domain, scopes)
            case LetRec():
                return self._letrec(rel, domain, scopes)
            case _:
                assert_never(rel)

    def closed_plan(self, rel: Rel, scopes: Scopes) -> Rel:
        """Decorrelates a plan that refers to nothing in the domain."""
        found = self._closed.get(id(rel))
        if found is not None:
            return found[1]
        match rel:
            case Filter():
                new: Rel = self._filter(rel, UNIT, scopes)
            case Project():
                new = self._project(rel, UNIT, scopes)
            case Join():
                new = self._lateral(rel, UNIT, scopes) if rel.lateral else self._join(rel, UNIT, scopes)
            case Reduce():
                new = self._reduce(rel, UNIT, scopes)
            case TopK():
                new = self._topk(rel, UNIT, scopes)
            case TableFunction():
                new = self._table_function(rel, UNIT, scopes)
            case Values() if any(has_subquery(e) for e in scalars(rel)):
                new = self._values(rel, UNIT, scopes)
            case (
                Values()
                | Get()
                | Reference()
                | AsOf()
                | Locked()
                | TemporalFilter()
                | Distinct()
                | SetOperation()
                | Recursive()
                | LetRec()
            ):
                new = with_children(rel, tuple(self.closed_plan(c, scopes) for c in children(rel)))
            case _:
                assert_never(rel)
        self._closed[id(rel)] = (rel, new)
        return new

    @staticmethod
    def _product(domain: Domain, rel: Rel) -> Rel:
        return rel if not domain.columns else Join(JoinKind.INNER, domain.rel, rel, TRUE)

    def _reference(self, rel: Reference, domain: Domain) -> Rel:
        """A reference to a binding that has a domain of its own: joined with this domain on the columns of that one."""
        columns, row = self.bindings[rel.binding]
        whole = Reference(rel.binding, row)
        if columns == domain.columns:
            return whole
        on = [same_words(domain.position(t), domain.width + i, row[i]) for i, t in enumerate(columns)]
        joined = Join(JoinKind.INNER, domain.rel, whole, conjunction(tuple(on)))
        own = own_columns(schema(joined))
        return Project(joined, (*own[: domain.width], *own[domain.width + len(columns) :]))

    def outer(self, expr: Scalar, domain: Domain, scopes: Scopes) -> Scalar:
        """An expression over (domain, own row): own columns shifted behind the domain, outer ones read from it."""
        return rebuild(expr, ALL_COLUMNS if domain.width else OUTER_COLUMNS, _placing(domain, scopes))

    def lift(
        self, exprs: tuple[Scalar, ...], applied: Rel, domain: Domain, scopes: Scopes
    ) -> tuple[Rel, tuple[Scalar, ...]]:
        """Lifts a node's expressions, over its applied input (domain, row). Subqueries become columns at its end."""
        if not any(has_subquery(e) for e in exprs):
            return applied, tuple(self.outer(e, domain, scopes) for e in exprs)
        lifter = Lifter(self, applied, domain, (self.scope(), *scopes))
        new = tuple(lifter.lift(e, ()) for e in exprs)
        return lifter.rel, new

    def _values(self, rel: Values, domain: Domain, scopes: Scopes) -> Rel:
        kept = own_columns(schema(domain.rel))
        parts: list[Rel] = []
        for row in rel.rows:
            lifted, exprs = self.lift(row, domain.rel, domain, scopes)
            parts.append(Project(lifted, (*kept, *exprs)))
        out = parts[0]
        for part in parts[1:]:
            out = SetOperation(SetKind.UNION, True, out, part)
        return out

    def _filter(self, rel: Filter, domain: Domain, scopes: Scopes) -> Rel:
        """Plain conjuncts first; EXISTS and NOT EXISTS become semi- and antijoins; other subqueries are lifted."""
        applied = self.apply(rel.input, domain, scopes) if domain.columns else self.closed_plan(rel.input, scopes)
        row = own_columns(schema(applied))
        parts = [p for c in conjuncts(rel.predicate) for p in conjuncts(mentions.simplify_truth(c))]
        plain = tuple(self.outer(p, domain, scopes) for p in parts if not has_subquery(p))
        out: Rel = Filter(applied, conjunction(plain)) if plain else applied
        for part in parts:
            if not has_subquery(part):
                continue
            kind = mentions.existence(part)
            if kind is not None:
                negated, inner = kind
                lifter = Lifter(self, out, domain, (self.scope(), *scopes))
                out = lifter.semi_join(inner, negated)
                continue
            lifted, (predicate,) = self.lift((part,), out, domain, scopes)
            out = Project(Filter(lifted, predicate), row)
        return out

    def _project(self, rel: Project, domain: Domain, scopes: Scopes) -> Rel:
        applied = self._input(rel.input, domain, scopes)
        kept = own_columns(schema(applied))[: domain.width]
        lifted, exprs = self.lift(rel.exprs, applied, domain, scopes)
        return Project(lifted, (*kept, *exprs))

    def _input(self, rel: Rel, domain: Domain, scopes: Scopes) -> Rel:
        return self.apply(rel, domain, scopes) if domain.columns else self.closed_plan(rel, scopes)

    def _join(self, rel: Join, domain: Domain, scopes: Scopes) -> Rel:
        if has_subquery(rel.on):
            return self._join_with_subquery(rel, domain, scopes)
        left_open = bool(self.outer_columns_in(rel.left, scopes) & set(domain.columns))
        right_open = bool(self.outer_columns_in(rel.right, scopes) & set(domain.columns))
        on_open = any(isinstance(p, OuterColumn) for p in mentions.parts(rel.on))
        left_kinds = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
        if not domain.columns:
            left, right = self.closed_plan(rel.left, scopes), self.closed_plan(rel.right, scopes)
            return replace(rel, left=left, right=right, on=self.outer(rel.on, domain, scopes))
        if rel.kind in left_kinds and not right_open:
            left = self.apply(rel.left, domain, scopes)
            return replace(rel, left=left, right=self.closed_plan(rel.right, scopes),
                           on=self.outer(rel.on, domain, scopes))  # fmt: skip
        if rel.kind is JoinKind.INNER and not left_open and not on_open:
            return self._join_right_open(rel, domain, scopes)
        return self._join_both(rel, domain, scopes)

    def _join_right_open(self, rel: Join, domain: Domain, scopes: Scopes) -> Rel:
        left, right = self.closed_plan(rel.left, scopes), self.apply(rel.right, domain, scopes)
        count, width = len(schema(left)), domain.width

        on = renumber(rel.on, lambda i: i if i < count else i + width)
        joined = Join(JoinKind.INNER, left, right, on)
        own = own_columns(schema(joined))
        return Project(joined, (*own[count : count + width], *own[:count], *own[count + width :]))

    def _join_both(self, rel: Join, domain: Domain, scopes: Scopes) -> Rel:
        """Applies both sides to the domain and joins on the domain too."""
        left, right = self.apply(rel.left, domain, scopes), self.apply(rel.right, domain, scopes)
        width, count = domain.width, len(schema(left)) - domain.width
        row = schema(left)

        meet = [same_words(i, width + count + i, row[i]) for i in range(width)]
        kind = rel.kind
        on = rebuild(rel.on, ALL_COLUMNS, _placing(domain, scopes, count, width))
        if kind is JoinKind.RIGHT:
            # An unmatched right row has its domain columns on the right only.
            on = _domain_on_right(on, width, width + count)
        joined = Join(kind, left, right, conjunction((*meet, on)))
        own = own_columns(schema(joined))
        if kind in (JoinKind.SEMI, JoinKind.ANTI):
            return joined
        first, second = own[:width], own[width + count : 2 * width + count]
        chosen: tuple[Scalar, ...] = first
        if kind is JoinKind.RIGHT:
            chosen = second
        elif kind is JoinKind.FULL:
            chosen = tuple(Coalesce((a, b), a.type) for a, b in zip(first, second, strict=True))
        return Project(joined, (*chosen, *own[width : width + count], *own[2 * width + count :]))

    def _asof(self, rel: AsOf, domain: Domain, scopes: Scopes) -> Rel:
        """Applies the left side to the domain.

        If the right side depends on it too, the domain's columns become keys.
        """
        width, count = domain.width, len(schema(rel.left))
        right_open = bool(self.outer_columns_in(rel.right, scopes) & set(domain.columns))
        left = self.apply(rel.left, domain, scopes)
        by = width if right_open else 0
        right = self.apply(rel.right, domain, scopes) if right_open else self.closed_plan(rel.right, scopes)
        keys = tuple((a + width, b + by, same) for a, b, same in rel.keys)
        points = (rel.points[0] + width, rel.points[1] + by)
        joined = replace(rel, left=left, right=right, keys=(*((i, i, True) for i in range(by)), *keys), points=points)
        own = own_columns(schema(joined))
        return Project(joined, (*own[: width + count], *own[width + count + by :])) if by else joined

    def _join_with_subquery(self, rel: Join, domain: Domain, scopes: Scopes) -> Rel:
        """ON with a subquery: a filtered product gives the matched pairs; unmatched outer rows are added to them."""
        both = Join(JoinKind.INNER, rel.left, rel.right, TRUE)
        count = len(schema(rel.left))
        pairs = Filter(both, rel.on)
        if rel.kind is JoinKind.INNER:
            return self.apply(pairs, domain, scopes) if domain.columns else self._filter(pairs, domain, scopes)
        return self._input(pull_up.outer_from_pairs(rel, pairs, count), domain, scopes)

    def _lateral(self, rel: Join, domain: Domain, scopes: Scopes) -> Rel:
        """Applies the right side to the set of left values that it refers to."""
        if has_subquery(rel.on) and rel.kind is JoinKind.INNER:
            return self._input(Filter(replace(rel, on=TRUE), rel.on), domain, scopes)
        left = self._input(rel.left, domain, scopes)
        count = len(schema(left)) - domain.width
        inner = (self.scope(), *scopes)
        lifter = Lifter(self, left, domain, inner)
        inner_domain = lifter.domain_of(self.outer_columns_in(rel.right, inner), ())
        right = self._input(rel.right, inner_domain, inner)

        if has_subquery(rel.on):
            raise unsupported("a subquery in the condition of a lateral join")
        row = schema(left)
        meet = [
            same_words(lifter.position(t), len(row) + i, row[lifter.position(t)])
            for i, t in enumerate(inner_domain.columns)
        ]
        on = rebuild(rel.on, ALL_COLUMNS, _placing(domain, scopes, count, inner_domain.width))
        joined = Join(rel.kind, left, right, conjunction((*meet, on)))
        if rel.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return joined
        own = own_columns(schema(joined))
        return Project(joined, (*own[: len(row)], *own[len(row) + inner_domain.width :]))

    def _reduce(self, rel: Reduce, domain: Domain, scopes: Scopes) -> Rel:
        applied = self._input(rel.input, domain, scopes)
        kept = own_columns(schema(applied))[: domain.width]
        lifted, exprs = self.lift(scalars(rel), applied, domain, scopes)
        new = with_scalars(replace(rel, input=lifted), exprs)
        assert isinstance(new, Reduce)
        grouped = replace(new, keys=(*kept, *new.keys))
        if rel.keys or not domain.columns:
            return grouped
        return _default_rows(domain, grouped)

    def _topk(self, rel: TopK, domain: Domain, scopes: Scopes) -> Rel:
        applied = self._input(rel.input, domain, scopes)
        kept = own_columns(schema(applied))[: domain.width]
        row = own_columns(schema(applied))
        exprs = (*rel.keys, *(k.expr for k in rel.order), *(e for f in rel.framed for e in f.scalars))
        lifted, new = self.lift(exprs, applied, domain, scopes)
        rest = iter(new[len(rel.keys) :])
        order = tuple(replace(k, expr=next(rest)) for k in rel.order)
        framed = tuple(f.with_scalars(tuple(next(rest) for _ in f.scalars)) for f in rel.framed)
        # The domain's columns come first among the keys, so an outer column in LIMIT is the key of the same position.
        limit, offset = (None if b is None else self.outer(b, domain, scopes) for b in (rel.limit, rel.offset))
        keys = (*kept, *new[: len(rel.keys)])
        top = replace(rel, input=lifted, keys=keys, order=order, limit=limit, offset=offset, framed=framed)
        numbers = own_columns(schema(top))[len(schema(lifted)) :]
        return top if lifted is applied else Project(top, (*row, *numbers))

    def _table_function(self, rel: TableFunction, domain: Domain, scopes: Scopes) -> Rel:
        applied = self._input(rel.input, domain, scopes)
        lifted, args = self.lift(rel.args, applied, domain, scopes)
        new = replace(rel, input=lifted, args=args)
        if lifted is applied:
            return new
        count, extra = len(schema(applied)), len(schema(lifted))
        own = own_columns(schema(new))
        return Project(new, (*own[:count], *own[extra:]))

    def _recursive(self, rel: Recursive, domain: Domain, scopes: Scopes) -> Rel:
        row = (*schema(domain.rel), *rel.schema)
        base = self.apply(rel.base, domain, scopes)
        self.bindings[rel.binding] = (domain.columns, row)
        step = self.apply(rel.step, domain, scopes)
        return replace(rel, base=base, step=step, schema=row)

    def _letrec(self, rel: LetRec, domain: Domain, scopes: Scopes) -> Rel:
        rows = tuple((*schema(domain.rel), *row) for row in rel.schemas)
        for (binding, _), row in zip(rel.bindings, rows, strict=True):
            self.bindings[binding] = (domain.columns, row)
        bindings = tuple((b, self.apply(value, domain, scopes)) for b, value in rel.bindings)
        priorities = tuple(None if p is None else shift(p, domain.width) for p in rel.priorities)
        body = self.apply(rel.body, domain, scopes)
        return replace(rel, bindings=bindings, schemas=rows, body=body, priorities=priorities)


def _placing(
    domain: Domain, scopes: Scopes, left: int = 0, right_width: int = 0
) -> Callable[[Column | OuterColumn], Scalar]:
    """Moves own columns behind the domain, those from ``left`` on also behind the right side's domain, and reads outer
    columns from the domain."""

    def place(part: Column | OuterColumn) -> Scalar:
        if isinstance(part, Column):
            return replace(part, index=part.index + domain.width + (right_width if part.index >= left else 0))
        return Column(domain.position((scopes[part.level - 1], part.index)), part.type, part.nullable)

    return place


def _domain_on_right(on: Scalar, width: int, by: int) -> Scalar:
    return renumber(on, lambda i: i + by if i < width else i)


def _default_rows(domain: Domain, grouped: Reduce) -> Rel:
    """Adds the row that aggregation without GROUP BY has for a binding without input: count 0, all else NULL."""
    width = domain.width
    row = schema(domain.rel)
    meet = tuple(same_words(i, width + i, row[i]) for i in range(width))
    joined = Join(JoinKind.LEFT, domain.rel, grouped, conjunction(meet))
    exprs: list[Scalar] = list(own_columns(row))
    for i, aggregate in enumerate(grouped.aggregates):
        column = Column(2 * width + i, aggregate.type, True)
        exprs.append(_or_default(column, aggregate))
    return Project(joined, tuple(exprs))


def _or_default(column: Column, aggregate: Aggregate) -> Scalar:
    if aggregate.nullable:
        return column
    return Coalesce((column, Literal(0, aggregate.type)), aggregate.type)
