"""Volatile functions once for each row: what calls them is computed where equal rows have been set apart.

Rule: each expression that calls a volatile function becomes a column of ``planner.logical.apart.each_row`` below its
node. Rows whose subqueries call one, and refer to the row, are numbered, and the subquery refers to the number. Equal
plans at different places are computed apart, one plan that is read twice (a CTE) once, as in Postgres.

Side conditions: the steps of recursions and the rows of VALUES at the top stay as they are (VALUES are computed row by
row), and so do LIMIT and OFFSET, which are computed once. A condition above a projection that reads none of its
volatile columns is moved below it first, so that fewer rows call the function (also as in Postgres).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ivm.words import BOOL
from planner.expr.functions.boolean import IS_NOT_NULL
from planner.expr.parts import SUBQUERIES, rebuild
from planner.expr.scalar import Call, Column, Exists, OuterColumn, Quantified, Scalar, ScalarSubquery
from planner.logical.apart import (
    NUMBER,
    calls_volatile,
    differs_by_row,
    each_row,
    expands_each,
    numbers_from,
    sets_apart,
)
from planner.logical.fallibility import can_raise
from planner.logical.nodes import (
    Filter,
    Join,
    JoinKind,
    LetRec,
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
from planner.logical.traversal import (
    TRUE,
    all_inputs,
    children,
    columns_of,
    conjunction,
    conjuncts,
    has_subquery,
    nodes,
    own_columns,
    renumber,
    scalars,
    subqueries,
    substitute,
    with_children,
    with_scalars,
)
from planner.transform.decorrelate.mentions import outer_columns
from planner.transform.decorrelate.pull_up import outer_from_pairs


def apart(rel: Rel, numbers: Iterator[int] | None = None) -> Rel:
    """The plan with its volatile expressions computed once for each row. ``numbers``: those for ``each_row``."""
    if isinstance(rel, Values) or not differs_by_row(rel):
        return rel
    return _Apart(numbers or numbers_from(-1)).rel(rel)


class _Apart:
    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._known: dict[int, tuple[Rel, Rel]] = {}

    def rel(self, rel: Rel) -> Rel:
        found = self._known.get(id(rel))
        if found is None:
            found = self._known[id(rel)] = (rel, self._rel(rel))
        return found[1]

    def _rel(self, rel: Rel) -> Rel:
        if isinstance(rel, Recursive) and not any(isinstance(n, Reference) for n in nodes(rel.base, all_inputs)):
            return replace(rel, base=self.rel(rel.base))
        if isinstance(rel, Recursive | LetRec) or sets_apart(rel):
            return rel
        rel = _sunk(rel)
        new = with_children(rel, tuple(map(self.rel, children(rel))))
        new = with_scalars(new, tuple(self._in_subqueries(e) for e in scalars(new)))
        return self._node(new)

    def _in_subqueries(self, expr: Scalar) -> Scalar:
        return rebuild(expr, SUBQUERIES, lambda part: replace(part, rel=self.rel(part.rel)))

    def _node(self, rel: Rel) -> Rel:
        """A node whose inputs are set apart already."""
        match rel:
            case Values():
                return self._values(rel)
            case Filter():
                return self._filter(rel)
            case Join():
                return self._join(rel)
            case Project() | Reduce() | TopK() | TableFunction():
                return self._over(rel)
            case _:
                return rel

    def each(self, rel: Rel, exprs: tuple[Scalar, ...] = ()) -> Rel:
        return each_row(rel, next(self._numbers), exprs)

    def _values(self, rel: Values) -> Rel:
        if not any(map(calls_volatile, scalars(rel))):
            return rel
        rows = [self._over(Project(Values(((),), ()), row)) for row in rel.rows]
        out = rows[0]
        for row in rows[1:]:
            out = SetOperation(SetKind.UNION, True, out, row)
        return out

    def _over(self, rel: Project | Reduce | TopK | TableFunction) -> Rel:
        """A node over one input: its volatile expressions become columns of the input."""
        width = len(schema(rel.input))
        numbered = self._numbered(rel)
        found = tuple(dict.fromkeys(e for e in self._computed(numbered) if calls_volatile(e)))
        below: Rel = numbered.input
        if found or (expands_each(rel) and not sets_apart(below)):
            below = self.each(below, found)
        if below is rel.input:
            return rel
        first = len(schema(below)) - len(found)
        place = {e: Column(first + i, e.type, e.nullable) for i, e in enumerate(found)}
        new = with_scalars(numbered, tuple(place.get(e, e) for e in scalars(numbered)))
        whole = with_children(new, (below,))
        if isinstance(rel, Project | Reduce):
            return whole
        own = own_columns(schema(whole))
        return Project(whole, (*own[:width], *own[len(schema(below)) :]))

    @staticmethod
    def _computed(rel: Project | Reduce | TopK | TableFunction) -> tuple[Scalar, ...]:
        """The node's expressions that are computed for each row: without LIMIT and OFFSET."""
        if isinstance(rel, TopK):
            return scalars(replace(rel, limit=None, offset=None))
        return scalars(rel)

    def _numbered(self, rel: Project | Reduce | TopK | TableFunction) -> Project | Reduce | TopK | TableFunction:
        """The node over numbered rows, which its subqueries refer to, if they call volatile functions for them."""
        if not any(_varies(e) for e in self._computed(rel)):
            return rel
        at = len(schema(rel.input))
        new = with_scalars(replace(rel, input=self.each(rel.input)), tuple(_tied(e, at) for e in scalars(rel)))
        assert isinstance(new, Project | Reduce | TopK | TableFunction)
        return new

    def _filter(self, rel: Filter) -> Rel:
        parts = conjuncts(rel.predicate)
        late = tuple(p for p in parts if calls_volatile(p) or _varies(p))
        if not late:
            return rel
        early = tuple(p for p in parts if p not in late)
        below = Filter(rel.input, conjunction(early)) if early else rel.input
        own = own_columns(schema(below))
        computed = self._over(Project(below, (*own, conjunction(late))))
        return Project(Filter(computed, Column(len(own), BOOL, True)), own)

    def _join(self, rel: Join) -> Rel:
        if rel.lateral:
            rel, shown = self._lateral(rel)
        else:
            shown = None
        parts = conjuncts(rel.on)
        late = tuple(p for p in parts if calls_volatile(p) or _varies(p))
        out: Rel = rel
        if late and rel.kind is JoinKind.INNER:
            early = conjunction(tuple(p for p in parts if p not in late))
            out = self._filter(Filter(replace(rel, on=early), conjunction(late)))
        elif late and not rel.lateral:
            out = self._outer(rel)
        return out if shown is None else Project(out, shown)

    def _outer(self, rel: Join) -> Rel:
        """An outer join as its matched pairs and the rows that have none, which are told apart by number."""
        left, right = len(schema(rel.left)), len(schema(rel.right))
        one, two = self.each(rel.left), self.each(rel.right)
        on = renumber(rel.on, lambda i: i if i < left else i + 1)
        pairs = self._filter(Filter(Join(JoinKind.INNER, one, two, TRUE), on))
        out = outer_from_pairs(replace(rel, left=one, right=two), pairs, left + 1)
        own = own_columns(schema(out))
        return Project(out, (*own[:left], *own[left + 1 : left + 1 + right]))

    def _lateral(self, rel: Join) -> tuple[Join, tuple[Column, ...] | None]:
        """The join with its left rows numbered if the right side calls volatile functions for each of them, and then
        the columns of the join as it was."""
        if not differs_by_row(rel.right) or not any(level == 1 for level, _ in outer_columns(rel.right)):
            return rel, None
        width = len(schema(rel.left))
        right = Filter(rel.right, _mentions(width))
        on = renumber(rel.on, lambda i: i if i < width else i + 1)
        joined = replace(rel, left=self.each(rel.left), right=right, on=on)
        own = own_columns(schema(joined))
        return joined, (*own[:width], *own[width + 1 :])


