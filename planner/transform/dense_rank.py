"""dense_rank() of all rows as the row number among the distinct values of its order.

Rule: numbering(rows: …, dense_rank) = rows ⋈ numbering(distinct (keys, order) of rows: row_number), on (keys, order)
where NULLs are equal. Groups of peers cannot be counted by adding up parts of a partition, rows can: so a change costs
a search and the rows whose number changes. Side conditions: an order, no limit (the first k are found as they are), and
nothing in keys or order that raises, since it is computed twice.
"""

from __future__ import annotations

from dataclasses import replace

from ivm.words import BOOL
from planner.expr.functions.compare import NOT_DISTINCT
from planner.expr.scalar import Call, Column, SortKey
from planner.logical.fallibility import can_raise, rel_is_volatile
from planner.logical.nodes import Join, JoinKind, Numbering, Project, Reduce, Rel, TopK, schema
from planner.logical.traversal import bottom_up, conjunction, own_columns


def by_groups(rel: Rel) -> Rel:
    """The plan with each dense_rank computed from groups of peers."""
    return bottom_up(rel, _rewritten)


def _rewritten(rel: Rel) -> Rel:
    if not isinstance(rel, TopK) or Numbering.DENSE_RANK not in rel.numbers or rel.limit is not None or not rel.order:
        return rel
    wanted = (*rel.keys, *(key.expr for key in rel.order))
    if any(map(can_raise, wanted)) or rel_is_volatile(rel):
        return rel
    others = tuple(n for n in rel.numbers if n is not Numbering.DENSE_RANK)
    rows = replace(rel, numbers=others) if others else rel.input
    groups = Reduce(rel.input, tuple(dict.fromkeys(wanted)), ())
    found = own_columns(schema(groups))
    place = {expr: found[i] for i, expr in enumerate(groups.keys)}
    order = tuple(SortKey(place[k.expr], k.descending, k.nulls_first) for k in rel.order)
    ranks = TopK(groups, tuple(place[k] for k in rel.keys), order, None, None, (Numbering.ROW_NUMBER,))
    width = len(schema(rows))
    same = [
        Call(NOT_DISTINCT, (expr, replace(column, index=width + column.index)), BOOL, False)
        for expr, column in place.items()
    ]
    joined = Join(JoinKind.INNER, rows, ranks, conjunction(tuple(same)))
    row = schema(joined)
    base = len(schema(rel.input))
    at = [base + others.index(n) if n in others else len(row) - 1 for n in rel.numbers]
    columns = [*range(base), *at]
    return Project(joined, tuple(Column(i, row[i].type, row[i].nullable) for i in columns))
