"""Turns subquery expressions into columns: each is applied to the set of its bindings and the result joined back."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from ivm.words import BOOL, INT8, ColumnType, Schema
from planner.expr import scalar
from planner.expr.functions.internal.subquery import SINGLE_ROW
from planner.expr.parts import ALL_COLUMNS, rebuild
from planner.expr.scalar import (
    Aggregate,
    And,
    Call,
    Case,
    Coalesce,
    Column,
    Exists,
    Literal,
    Or,
    OuterColumn,
    Quantified,
    Scalar,
    ScalarSubquery,
)  # fmt: skip
from planner.logical.fallibility import can_raise, rel_can_raise
from planner.logical.nodes import (
    Distinct,
    Filter,
    Join,
    JoinKind,
    Project,
    Reduce,
    Rel,
    SetKind,
    SetOperation,
    TableFunction,
    Values,
    schema,
)  # fmt: skip
from planner.logical.traversal import (
    TRUE,
    children,
    columns_of,
    conjunction,
    has_subquery,
    own_columns,
    scalars,
    with_children,
)
from planner.transform.decorrelate import mentions, pull_up
from planner.transform.decorrelate.domain import (
    UNIT,
    Decorrelation,
    Domain,
    ScopedColumn,
    Scopes,
    raw_columns,
    same_words,
)

Guards = tuple[Scalar, ...]
"""Conditions over the lifted row that all hold for the rows on which an expression is evaluated."""


class Lifter:
    """Lifts the subqueries out of expressions over one row. ``rel`` grows by the columns of each subquery's result."""

    def __init__(self, parent: Decorrelation, rel: Rel, domain: Domain, scopes: Scopes) -> None:
        self.parent, self.rel, self.domain, self.scopes = parent, rel, domain, scopes
        self.base = rel
        self.width = len(schema(rel)) - domain.width

    def position(self, column: ScopedColumn) -> int:
        """The position of a column's value in ``rel``."""
        if column[0] == self.scopes[0]:
            return self.domain.width + column[1]
        return self.domain.position(column)

    def domain_of(self, columns: frozenset[ScopedColumn], guards: Guards) -> Domain:
        """The distinct bindings of some columns, among the rows that meet the guards."""
        known = sorted(t for t in columns if t[0] == self.scopes[0] or t in self.domain.columns)
        if not known:
            return UNIT
        # Earlier lifts neither add nor drop rows, so the bindings can be taken from the base unless a guard reads a
        # lifted column.
        row = schema(self.base)
        on_base = all(i < len(row) for g in guards for i in columns_of(g))
        source = self.base if on_base else self.rel
        rows: Rel = Filter(source, conjunction(guards)) if guards else source
        positions = tuple(self.position(t) for t in known)
        bindings = Project(rows, raw_columns(positions, tuple(row[p] for p in positions)))
        return Domain(Distinct(bindings), tuple(known))

    def lift(self, expr: Scalar, guards: Guards) -> Scalar:
        """The expression over ``rel``, without subqueries. Earlier parts guard later ones, as in evaluation order."""
        if not has_subquery(expr):
            return self.parent.outer(expr, self.domain, self.scopes[1:])
        match expr:
            case ScalarSubquery():
                return self._scalar(expr, self._needed(expr, guards))
            case Exists():
                return self._exists(expr.rel, self._needed(expr, guards))
            case Quantified():
                return self.lift(mentions.expand_quantified(expr), guards)
            case And():
                return And(self._in_turn(expr.args, guards, "is not false"))
            case Or():
                return Or(self._in_turn(expr.args, guards, "is not true"))
            case Coalesce():
                return replace(expr, args=self._in_turn(expr.args, guards, "is null"))
            case Case():
                return self._case(expr, guards)
            case _:
                return scalar.with_children(expr, tuple(self.lift(a, guards) for a in scalar.children(expr)))

    @staticmethod
    def _needed(expr: ScalarSubquery | Exists, guards: Guards) -> Guards:
        """Guards add a condition to the domain, so they are used only for subqueries that can fail."""
        return guards if rel_can_raise(expr.rel) else ()

    def _in_turn(self, args: tuple[Scalar, ...], guards: Guards, passes: str) -> tuple[Scalar, ...]:
        out: list[Scalar] = []
        for arg in args:
            out.append(self.lift(arg, guards))
            guards = (*guards, mentions.test(passes, out[-1]))
        return tuple(out)

    def _case(self, expr: Case, guards: Guards) -> Scalar:
        arms = []
        for condition, value in expr.arms:
            test = self.lift(condition, guards)
            arms.append((test, self.lift(value, (*guards, test))))
            guards = (*guards, mentions.test("is not true", test))
        return replace(expr, arms=tuple(arms), otherwise=self.lift(expr.otherwise, guards))

    def _applied(self, rel: Rel, guards: Guards) -> tuple[Domain, Rel]:
        domain = self.domain_of(self.parent.outer_columns_in(rel, self.scopes), guards)
        if domain is UNIT:
            closed = self.parent.closed_plan(rel, self.scopes)
            return domain, gated(closed, Filter(self.rel, conjunction(guards))) if guards else closed
        return domain, self.parent.apply(rel, domain, self.scopes)

    def _scalar(self, expr: ScalarSubquery, guards: Guards) -> Scalar:
        domain, applied = self._applied(expr.rel, guards)
        exact = mentions.exactly_one(expr.rel) and not guards
        if mentions.at_most_one(expr.rel):
            (value,) = self._join_back(domain, applied, exact)
            return replace(value, type=expr.type, nullable=expr.nullable or value.nullable)
        keys = own_columns(schema(applied))[: domain.width]
        column = own_columns(schema(applied))[domain.width]
        aggregates = (
            Aggregate("count(*)", (), INT8, False),
            Aggregate("any_value(anyelement)", (column,), expr.type, True),
        )
        count, value = self._join_back(domain, Reduce(applied, keys, aggregates), not domain.columns)
        return Call(SINGLE_ROW, (count, value), expr.type, True)

    def _exists(self, rel: Rel, guards: Guards) -> Scalar:
        domain, applied = self._applied(rel, guards)
        keys = own_columns(schema(applied))[: domain.width]
        if not domain.columns:
            # at most one row, so that a query that runs once need not read more
            counted = Reduce(Distinct(Project(applied, ())), (), (Aggregate("count(*)", (), INT8, False),))
            (count,) = self._join_back(domain, counted, True)
            return Call(">(int8,int8)", (count, Literal(0, INT8)), BOOL, False)
        found = Project(Distinct(Project(applied, keys)), (*own_columns(_row(keys)), TRUE))
        (marker,) = self._join_back(domain, found, False)
        return mentions.test("is not null", marker)

    def _join_back(self, domain: Domain, rel: Rel, exact: bool) -> tuple[Column, ...]:
        """Joins ``rel`` to ``self.rel`` on the domain.

        ``rel``: the domain's columns, then others. Returns the latter as columns of the new ``self.rel``. ``exact``:
        each row has exactly one match, so an inner join will do.
        """
        row, width = schema(self.rel), len(schema(self.rel))
        on = tuple(same_words(self.position(t), width + i, row[self.position(t)]) for i, t in enumerate(domain.columns))
        joined = Join(JoinKind.INNER if exact else JoinKind.LEFT, self.rel, rel, conjunction(on))
        own = own_columns(schema(joined))
        self.rel = Project(joined, (*own[:width], *own[width + domain.width :])) if domain.width else joined
        return own_columns(schema(self.rel))[width:]

    def semi_join(self, rel: Rel, negated: bool) -> Rel:
        """The rows of ``self.rel`` for which the subquery has a row (``negated``: has none)."""
        kind = JoinKind.ANTI if negated else JoinKind.SEMI
        plain, conditions = pull_up.split(rel)
        mine = {t for t in self.parent.outer_columns_in(plain, self.scopes) if self._knows(t)}
        if not mine:
            closed = self.parent.closed_plan(plain, self.scopes)
            return Join(kind, self.rel, closed, conjunction(tuple(self._over_pair(c) for c in conditions)))
        domain, applied = self._applied(rel, ())
        keys = own_columns(schema(applied))[: domain.width]
        row, width = schema(self.rel), len(schema(self.rel))
        on = tuple(same_words(self.position(t), width + i, row[self.position(t)]) for i, t in enumerate(domain.columns))
        return Join(kind, self.rel, Distinct(Project(applied, keys)), conjunction(on))

    def _knows(self, column: ScopedColumn) -> bool:
        return column[0] == self.scopes[0] or column in self.domain.columns

    def _over_pair(self, condition: Scalar) -> Scalar:
        """A condition of the subquery over (outer row, subquery row)."""
        width = len(schema(self.rel))

        def change(part: Column | OuterColumn) -> Scalar:
            if isinstance(part, Column):
                return replace(part, index=part.index + width)
            column = (self.scopes[part.level - 1], part.index)
            return Column(self.position(column), part.type, part.nullable)

        return rebuild(condition, ALL_COLUMNS, change)


def gated(rel: Rel, gate: Rel) -> Rel:
    """The plan with its fallible expressions evaluated only if the gate has rows; otherwise its rows are meaningless.

    Aggregates are computed in any case: the only errors of their own are overflows.
    """
    if not rel_can_raise(rel):
        return rel
    if isinstance(rel, Values):
        rows: tuple[Rel, ...] = tuple(Project(_behind(_NOTHING, gate), row) for row in rel.rows)
        return reduce(lambda one, two: SetOperation(SetKind.UNION, True, one, two), rows)
    rel = with_children(rel, tuple(gated(child, gate) for child in children(rel)))
    if isinstance(rel, Project | Filter | TableFunction) and any(can_raise(e) for e in scalars(rel)):
        return with_children(rel, (_behind(rel.input, gate),))
    return rel


def _behind(rel: Rel, gate: Rel) -> Rel:
    return Join(JoinKind.SEMI, rel, gate, TRUE)


_NOTHING = Values(((),), ())


def _row(columns: tuple[Column, ...]) -> Schema:
    return tuple(ColumnType(c.type, c.nullable) for c in columns)
