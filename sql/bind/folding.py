"""Operators on two constants that are computed at once: in a long chain of them each would be planned and run."""

from __future__ import annotations

from collections.abc import Callable
from operator import add, mul, sub
from typing import Any, Final

from ivm.words import DATE, INT4, INT8, TEXT, Kind
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
