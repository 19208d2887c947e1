"""Comparison, ``starts with`` and ``like_regex`` of a jsonpath, for one pair of values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from planner.expr.functions.jsonpath.moments import Moment, compare_moments
from storage.types.jsonpath.nodes import Item, Step
from storage.types.jsonpath.parser import path_regex


def matched(item: Item, left: Any, right: Any, zone: tuple[str, int] | None) -> bool | None:
    """Whether a predicate holds of two values (``like_regex``: of the first); None is unknown. Raises 0A000."""
    if item.step is Step.STARTS_WITH:
        return left.startswith(right) if isinstance(left, str) and isinstance(right, str) else None
    if item.step is Step.LIKE_REGEX:
        return path_regex(*item.value).matches(left) if isinstance(left, str) else None
    return _compared(item.step, left, right, zone)


def _compared(step: Step, left: Any, right: Any, zone: tuple[str, int] | None) -> bool | None:
    if left is None or right is None:
        if (left is None) is not (right is None):
            return step is Step.NOT_EQUAL
        sign: int | None = 0
    elif isinstance(left, Moment) and isinstance(right, Moment):
        sign = compare_moments(left, right, zone)
    elif type(left) is type(right) and isinstance(left, bool | str | Decimal):
        a, b = (left.encode(), right.encode()) if isinstance(left, str) else (left, right)
        sign = (a > b) - (a < b)
    else:
        return None
    if sign is None:
        return None
    match step:
        case Step.EQUAL:
            return sign == 0
        case Step.NOT_EQUAL:
            return sign != 0
        case Step.LESS:
            return sign < 0
        case Step.LESS_EQUAL:
            return sign <= 0
        case Step.GREATER:
            return sign > 0
        case _:
            return sign >= 0
