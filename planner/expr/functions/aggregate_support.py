"""The state functions of PostgreSQL's own aggregates, for aggregates of one's own (CREATE AGGREGATE … SFUNC)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import BOOL, FLOAT8, INT2, INT4, INT8, NUMERIC, Kind, SqlType
from planner.expr.functions.numbers.numeric_math import divide
from planner.expr.functions.table import ANY, per_value

_INT8S: Final = SqlType(Kind.ARRAY, element=INT8)
_FLOATS: Final = SqlType(Kind.ARRAY, element=FLOAT8)
_LIMIT: Final = 1 << 63


def _int8(value: int) -> int:
    if not -_LIMIT <= value < _LIMIT:
        raise SqlError("22003", "bigint out of range")
    return value


@per_value("int8inc", (INT8,), INT8)
def int8inc(count: int) -> int:
    return _int8(count + 1)


@per_value("int8inc_any", (INT8, ANY), INT8)
def int8inc_any(count: int, value: Any) -> int:
    return _int8(count + 1)


@per_value("int8dec", (INT8,), INT8)
def int8dec(count: int) -> int:
    return _int8(count - 1)


@per_value("int2_sum", (INT8, INT2), INT8, strict=False)
@per_value("int4_sum", (INT8, INT4), INT8, strict=False)
def int_sum(total: int | None, value: int | None) -> int | None:
    """A NULL state is the first; NULL values do not count."""
    if value is None:
        return total
    return value if total is None else _int8(total + value)


@per_value("int2_avg_accum", (_INT8S, INT2), _INT8S)
@per_value("int4_avg_accum", (_INT8S, INT4), _INT8S)
def avg_accum(state: tuple[Any, ...], value: int) -> tuple[int, int]:
    """The count and the sum."""
    if len(state) != 2 or not all(isinstance(value, int) for value in state):
        raise SqlError("22023", "expected 2-element int8 array")
    return _int8(state[0] + 1), _int8(state[1] + value)


@per_value("int8_avg", (_INT8S,), NUMERIC)
def int8_avg(state: tuple[Any, ...]) -> Decimal | None:
    """Of a count and a sum."""
    if len(state) != 2 or not all(isinstance(value, int) for value in state):
        raise SqlError("22023", "expected 2-element int8 array")
    return divide(Decimal(state[1]), Decimal(state[0])) if state[0] else None


@per_value("booland_statefunc", (BOOL, BOOL), BOOL)
def booland(state: bool, value: bool) -> bool:
    return state and value


@per_value("boolor_statefunc", (BOOL, BOOL), BOOL)
def boolor(state: bool, value: bool) -> bool:
    return state or value


def _extremes(type_: SqlType, name: str) -> None:
    pairs: tuple[tuple[str, Callable[[int, int], int]], ...] = (("larger", max), ("smaller", min))
    for suffix, pick in pairs:
        per_value(f"{name}{suffix}", (type_, type_), type_)(pick)


for _type, _name in ((INT2, "int2"), (INT4, "int4"), (INT8, "int8")):
    _extremes(_type, _name)
