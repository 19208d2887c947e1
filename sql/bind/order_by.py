"""Items of ORDER BY and GROUP BY: sort keys, and bare integers that name a column of the select list."""

from __future__ import annotations

from ivm.errors import SqlError
from planner.expr.scalar import Scalar, SortKey
from sql.bind.comparable import check_order
from sql.syntax.nodes import queries as nodes


def sort_key(expr: Scalar, item: nodes.OrderItem) -> SortKey:
    """The sort key of an ORDER BY item; NULLs sort as if larger than all values unless the item says otherwise."""
    check_order(expr.type, item.at)
    nulls_first = item.descending if item.nulls_first is None else item.nulls_first
    return SortKey(expr, item.descending, nulls_first)


def ordinal(expr: nodes.Expr, count: int, clause: str) -> int | None:
    """The 0-based index among ``count`` columns that a bare integer means; None for any other expression. Raises 42P10,
    42601."""
    if isinstance(expr, nodes.Number):
        if not expr.text.lstrip("-").isdigit():
            raise SqlError("42601", f"non-integer constant in {clause}", position=expr.at + 1)
        index = int(expr.text)
        if not 1 <= index <= count:
            raise SqlError("42P10", f"{clause} position {index} is not in select list", position=expr.at + 1)
        return index - 1
    if isinstance(expr, nodes.String | nodes.Null | nodes.Boolean):
        raise SqlError("42601", f"non-integer constant in {clause}", position=expr.at + 1)
    return None
