"""One accumulable aggregate's results from its groups' sums: diff columns and limb rows → words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Vector, Words
from ivm.words import Kind
from planner.aggregates.accumulable import CallPlan, Part, Shape, SlotSet
from planner.aggregates.exact_sums import FLOAT_BIAS, SQUARE_BIAS, Total, float_total, numeric_total
from planner.aggregates.moments import (
    float_average,
    float_moment,
    float_sum,
    numeric_average,
    numeric_moment,
    pair_moment,
)
from planner.aggregates.table import BITS, COUNTS, PAIRS, Family
from planner.expr.functions.datetime.intervals import scale_interval
from storage.dictionary import Dictionary
from storage.types import codec
from storage.types.numeric import from_parts
from storage.types.text_interval import checked_interval

Failure = tuple[int, SqlError]
"""group, its error"""

_OUT_OF_RANGE = {
    Kind.INT8: "bigint out of range", Kind.FLOAT4: "value out of range: overflow",
    Kind.FLOAT8: "value out of range: overflow",
}  # fmt: skip


@dataclass(slots=True)
class Groups:
    """``diffs``: the main rows' diff columns, int64[g, k]; ``limbs``: for each slot set each group's {code: amount}."""

    diffs: Words
    limbs: dict[SlotSet, dict[int, dict[int, int]]]
    dictionary: Dictionary

    def column(self, plan: CallPlan, part: Part) -> Words:
        return self.diffs[:, plan.places[part]]


def finish(plan: CallPlan, groups: Groups) -> tuple[Vector, list[Failure]]:
    """The results of one aggregate for every group, int64[g] words; failed groups have any word."""
    family = plan.family
    if not plan.call.args:
        return Vector(groups.column(plan, Part.ROWS)), []
    counts = groups.column(plan, Part.COUNT)
    if family in COUNTS:
        return Vector(counts), []
    empty = counts <= 0
    nulls = empty if np.count_nonzero(empty) else None
    if family in (Family.BOOL_AND, Family.BOOL_OR):
        true = groups.column(plan, Part.TRUE)
        words: Words = (true >= counts if family is Family.BOOL_AND else true > 0).astype(np.int64)
        return Vector(words if nulls is None else np.where(nulls, 0, words), nulls), []
    if family is Family.SUM and (fast := _fast_sum(plan, groups)) is not None:
        return Vector(fast if nulls is None else np.where(nulls, 0, fast), nulls), []
    return _each(plan, groups, counts)


def _fast_sum(plan: CallPlan, groups: Groups) -> Words | None:
    # sums whose words need no Python integer for each group: the result's word holds them all
    if plan.shape is Shape.SHORT:
        return groups.column(plan, Part.VALUE)
    if plan.shape is not Shape.LONG:
        return None
    type_ = plan.call.types[0]
    if type_.kind is Kind.NUMERIC and groups.column(plan, Part.NAN).any():
        return None
    low = groups.column(plan, Part.LOW)
    high = groups.column(plan, Part.HIGH) + (low >> 32)
    if len(high) and (high.min() < -(2**24) or high.max() >= 2**24):
        return None
    value = (high << 32) | (low & 0xFFFFFFFF)
    return (value << 6) | np.int64((type_.scale or 0) << 1)


def _each(plan: CallPlan, groups: Groups, counts: Words) -> tuple[Vector, list[Failure]]:
    compute = _computer(plan, groups)
    kind = plan.result.kind
    datums: list[object] = []
    failures: list[Failure] = []
    for group, count in enumerate(counts.tolist()):
        datum: Any = None
        if count > 0:
            try:
                datum = compute(group, count)
                if kind is Kind.FLOAT4:
                    datum = _to_real(datum)
            except OverflowError:
                failures.append((group, SqlError("22003", _OUT_OF_RANGE.get(kind, "value out of range"))))
            except SqlError as error:
                failures.append((group, error))
        datums.append(datum)
    return codec.encode(plan.result, datums, groups.dictionary), failures


def _to_real(value: float) -> float:
    with np.errstate(over="ignore"):
        real = float(np.float32(value))
    if np.isinf(real) and not np.isinf(value):
        raise OverflowError
    return real


_Compute = Callable[[int, int], Any]


def _computer(plan: CallPlan, groups: Groups) -> _Compute:
    """A function of (group, count of its values) that gives the aggregate's datum."""
    family = plan.family
    if family in BITS:
        return _bits(plan, groups)
    if family in PAIRS:
        return _pairs(plan, groups)
    if plan.shape is Shape.INTERVAL:
        return _intervals(plan, groups)
    if plan.shape is Shape.FLOAT:
        return _floats(plan, groups)
    total, square = _totals(plan, groups)
    if family is Family.SUM:
        return lambda group, count: _numeric(total(group))
    if family is Family.AVG:
        return lambda group, count: numeric_average(total(group), count)
    return lambda group, count: numeric_moment(family, count, total(group), square(group))