def _mentions(index: int) -> Scalar:
    """A condition, always true, that refers to the number of the enclosing row."""
    return Call(IS_NOT_NULL, (OuterColumn(1, index, NUMBER.type, True),), BOOL, False)


def _varies(expr: Scalar) -> bool:
    """Whether a subquery in the expression refers to the row that it is computed for, and calls volatile functions."""
    return any(map(_is_varying, subqueries(expr)))


def _is_varying(part: ScalarSubquery | Exists | Quantified) -> bool:
    return differs_by_row(part.rel) and any(level == 1 for level, _ in outer_columns(part.rel))


def _tied(expr: Scalar, at: int) -> Scalar:
    """The expression with such subqueries referring to column ``at`` of the row."""

    def change(part: ScalarSubquery | Exists | Quantified) -> Scalar:
        return replace(part, rel=Filter(part.rel, _mentions(at))) if _is_varying(part) else part

    return rebuild(expr, SUBQUERIES, change)


def _sunk(rel: Rel) -> Rel:
    """A condition over a projection: the parts that read none of its volatile columns go below."""
    if not isinstance(rel, Filter) or not isinstance(rel.input, Project):
        return rel
    exprs = rel.input.exprs
    if not any(map(calls_volatile, exprs)):
        return rel
    plain = {i for i, e in enumerate(exprs) if not calls_volatile(e) and not has_subquery(e)}

    def sinks(part: Scalar) -> bool:
        used = columns_of(part)
        if not used or not used <= plain or has_subquery(part) or calls_volatile(part):
            return False
        return not can_raise(substitute(part, exprs))

    parts = conjuncts(rel.predicate)
    below = tuple(substitute(p, exprs) for p in parts if sinks(p))
    if not below:
        return rel
    above = tuple(p for p in parts if not sinks(p))
    moved = replace(rel.input, input=Filter(rel.input.input, conjunction(below)))
    return Filter(moved, conjunction(above)) if above else moved
