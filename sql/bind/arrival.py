"""The order in which rows arrive where FROM says it: the rows of functions and of VALUES come in their own order.

A collection has no order. Where one is seen, such rows get numbers: of a query's result, in ``ARRAY(query)``, of LIMIT
in a subquery, and as the order of aggregates like array_agg that are given none. A plan of filters, projections and
functions over one row keeps its order anyway, since it needs no dataflow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ivm.words import INT8, ColumnType
from planner.expr.literal_rows import LiteralRows
from planner.expr.scalar import Aggregate, Literal, Scalar, SortKey
from planner.logical.apart import calls_volatile, sets_apart
from planner.logical.nodes import Filter, Join, JoinKind, Project, Rel, TableFunction, TopK, Values, schema
from planner.logical.traversal import all_inputs, has_subquery, nodes, own_columns, renumber, scalars

_ORDERED: Final = ("array_agg", "string_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg")
"""The built-in aggregates whose result depends on the order of their rows."""
_SERIES: Final = "generate_series"
Numbered = tuple[Rel, tuple[SortKey, ...]]
"""A plan's columns and then some by which its rows arrive in order: numbers, or what windows are ordered by."""


def numbered(rel: Rel) -> Numbered | None:
    """The plan with the numbers of its rows; none for at most one row. None: its rows arrive in no known order."""
    match rel:
        case Values():
            return _numbered_values(rel)
        case Filter():
            below = numbered(rel.input)
            return None if below is None else (replace(rel, input=below[0]), below[1])
        case Project():
            below = numbered(rel.input)
            if below is None:
                return None
            return _with_numbers(
                replace(rel, input=below[0], exprs=(*rel.exprs, *(k.expr for k in below[1]))), len(rel.exprs), below[1]
            )
        case TableFunction() if not sets_apart(rel):
            return _numbered_function(rel)
        case TopK() if rel.order or rel.keys:
            return _sorted(rel)
        case Join() if rel.kind in (JoinKind.INNER, JoinKind.LEFT):
            return _numbered_join(rel)
        case _:
            return None


def first_rows(rel: Rel, limit: Scalar | None, offset: Scalar | None) -> Rel:
    """LIMIT and OFFSET without an order: the first rows to arrive. Numbers may follow the plan's columns."""
    found = None if endless(rel) else numbered(rel)
    if found is None:
        return TopK(rel, (), (), limit, offset)
    return TopK(found[0], (), found[1], limit, offset)


def in_order(rel: Rel, *, limited: bool) -> tuple[Rel, tuple[SortKey, ...]]:
    """A query's plan and the order that its rows arrive in, () where it is kept anyway or is not known. ``limited``: a
    LIMIT follows, which ends a series by itself."""
    found = None if _is_direct(rel) or (limited and endless(rel)) else numbered(rel)
    if found is None or not found[1]:
        return rel, ()
    return found[0], found[1]


def ordered_aggregates(
    rel: Rel, order: tuple[SortKey, ...], aggregates: list[Aggregate]
) -> tuple[Rel, list[Aggregate]]:  # fmt: skip
    """The rows of FROM and the aggregates over them, with the rows' ``order``, or that in which they arrive, as the
    order of those that depend on one and have none."""
    if not any(map(_takes_order, aggregates)):
        return rel, aggregates
    if not order:
        found = numbered(rel)
        if found is None:
            return rel, aggregates
        rel, order = found[0], found[1]
    return rel, [replace(a, order=order) if _takes_order(a) else a for a in aggregates]


def endless(rel: Rel) -> bool:
    """Whether the plan reads a series, which a LIMIT may end."""
    return any(isinstance(n, TableFunction) and _SERIES in n.function for n in nodes(rel, all_inputs))


def _takes_order(aggregate: Aggregate) -> bool:
    ordered = aggregate.function.partition("(")[0] in _ORDERED or aggregate.python is not None
    return ordered and not aggregate.order and not aggregate.distinct


def _is_direct(rel: Rel) -> bool:
    """Whether the plan is computed row by row, and its rows stay in order."""
    while isinstance(rel, Filter | Project | TableFunction) and not any(map(has_subquery, scalars(rel))):
        rel = rel.input
    return isinstance(rel, Values)


def _with_numbers(rel: Rel, first: int, keys: tuple[SortKey, ...] = ()) -> Numbered:
    """The plan, whose columns from ``first`` on are for the sort keys; numbers where there are none."""
    columns = own_columns(schema(rel))[first:]
    return rel, tuple(replace(key, expr=c) for key, c in zip(keys or map(SortKey, columns), columns, strict=True))


def _sorted(rel: TopK) -> Numbered | None:
    """The rows of a window or a LIMIT, in its order."""
    keys = (*map(SortKey, rel.keys), *rel.order)
    if any(calls_volatile(k.expr) for k in keys):
        return None
    own = own_columns(schema(rel))
    return _with_numbers(Project(rel, (*own, *(k.expr for k in keys))), len(own), keys)


def _numbered_values(rel: Values) -> Numbered:
    if len(rel.rows) <= 1:
        return rel, ()
    rows: tuple[tuple[Scalar, ...], ...] | LiteralRows
    if isinstance(rel.rows, LiteralRows):
        rows = LiteralRows((*rel.rows.columns, tuple(range(len(rel.rows)))), (*rel.rows.types, INT8))
    else:
        rows = tuple((*row, Literal(i, INT8)) for i, row in enumerate(rel.rows))
    return _with_numbers(Values(rows, (*rel.schema, ColumnType(INT8, False))), len(rel.schema))


def _numbered_function(rel: TableFunction) -> Numbered | None:
    below = numbered(rel.input)
    if below is None:
        return None
    width, more = len(schema(rel.input)), len(below[1])
    new = replace(rel, input=below[0], ordinality=True)
    own = own_columns(schema(new))
    shown = (*own[:width], *own[width + more : len(own) - (not rel.ordinality)])
    keys = (*below[1], SortKey(own[-1]))
    return _with_numbers(Project(new, (*shown, *own[width : width + more], own[-1])), len(shown), keys)


def _numbered_join(rel: Join) -> Numbered | None:
    """A join in the order of its left rows, and of the right ones for each of them."""
    left = numbered(rel.left)
    if left is None:
        return None
    right = numbered(rel.right)
    if right is None and not left[1]:
        return None
    two, numbers = (rel.right, ()) if right is None else right
    width, more = len(schema(rel.left)), len(left[1])
    on: Scalar = renumber(rel.on, lambda i: i if i < width else i + more) if more else rel.on
    new = replace(rel, left=left[0], right=two, on=on)
    own = own_columns(schema(new))
    end = len(own) - len(numbers)
    shown = (*own[:width], *own[width + more : end])
    keys = (*left[1], *numbers)
    return _with_numbers(Project(new, (*shown, *own[width : width + more], *own[end:])), len(shown), keys)
