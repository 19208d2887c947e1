"""Window functions that number rows: row_number, rank and dense_rank. All others are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ivm.errors import SqlError, unsupported
from ivm.words import INT8
from planner.levels import relevel
from planner.logical import Numbering, Rel, TopK, schema
from planner.scalar import Column, Scalar
from sql.bind.coerce import resolve_unknown
from sql.bind.overloads import no_function
from sql.bind.scope import FUNCTION_BASE, WINDOW_BASE, Scope, WindowCall
from sql.syntax import nodes

if TYPE_CHECKING:
    from sql.bind.expression import Binder

NAMES: Final = frozenset(n.value for n in Numbering)


def window_function(b: Binder, node: nodes.Apply, name: str) -> Scalar:
    """A window function: noted in its query, and a placeholder column for its result. Raises 42P20, 42803, 0A000."""
    from sql.bind.expression import sort_key

    over = node.over
    assert over is not None
    if b.inside_aggregate:
        message = "aggregate function calls cannot contain window function calls"
        raise SqlError("42803", message, position=node.at + 1)
    if b.scope.windows is None:
        message = f"window functions are not allowed in {b.scope.clause or b.clause}"
        raise SqlError("42P20", message, position=node.at + 1)
    if name not in NAMES:
        raise unsupported(f"{name}() as a window function", "row_number, rank and dense_rank are.", node.at + 1)
    if node.args or node.star:
        raise no_function(name, [b.bind(a).type for a in node.args], node.at)
    if over.other or node.filter is not None or node.distinct or node.order:
        raise unsupported("a window by name or with a frame, and FILTER or DISTINCT before OVER", position=node.at + 1)
    noted, b.scope.windows = b.scope.windows, None
    clause, b.scope.clause = b.scope.clause, "window definitions"
    try:
        partition = tuple(resolve_unknown(b.env, b.bind(e), node.at) for e in over.partition)
        order = tuple(sort_key(resolve_unknown(b.env, b.bind(i.expr), i.at), i) for i in over.order)
    finally:
        b.scope.windows, b.scope.clause = noted, clause
    call = WindowCall(Numbering(name), partition, order)
    if call not in noted:
        noted.append(call)
    return Column(WINDOW_BASE + noted.index(call), INT8, False)


def expressions(calls: Sequence[WindowCall]) -> list[Scalar]:
    """What windows are made of."""
    return [e for call in calls for e in (*call.partition, *(k.expr for k in call.order))]


def numbered(scope: Scope, rel: Rel) -> tuple[Rel, dict[int, int]]:
    """The query's rows with a column for each window function, and where it stands by its placeholder."""
    calls = scope.windows or []
    place: dict[int, int] = {}
    for shared in dict.fromkeys((c.partition, c.order) for c in calls):
        width = len(schema(rel))
        mine = [i for i, c in enumerate(calls) if (c.partition, c.order) == shared]
        place |= {WINDOW_BASE + i: width + n for n, i in enumerate(mine)}
        rel = TopK(rel, *shared, None, None, tuple(calls[i].function for i in mine))
    return rel, place


def placed(expr: Scalar, place: dict[int, int]) -> Scalar:
    """The expression over the numbered rows."""
    return relevel(expr, lambda level, index: (level, place.get(index, index) if level == 0 else index))


def has_window(indexes: set[int]) -> bool:
    """Whether one of the columns stands for a window function."""
    return any(WINDOW_BASE <= i < FUNCTION_BASE for i in indexes)


def regrouped(call: WindowCall, rewrite: Callable[[Scalar], Scalar]) -> WindowCall:
    """The call over a query's groups."""
    return replace(
        call,
        partition=tuple(rewrite(e) for e in call.partition),
        order=tuple(replace(k, expr=rewrite(k.expr)) for k in call.order),
    )
