"""One accumulable aggregate's results from its groups' sums: diff columns and limb rows → words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Mask, Vector, Words
from ivm.words import Kind
from planner.accumulate import AggregateCall, Component, Part, Shape, SlotSet, shape_of
from planner.aggregates import AGGREGATES, Family
from planner.intervals import scale_interval
from planner.limbs import FLOAT_BIAS, SQUARE_BIAS, Total, float_total, numeric_total
from planner.moments import float_average, float_moment, float_sum, numeric_average, numeric_moment
from storage import codec
from storage.dictionary import Dictionary
from storage.numeric import INLINE_LIMIT, from_parts
from storage.text_interval import checked_interval

Failure = tuple[int, SqlError]
"""group, its error"""

_OUT_OF_RANGE = {
    Kind.INT8: "bigint out of range", Kind.FLOAT4: "value out of range: overflow",
    Kind.FLOAT8: "value out of range: overflow",
}  # fmt: skip


@dataclass(slots=True)
class Groups:
    """``columns``: each component's int64[g]; ``limbs``: for each slot set each group's {code: amount}."""

    count: int
    columns: dict[Component, Words]
    limbs: dict[SlotSet, dict[int, dict[int, int]]]
    dictionary: Dictionary

    def column(self, part: Part, call: AggregateCall) -> Words:
        return self.columns[Component(part, call.args[0] if call.args else -1)]


def finish(call: AggregateCall, groups: Groups) -> tuple[Vector, list[Failure]]:
    """The results of one aggregate for every group, int64[g] words; failed groups have any word."""
    family = AGGREGATES[call.function].family
    if not call.args:
        return Vector(groups.column(Part.ROWS, call)), []
    counts = groups.column(Part.COUNT, call)
    if family is Family.COUNT:
        return Vector(counts), []
    empty = counts <= 0
    nulls = empty if empty.any() else None
    if family in (Family.BOOL_AND, Family.BOOL_OR):
        true = groups.column(Part.TRUE, call)
        return Vector(np.where(empty, 0, true >= counts if family is Family.BOOL_AND else true > 0), nulls), []
    shape = shape_of(call.types[0])
    if family is Family.SUM and (fast := _fast_sum(call, shape, groups)) is not None:
        return Vector(np.where(empty, 0, fast), nulls), []
    return _each(call, family, shape, groups, empty)


def _fast_sum(call: AggregateCall, shape: Shape, groups: Groups) -> Words | None:
    # sums whose words need no Python integer for each group: the result's word holds them all
    if shape is Shape.SHORT:
        return groups.column(Part.VALUE, call)
    if shape is not Shape.LONG:
        return None
    scale = call.types[0].scale or 0
    if call.types[0].kind is Kind.NUMERIC and groups.column(Part.NAN, call).any():
        return None
    low = groups.column(Part.LOW, call)
    high = groups.column(Part.HIGH, call) + (low >> 32)
    if len(high) and (high.min() < -(2**24) or high.max() >= 2**24):
        return None
    value = (high << 32) | (low & 0xFFFFFFFF)
    if len(value) and (value.min() < -INLINE_LIMIT or value.max() >= INLINE_LIMIT):
        return None
    return (value << 6) | np.int64(scale << 1)


def _each(
    call: AggregateCall, family: Family, shape: Shape, groups: Groups, empty: Mask
) -> tuple[Vector, list[Failure]]:
    result = AGGREGATES[call.function].result_type(call.types)
    compute = _computer(call, family, shape, groups)
    counts = groups.column(Part.COUNT, call)
    datums: list[object] = []
    failures: list[Failure] = []
    for group, (count, none) in enumerate(zip(counts.tolist(), empty.tolist(), strict=True)):
        datum: Any = None
        if not none:
            try:
                datum = compute(group, count)
                if result.kind is Kind.FLOAT4:
                    datum = _to_real(datum)
            except OverflowError:
                failures.append((group, SqlError("22003", _OUT_OF_RANGE.get(result.kind, "value out of range"))))
            except SqlError as error:
                failures.append((group, error))
        datums.append(datum)
    return codec.encode(result, datums, groups.dictionary), failures


def _to_real(value: float) -> float:
    with np.errstate(over="ignore"):
        real = float(np.float32(value))
    if np.isinf(real) and not np.isinf(value):
        raise OverflowError
    return real


_Compute = Callable[[int, int], Any]


def _computer(call: AggregateCall, family: Family, shape: Shape, groups: Groups) -> _Compute:
    """A function of (group, count of its values) that gives the aggregate's datum."""
    if shape is Shape.INTERVAL:
        return _intervals(call, family, groups)
    column = call.args[0]
    if shape is Shape.FLOAT:
        limbs = groups.limbs[SlotSet(column, shape, False)]
        if family is Family.SUM:
            return lambda group, count: float_sum(float_total(limbs.get(group, {}), FLOAT_BIAS))
        if family is Family.AVG:
            return lambda group, count: float_average(float_total(limbs.get(group, {}), FLOAT_BIAS), count)
        squares = groups.limbs[SlotSet(column, shape, True)]
        return lambda group, count: float_moment(
            family,
            count,
            float_total(limbs.get(group, {}), FLOAT_BIAS),
            float_total(squares.get(group, {}), SQUARE_BIAS),
        )
    total, square = _totals(call, family, shape, groups)
    if family is Family.SUM:
        return lambda group, count: _numeric(total(group))
    if family is Family.AVG:
        return lambda group, count: numeric_average(total(group), count)
    return lambda group, count: numeric_moment(family, count, total(group), square(group))


