"""OVERLAPS: whether two periods, each given by its ends or by a start and a length, have a moment in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ivm.words import BOOL, INTERVAL, TIME, TIMESTAMP, TIMESTAMPTZ, SqlType
from planner.expr.functions.datetime.intervals import plus_interval, plus_interval_zoned, wrapped_time
from planner.expr.functions.table import CallSite, Volatility, per_value

Shift = Callable[[CallSite, int, Any], int]


def overlaps(first: int | None, first_end: int | None, second: int | None, second_end: int | None) -> bool | None:
    """NULL only where the unknown end decides. The ends of a period may be given in either order."""
    first, first_end = _ordered(first, first_end)
    second, second_end = _ordered(second, second_end)
    if first is None or second is None:
        return None
    if first == second:
        return None if first_end is None or second_end is None else True
    if first < second:
        first, first_end, second, second_end = second, second_end, first, first_end
    if second_end is None:
        return None
    if first < second_end:
        return True
    return None if first_end is None else False


def _ordered(start: int | None, end: int | None) -> tuple[int | None, int | None]:
    if start is None:
        return end, None
    return (end, start) if end is not None and start > end else (start, end)


def _ended(kind: SqlType, shift: Shift) -> Callable[..., bool | None]:
    """``overlaps`` of a call in which the types say which of the ends are lengths."""

    def implementation(site: CallSite, *values: Any) -> bool | None:
        ends: list[int | None] = []
        for at in (0, 2):
            start, end = values[at : at + 2]
            if site.args[at + 1] != kind and end is not None:
                end = None if start is None else shift(site, start, end)
            ends += (start, end)
        return overlaps(*ends)

    return implementation


def _add(kind: SqlType, shift: Shift, volatility: Volatility) -> None:
    for one in (kind, INTERVAL):
        for two in (kind, INTERVAL):
            by_settings = volatility if INTERVAL in (one, two) else "immutable"
            per_value("overlaps", (kind, one, kind, two), BOOL, strict=False, needs_site=True, volatility=by_settings)(
                _ended(kind, shift)
            )


_add(TIME, lambda _site, start, length: wrapped_time(start, length), "immutable")
_add(TIMESTAMP, lambda _site, start, length: plus_interval(start, length), "immutable")
_add(TIMESTAMPTZ, lambda site, start, length: plus_interval_zoned(start, length, site.context.timezone), "settings")
