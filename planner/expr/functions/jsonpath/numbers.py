"""Arithmetic and the methods of numbers in a jsonpath."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from ivm.errors import SqlError
from planner.expr.functions.jsonpath.errors import failing
from planner.expr.functions.numbers.numeric import ceiling, floor
from planner.expr.functions.numbers.numeric_math import checked, divide, modulo, truncate_to
from storage.types.jsonpath.nodes import Step
from storage.types.numeric import WIDE, numeric_text
from storage.types.text_number import parse_float

OPERATIONS: Final[dict[Step, Callable[[Decimal, Decimal], Decimal]]] = {
    Step.ADD: lambda a, b: checked(WIDE.add(a, b)),
    Step.SUBTRACT: lambda a, b: checked(WIDE.subtract(a, b)),
    Step.MULTIPLY: lambda a, b: checked(WIDE.multiply(a, b)),
    Step.DIVIDE: divide,
    Step.MODULO: modulo,
}
_METHODS: Final[dict[str, Callable[[Decimal], Decimal]]] = {"abs": abs, "floor": floor, "ceiling": ceiling}


def array_index(found: list[Any]) -> int:
    """The index that a subscript gives. Raises PathError."""
    if len(found) != 1 or not isinstance(found[0], Decimal):
        raise failing("22033", "jsonpath array subscript is not a single numeric value")
    index = int(truncate_to(found[0]))
    if not -(2**31) <= index < 2**31:
        raise failing("22033", "jsonpath array subscript is out of integer range")
    return index


def method_of_number(name: str, value: Any) -> Decimal:
    """abs(), floor() and ceiling(). Raises PathError."""
    if not isinstance(value, Decimal):
        raise failing("22036", f"jsonpath item method .{name}() can only be applied to a numeric value")
    return _METHODS[name](value)


def to_double(value: Any) -> Decimal:
    """double(). Raises PathError."""
    if isinstance(value, Decimal):
        if _double(numeric_text(value)) is None:
            raise failing(
                "22036", "numeric argument of jsonpath item method .double() is out of range for type double precision"
            )
        return value
    if not isinstance(value, str):
        raise failing("22036", "jsonpath item method .double() can only be applied to a string or numeric value")
    found = _double(value)
    if found is None:
        raise failing(
            "22036", "string argument of jsonpath item method .double() is not a valid representation of a double "
            "precision number",
        )  # fmt: skip
    return Decimal(format(Decimal(f"{found:.15g}"), "f"))


def _double(text: str) -> float | None:
    try:
        found = parse_float(text, "double precision")
    except SqlError:
        return None
    return found if math.isfinite(found) else None
