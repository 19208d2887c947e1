"""Operators on two constants that are computed at once: in a long chain of them each would be planned and run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import add, mul, sub
from typing import Any, Final

from ivm.words import DATE, INT4, INT8, TEXT, Kind, SqlType
from planner.expr.functions.table import function_key
from planner.expr.scalar import Call, Literal, Scalar

_LIMITS: Final = {Kind.INT4: 1 << 31, Kind.INT8: 1 << 63, Kind.DATE: 1 << 20}
"""Results are from minus that on to less than that; dates, days since 2000, not near those that there are."""
_LONGEST: Final = 1 << 14
"""Characters of a text that is made here; longer ones would be made again for each further part."""
_INTEGERS: Final[dict[str, Callable[[Any, Any], int]]] = {
    function_key(symbol, (a, b)): function
    for symbol, function in (("+", add), ("-", sub), ("*", mul))
    for a in (INT4, INT8)
    for b in (INT4, INT8)
} | {function_key("+", (DATE, INT4)): add, function_key("-", (DATE, INT4)): sub}
_JOIN: Final = function_key("||", (TEXT, TEXT))


def folded(call: Call) -> Scalar:
    """The value of arithmetic of integers, or of a date and days, without overflow, or of texts put together; any other
    call as it is."""
    operation = _INTEGERS.get(call.function)
    if operation is None and call.function != _JOIN:
        return call
    left, right = call.args
    if not isinstance(left, Literal) or not isinstance(right, Literal) or left.value is None or right.value is None:
        return call
    if operation is None:
        text = f"{left.value}{right.value}"
        return call if len(text) > _LONGEST else Literal(text, call.type)
    number, limit = operation(left.value, right.value), _LIMITS[call.type.kind]
    return Literal(number, call.type) if -limit <= number < limit else call


def folded_columns(call: Call, left: Sequence[Any], right: Sequence[Any]) -> list[object] | None:
    """The values of a call for which ``folded`` would give a constant on each of these rows; None: not on all."""
    operation = _INTEGERS.get(call.function)
    if operation is None or None in left or None in right:
        return None
    numbers: list[object] = list(map(operation, left, right))
    limit = _LIMITS[call.type.kind]
    return numbers if -limit <= min(numbers) and max(numbers) < limit else None  # type: ignore[type-var, operator]


def summed(type_: SqlType, numbers: Sequence[Any], count: int) -> Literal | None:
    """The sum of that many constants of an integer type, which are these or all the same; None: one on the way to it
    is out of range, or NULL."""
    given = numbers if len(numbers) == count else [*numbers] * count
    limit = _LIMITS.get(type_.kind)
    if limit is None or None in given:
        return None
    sums = list(accumulate(given))
    return Literal(sums[-1], type_) if -limit <= min(sums) and max(sums) < limit else None
