"""Projection pushdown: puts a projection on nodes with more columns than are read.

Rule: equal rows in the columns that are read. An expression that nothing reads is not computed, so it cannot raise.
"""

from __future__ import annotations

from dataclasses import replace
from operator import is_
from typing import assert_never

from ivm.words import INT4
from planner.expr.literal_rows import LiteralRows
from planner.expr.scalar import Column, Literal, Scalar
from planner.logical.aggregates import aggregate_scalars, with_aggregate_scalars
from planner.logical.apart import expands_each, own_number, read_twice, sets_apart
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
    own_columns,
    renumber,
    scalars,
    with_children,
    with_scalars,
)  # fmt: skip

Needed = tuple[int, ...]
"""The columns that are read, ascending."""


def prune(rel: Rel) -> Rel:
    """The plan with narrow rows inside; its own columns stay."""
    return _Prune(rel).all(rel)


class _Prune:
    """``pruned(rel, needed)`` has exactly the needed columns of ``rel``, in their order."""

    def __init__(self, plan: Rel) -> None:
        self._plan = plan
        self._known: dict[tuple[int, Needed], tuple[Rel, Rel]] = {}
        self._twice: frozenset[int] | None = None

    def all(self, rel: Rel) -> Rel:
        """The relation with all of its columns."""
        return self.pruned(rel, tuple(range(len(schema(rel)))))

    def pruned(self, rel: Rel, needed: Needed) -> Rel:
        key = (id(rel), needed)
        if key not in self._known:
            self._known[key] = (rel, self._pruned(rel, needed))
        return self._known[key][1]

    def _pruned(self, rel: Rel, needed: Needed) -> Rel:
        match rel:
            case Get() | Reference() | Values():
                return _kept(rel, needed)
            case Filter():
                return self._filter(rel, needed)
            case TemporalFilter():
                return self._temporal(rel, needed)
            case Project():
                return self._project(rel, needed)
            case Join():
                return self._join(rel, needed)
            case AsOf():
                return self._asof(rel, needed)
            case Reduce():
                return self._reduce(rel, needed)
            case SetOperation() if _is_union_all(rel):
                if not needed:
                    return _kept(self._counted(rel), needed)
                return replace(rel, left=self.pruned(rel.left, needed), right=self.pruned(rel.right, needed))
            case TableFunction() if not self._whole(rel):
                return self._table_function(rel, needed)
            case TopK():
                return self._topk(rel, needed)
            case TableFunction() | Distinct() | SetOperation() | Recursive() | LetRec() | Locked():
                return _kept(with_children(rel, tuple(self.all(c) for c in children(rel))), needed)
            case _:
                assert_never(rel)

    def _under(self, rel: Rel, exprs: tuple[Scalar, ...], needed: Needed = ()) -> tuple[Rel, dict[int, int]]:
        """An input with the needed columns and those that the expressions read, and the new position of each."""
        used = tuple(sorted(set(needed).union(*(columns_of(e) for e in exprs))))
        return self.pruned(rel, used), {old: new for new, old in enumerate(used)}

    def _counted(self, rel: Rel) -> Rel:
        """As many rows, of a constant: a union has a column."""
        if isinstance(rel, SetOperation) and _is_union_all(rel):
            return replace(rel, left=self._counted(rel.left), right=self._counted(rel.right))
        return Project(self.pruned(rel, ()), (Literal(0, INT4),))

    def _filter(self, rel: Filter, needed: Needed) -> Rel:
        below, place = self._under(rel.input, (rel.predicate,), needed)
        predicate = renumber(rel.predicate, place.__getitem__)
        same = below is rel.input and predicate is rel.predicate
        new = rel if same else Filter(below, predicate)
        return _kept(new, tuple(place[i] for i in needed))

    def _temporal(self, rel: TemporalFilter, needed: Needed) -> Rel:
        below, place = self._under(rel.input, rel.conditions, needed)
        new = TemporalFilter(below, tuple(renumber(c, place.__getitem__) for c in rel.conditions))
        return _kept(new, tuple(place[i] for i in needed))

    def _project(self, rel: Project, needed: Needed) -> Rel:
        exprs = tuple(rel.exprs[i] for i in needed)
        below, place = self._under(rel.input, exprs)
        new = tuple([renumber(e, place.__getitem__) for e in exprs])
        if new == own_columns(schema(below)):
            return below
        return rel if below is rel.input and _same(new, rel.exprs) else Project(below, new)

    def _join(self, rel: Join, needed: Needed) -> Rel:
        count = len(schema(rel.left))
        used = set(needed) | columns_of(rel.on)
        left_used = tuple(sorted(i for i in used if i < count))
        right_used = tuple(sorted(i - count for i in used if i >= count))
        left, right = self.pruned(rel.left, left_used), self.pruned(rel.right, right_used)
        place = {i: k for k, i in enumerate(left_used)}
        place |= {i + count: k + len(left_used) for k, i in enumerate(right_used)}
        on = renumber(rel.on, place.__getitem__)
        same = left is rel.left and right is rel.right and on is rel.on
        new = rel if same else replace(rel, left=left, right=right, on=on)
        assert rel.kind not in (JoinKind.SEMI, JoinKind.ANTI) or all(i < count for i in needed)
        return _kept(new, tuple(place[i] for i in needed))

    def _asof(self, rel: AsOf, needed: Needed) -> Rel:
        """Keeps all columns of the right side, because they break ties between rows at one point."""
        count = len(schema(rel.left))
        used = tuple(sorted({i for i in needed if i < count} | {a for a, _, _ in rel.keys} | {rel.points[0]}))
        place = {i: k for k, i in enumerate(used)}
        keys = tuple((place[a], b, same) for a, b, same in rel.keys)
        points = (place[rel.points[0]], rel.points[1])
        new = replace(rel, left=self.pruned(rel.left, used), right=self.all(rel.right), keys=keys, points=points)
        return _kept(new, tuple(place[i] if i < count else i - count + len(used) for i in needed))

    def _reduce(self, rel: Reduce, needed: Needed) -> Rel:
        keys = len(rel.keys)
        kept = [i for i in needed if i >= keys]
        aggregates = tuple(rel.aggregates[i - keys] for i in kept)
        exprs = (*rel.keys, *(e for a in aggregates for e in aggregate_scalars(a)))
        below, place = self._under(rel.input, exprs)
        moved = tuple(
            with_aggregate_scalars(a, tuple(renumber(e, place.__getitem__) for e in aggregate_scalars(a)))
            for a in aggregates
        )
        new = replace(rel, input=below, keys=tuple(renumber(k, place.__getitem__) for k in rel.keys), aggregates=moved)
        at = {i: i for i in range(keys)} | {i: keys + k for k, i in enumerate(kept)}
        return _kept(new, tuple(at[i] for i in needed))

    def _topk(self, rel: TopK, needed: Needed) -> Rel:
        """Rows that the order does not tell apart are told apart by the columns that stay: any order of them is one."""
        count, total = len(schema(rel.input)), len(schema(rel))
        exprs = scalars(rel)
        kept = tuple(i for i in needed if i < count)
        if not kept and not any(map(columns_of, exprs)):
            kept = tuple(range(min(count, 1)))  # something to arrange
        below, place = self._under(rel.input, exprs, kept)
        moved = tuple(renumber(e, place.__getitem__) for e in exprs)
        same = below is rel.input and _same(moved, exprs)
        new = rel if same else with_children(with_scalars(rel, moved), (below,))
        place |= {i: i - count + len(schema(below)) for i in range(count, total)}
        return _kept(new, tuple(place[i] for i in needed))

    def _whole(self, rel: TableFunction) -> bool:
        """Whether the rows that the function is called for keep all their columns: equal ones are told apart by them,
        or the plan reads the function's rows twice and must compute them once."""
        if not sets_apart(rel):
            return expands_each(rel)
        if self._twice is None:
            self._twice = read_twice(self._plan)
        return own_number(rel) in self._twice

    def _table_function(self, rel: TableFunction, needed: Needed) -> Rel:
        count, total = len(schema(rel.input)), len(schema(rel))
        below, place = self._under(rel.input, rel.args, tuple(i for i in needed if i < count))
        width = len(schema(below))
        new = replace(rel, input=below, args=tuple(renumber(a, place.__getitem__) for a in rel.args))
        place |= {i: i - count + width for i in range(count, total)}
        return _kept(new, tuple(place[i] for i in needed))


def _same(new: tuple[Scalar, ...], old: tuple[Scalar, ...]) -> bool:
    return len(new) == len(old) and all(map(is_, new, old))


def _is_union_all(rel: SetOperation) -> bool:
    return rel.kind is SetKind.UNION and rel.all


def _kept(rel: Rel, needed: Needed) -> Rel:
    row = schema(rel)
    if needed == tuple(range(len(row))):
        return rel
    if isinstance(rel, Values) and isinstance(rel.rows, LiteralRows):
        rows = rel.rows.taken(needed) if needed else ((),) * len(rel.rows)
        return Values(rows, tuple(row[i] for i in needed))
    if isinstance(rel, Values):
        return Values(tuple(tuple(r[i] for i in needed) for r in rel.rows), tuple(row[i] for i in needed))
    return Project(rel, tuple(Column(i, row[i].type, row[i].nullable) for i in needed))
