"""PostgreSQL's transition functions of avg, stddev and regression, which can also be called by themselves.

A state is [n, Σx, Σdx²], of pairs (y, x) [n, Σx, Σdx², Σy, Σdy², Σdxdy], where dx is x's distance from the mean (Youngs
and Cramer, "Some results relevant to choice of sum and sum-of-product algorithms", 1971).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ivm.errors import SqlError
from ivm.words import FLOAT8, Kind, SqlType
from planner.expr.functions.table import per_value

_STATE: Final = SqlType(Kind.ARRAY, element=FLOAT8)
Floats = Sequence[float]


def _checked(name: str, state: Floats, width: int) -> Floats:
    if len(state) != width or not all(isinstance(value, float) for value in state):
        raise SqlError("22023", f"{name}: expected {width}-element float8 array")
    return state


def _made(state: Floats) -> list[float]:
    if any(map(math.isinf, state)):
        raise SqlError("22003", "value out of range: overflow")
    return list(state)


@per_value("float8_accum", (_STATE, FLOAT8), _STATE)
def float8_accum(state: Floats, value: float) -> list[float]:
    count, total, squares = _checked("float8_accum", state, 3)
    count, total = count + 1, total + value
    if count > 1:
        squares += (value * count - total) ** 2 / (count * (count - 1))
    return _made((count, total, squares))


@per_value("float8_combine", (_STATE, _STATE), _STATE)
def float8_combine(left: Floats, right: Floats) -> list[float]:
    one, two = _checked("float8_combine", left, 3), _checked("float8_combine", right, 3)
    if not one[0] or not two[0]:
        return list(two if not one[0] else one)
    count = one[0] + two[0]
    apart = one[1] / one[0] - two[1] / two[0]
    return _made((count, one[1] + two[1], one[2] + two[2] + one[0] * two[0] * apart * apart / count))


@per_value("float8_regr_accum", (_STATE, FLOAT8, FLOAT8), _STATE)
def float8_regr_accum(state: Floats, y: float, x: float) -> list[float]:
    count, sum_x, squares_x, sum_y, squares_y, products = _checked("float8_regr_accum", state, 6)
    count, sum_x, sum_y = count + 1, sum_x + x, sum_y + y
    if count > 1:
        far_x, far_y, scale = x * count - sum_x, y * count - sum_y, 1 / (count * (count - 1))
        squares_x += far_x * far_x * scale
        squares_y += far_y * far_y * scale
        products += far_x * far_y * scale
    return _made((count, sum_x, squares_x, sum_y, squares_y, products))


@per_value("float8_regr_combine", (_STATE, _STATE), _STATE)
def float8_regr_combine(left: Floats, right: Floats) -> list[float]:
    one, two = _checked("float8_regr_combine", left, 6), _checked("float8_regr_combine", right, 6)
    if not one[0] or not two[0]:
        return list(two if not one[0] else one)
    count, both = one[0] + two[0], one[0] * two[0]
    x, y = one[1] / one[0] - two[1] / two[0], one[3] / one[0] - two[3] / two[0]
    return _made((
        count, one[1] + two[1], one[2] + two[2] + both * x * x / count,
        one[3] + two[3], one[4] + two[4] + both * y * y / count, one[5] + two[5] + both * x * y / count,
    ))  # fmt: skip