def _numeric(total: Total) -> Decimal:
    return Decimal(total.special) if total.special else from_parts(total.mantissa, total.scale)


_Totals = tuple[Callable[[int], Total], Callable[[int], Total]]


def _totals(call: AggregateCall, family: Family, shape: Shape, groups: Groups) -> _Totals:
    """The exact sum and sum of squares of each group, of integers and numerics."""
    if shape is Shape.NUMERIC:
        limbs = groups.limbs[SlotSet(call.args[0], shape, False)]
        squares = groups.limbs.get(SlotSet(call.args[0], shape, True), {})
        return (lambda g: numeric_total(limbs.get(g, {}))), (lambda g: numeric_total(squares.get(g, {})))
    scale = call.types[0].scale or 0
    parts = {component.part: column for component, column in groups.columns.items() if component.column == call.args[0]}
    nan = parts.get(Part.NAN)

    def total(group: int) -> Total:
        if nan is not None and nan[group] > 0:
            return Total(special="NaN")
        if Part.VALUE in parts:
            return Total(int(parts[Part.VALUE][group]), scale)
        return Total(_limbs(parts, Part.LOW, Part.HIGH, group), scale)

    def square(group: int) -> Total:
        value = _limbs(parts, Part.SQUARE_LOW, Part.SQUARE_HIGH, group)
        if Part.CROSS_LOW in parts:
            value += _limbs(parts, Part.CROSS_LOW, Part.CROSS_HIGH, group) << 33
            value += _limbs(parts, Part.TOP_LOW, Part.TOP_HIGH, group) << 64
        return Total(value, 2 * scale)

    return total, square


def _limbs(parts: dict[Part, Words], low: Part, high: Part, group: int) -> int:
    return int(parts[low][group]) + (int(parts[high][group]) << 32)


def _intervals(call: AggregateCall, family: Family, groups: Groups) -> _Compute:
    months, days = groups.column(Part.MONTHS, call), groups.column(Part.DAYS, call)
    low, high = groups.column(Part.LOW, call), groups.column(Part.HIGH, call)

    def compute(group: int, count: int) -> tuple[int, int, int]:
        total = int(months[group]), int(days[group]), int(low[group]) + (int(high[group]) << 32)
        if family is Family.SUM:
            return checked_interval(*total)
        return scale_interval(total, lambda part: part / count)

    return compute
