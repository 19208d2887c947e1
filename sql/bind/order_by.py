"""Items of ORDER BY and GROUP BY: sort keys, and bare integers that name a column of the select list."""

from __future__ import annotations

import re
from typing import Final

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from planner.expr.scalar import Scalar, SortKey
from sql.bind.comparable import check_order
from sql.bind.overloads import no_operator
from sql.syntax.nodes import queries as nodes

_PATTERN_ORDER: Final = re.compile("~[<>]~")
"""The order of text_pattern_ops, by code point, which is that of ``<`` and ``>`` here."""
_PATTERN_KINDS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.UNKNOWN)


def sort_key(expr: Scalar, item: nodes.OrderItem) -> SortKey:
    """The sort key of an ORDER BY item; NULLs sort as if larger than all values unless the item says otherwise."""
    if item.using is not None:
        _check_operator(expr.type, *item.using)
    check_order(expr.type, item.at)
    nulls_first = item.descending if item.nulls_first is None else item.nulls_first
    return SortKey(expr, item.descending, nulls_first)


def _check_operator(type_: SqlType, symbol: str, at: int) -> None:
    """Raises 42809 for an operator of USING that is no order, and 42883 for one that the type does not have."""
    if not _PATTERN_ORDER.fullmatch(symbol):
        raise SqlError(
            "42809", f"operator {symbol} is not a valid ordering operator",
            hint='Ordering operators must be "<" or ">" members of btree operator families.', position=at + 1,
        )  # fmt: skip
    if type_.kind in _PATTERN_KINDS:
        return
    if type_.kind is Kind.NAME:
        raise SqlError("42883", f"operator requires run-time type coercion: name {symbol} name", position=at + 1)
    raise no_operator(symbol, (type_, type_), at)


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
