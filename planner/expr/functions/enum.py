"""Functions of enums: their labels in order. ALTER TYPE may add labels."""

from __future__ import annotations

from ivm.words import SqlType
from planner.expr.functions.table import ANYARRAY, ANYENUM, CallSite, per_value

Positions = tuple[int, ...]


def _positions(type_: SqlType) -> Positions:
    assert type_.enum is not None, "an enum has labels"
    return tuple(type_.enum.labels)


@per_value("enum_range", (ANYENUM,), ANYARRAY, strict=False, volatility="stable", needs_site=True)
def enum_range(site: CallSite, value: int | None) -> Positions:
    return _positions(site.args[0])


@per_value("enum_range", (ANYENUM, ANYENUM), ANYARRAY, strict=False, volatility="stable", needs_site=True)
def enum_range_between(site: CallSite, low: int | None, high: int | None) -> Positions:
    return tuple(p for p in _positions(site.args[0]) if (low is None or p >= low) and (high is None or p <= high))


@per_value("enum_first", (ANYENUM,), ANYENUM, strict=False, volatility="stable", needs_site=True)
def enum_first(site: CallSite, value: int | None) -> int | None:
    return next(iter(_positions(site.args[0])), None)


@per_value("enum_last", (ANYENUM,), ANYENUM, strict=False, volatility="stable", needs_site=True)
def enum_last(site: CallSite, value: int | None) -> int | None:
    return next(iter(_positions(site.args[0])[::-1]), None)
