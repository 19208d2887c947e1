"""ORDER BY and windows, as they are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ivm.words import INT8, INTERVAL, Kind, SqlType
from sql.deparse.context import Reader
from sql.deparse.tree import Frame, FrameEnd, Shown, SortItem, Window
from sql.syntax.nodes import queries as nodes

_MOMENTS = (Kind.DATE, Kind.TIME, Kind.TIMETZ, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)
_EXCLUDED = {"current": " EXCLUDE CURRENT ROW", "group": " EXCLUDE GROUP", "ties": " EXCLUDE TIES"}


def sort_items(
    r: Reader, items: Sequence[nodes.OrderItem], wanted: SqlType | None = None,
    known: Callable[[nodes.Expr], Shown | None] = lambda expr: None,
) -> tuple[SortItem, ...]:  # fmt: skip
    """ORDER BY. ``wanted``: what the keys are cast to; ``known``: the keys that stand elsewhere, as they do there."""
    return tuple(SortItem(known(i.expr) or r.coerced(i.expr, wanted), sort_tail(i)) for i in items)


def sort_tail(item: nodes.OrderItem) -> str:
    """The direction and the place of NULLs, where they are not the usual ones."""
    if item.using is not None:
        first = item.descending if item.nulls_first is None else item.nulls_first
        return f" USING {item.using[0]} NULLS {'FIRST' if first else 'LAST'}"
    if item.descending:
        return " DESC NULLS LAST" if item.nulls_first is False else " DESC"
    return " NULLS FIRST" if item.nulls_first else ""


def window(r: Reader, over: nodes.Over) -> Window:
    """A window of OVER or WINDOW."""
    order = sort_items(r, over.order)
    partition = tuple(r.value(e) for e in over.partition)
    return Window(over.name, partition, order, _frame(r, over), over.bare)


def _frame(r: Reader, over: nodes.Over) -> Frame | None:
    if over.frame is None:
        return None
    wanted: SqlType = INT8
    if over.frame.mode == "range" and len(over.order) == 1:
        key = r.type(over.order[0].expr)
        wanted = INTERVAL if key.kind in _MOMENTS else key
    start = _frame_end(r, over.frame.start, wanted)
    end = None if over.frame.short else _frame_end(r, over.frame.end, wanted)
    return Frame(over.frame.mode.upper(), start, end, _EXCLUDED.get(over.frame.exclude, ""))


def _frame_end(r: Reader, bound: nodes.FrameBound, wanted: SqlType) -> FrameEnd:
    side = "FOLLOWING" if bound.following else "PRECEDING"
    if bound.unbounded:
        return FrameEnd(None, f"UNBOUNDED {side}")
    if bound.offset is None:
        return FrameEnd(None, "CURRENT ROW")
    untyped = r.type(bound.offset).kind is Kind.UNKNOWN
    return FrameEnd(r.value(bound.offset, wanted if untyped else None), side)