def _floats(plan: CallPlan, groups: Groups) -> _Compute:
    assert plan.total is not None
    family, limbs = plan.family, groups.limbs[plan.total]

    def total(group: int) -> Total:
        return float_total(limbs.get(group, {}), FLOAT_BIAS)

    if family is Family.SUM:
        return lambda group, count: float_sum(total(group))
    if family is Family.AVG:
        return lambda group, count: float_average(total(group), count)
    assert plan.squares is not None
    squares = groups.limbs[plan.squares]
    return lambda group, count: float_moment(
        family, count, total(group), float_total(squares.get(group, {}), SQUARE_BIAS)
    )


def _bits(plan: CallPlan, groups: Groups) -> _Compute:
    assert plan.total is not None
    family, set_bits = plan.family, groups.limbs[plan.total]
    sign = {Kind.INT2: 15, Kind.INT4: 31, Kind.INT8: 63}[plan.result.kind]

    def compute(group: int, count: int) -> int:
        value = 0
        for bit, times in set_bits.get(group, {}).items():
            held = times >= count if family is Family.BIT_AND else times > 0
            if times & 1 if family is Family.BIT_XOR else held:
                value += -(1 << bit) if bit == sign else 1 << bit
        return value

    return compute


def _pairs(plan: CallPlan, groups: Groups) -> _Compute:
    sums = [(groups.limbs[s], SQUARE_BIAS if s.squared else FLOAT_BIAS) for s in plan.sets]

    def compute(group: int, count: int) -> float | None:
        return pair_moment(plan.family, count, [float_total(limbs.get(group, {}), bias) for limbs, bias in sums])

    return compute


def _numeric(total: Total) -> Decimal:
    return Decimal(total.special) if total.special else from_parts(total.mantissa, total.scale)


_Totals = tuple[Callable[[int], Total], Callable[[int], Total]]


def _totals(plan: CallPlan, groups: Groups) -> _Totals:
    """The exact sum and sum of squares of each group, of integers and numerics."""
    if plan.shape is Shape.NUMERIC:
        assert plan.total is not None
        limbs = groups.limbs[plan.total]
        squares = {} if plan.squares is None else groups.limbs[plan.squares]
        return (lambda g: numeric_total(limbs.get(g, {}))), (lambda g: numeric_total(squares.get(g, {})))
    scale = plan.call.types[0].scale or 0
    parts = {part: groups.diffs[:, place].tolist() for part, place in plan.places.items()}

    def total(group: int) -> Total:
        if Part.NAN in parts and parts[Part.NAN][group] > 0:
            return Total(special="NaN")
        if Part.VALUE in parts:
            return Total(parts[Part.VALUE][group], scale)
        return Total(_limbs(parts, Part.LOW, Part.HIGH, group), scale)

    def square(group: int) -> Total:
        value = _limbs(parts, Part.SQUARE_LOW, Part.SQUARE_HIGH, group)
        if Part.CROSS_LOW in parts:
            value += _limbs(parts, Part.CROSS_LOW, Part.CROSS_HIGH, group) << 33
            value += _limbs(parts, Part.TOP_LOW, Part.TOP_HIGH, group) << 64
        return Total(value, 2 * scale)

    return total, square


def _limbs(parts: dict[Part, list[int]], low: Part, high: Part, group: int) -> int:
    return parts[low][group] + (parts[high][group] << 32)


def _intervals(plan: CallPlan, groups: Groups) -> _Compute:
    parts = {part: groups.diffs[:, place].tolist() for part, place in plan.places.items()}

    def compute(group: int, count: int) -> tuple[int, int, int]:
        micros = _limbs(parts, Part.LOW, Part.HIGH, group)
        total = parts[Part.MONTHS][group], parts[Part.DAYS][group], micros
        if plan.family is Family.SUM:
            return checked_interval(*total)
        return scale_interval(total, lambda part: part / count)

    return compute
