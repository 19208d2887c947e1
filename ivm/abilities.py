"""What row functions and reducers can do beyond the least that is asked of them.

``isinstance`` of a protocol looks up each of its members, 25 to 50 microseconds, and a one-shot query asks several
times for each of its nodes. The answer is that of a class, so each class is asked once.
"""

from __future__ import annotations

from typing import Final, TypeGuard

from ivm.graph import (
    FormulaFunction,
    FormulaReducer,
    OrderedReducer,
    PickingReducer,
    Reducer,
    RowFunction,
    WatchedReducer,
)

_KNOWN: Final[dict[tuple[type, type], bool]] = {}
"""By class and protocol. There are few classes."""


def _meets(value: object, protocol: type) -> bool:
    key = type(value), protocol
    found = _KNOWN.get(key)
    if found is None:
        found = _KNOWN[key] = isinstance(value, protocol)
    return found


def has_formula(function: RowFunction) -> TypeGuard[FormulaFunction]:
    """Whether it may be expressible as a formula."""
    return _meets(function, FormulaFunction)


def picks(reducer: Reducer) -> TypeGuard[PickingReducer]:
    """Whether it reads a few rows of each group."""
    return _meets(reducer, PickingReducer)


def searches(reducer: Reducer) -> TypeGuard[OrderedReducer]:
    """Whether it can find what changes in a large group by searching it."""
    return _meets(reducer, OrderedReducer)


def may_be_slow(reducer: Reducer) -> TypeGuard[WatchedReducer]:
    """Whether it may take long for one group, and can be watched."""
    return _meets(reducer, WatchedReducer)


def reduces_by_formula(reducer: Reducer) -> TypeGuard[FormulaReducer]:
    """Whether it may be expressible as a formula of the groups' sums."""
    return _meets(reducer, FormulaReducer)
