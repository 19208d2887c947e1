"""Results of accumulable aggregates from their groups' sums: diff columns and limb rows → words.

The public functions are, or make, the ``finish`` rules of entries in ``planner.aggregates.table``.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Mask, Vector, Words
from ivm.words import Kind
from planner.aggregates.components import CallPlan, DiffColumn, Groups, Shape, SlotSet
from planner.aggregates.exact_sums import FLOAT_BIAS, SQUARE_BIAS, Total, float_total, numeric_total
from planner.aggregates.float_sums import rounded
from planner.aggregates.function import Failure, ResultRule
from planner.aggregates.moments import (
    Moment,
    PairRule,
    float_average,
    float_moment,
    float_sum,
    numeric_average,
    numeric_moment,
)
from planner.expr.functions.datetime.intervals import scale_interval
from planner.expr.functions.formula import BITS
from storage.types import codec
from storage.types.numeric import from_parts
from storage.types.text_interval import checked_interval

Results = tuple[Vector, list[Failure]]
"""Each group's word, and the groups that failed, which have any word."""

_OUT_OF_RANGE = {
    Kind.INT8: "bigint out of range", Kind.FLOAT4: "value out of range: overflow",
    Kind.FLOAT8: "value out of range: overflow",
}  # fmt: skip


def counted(plan: CallPlan, groups: Groups) -> Results:
    """The number of rows, or of the argument's values."""
    return Vector(groups.column(plan, DiffColumn.COUNT if plan.call.args else DiffColumn.ROWS)), []


def all_true(plan: CallPlan, groups: Groups) -> Results:
    """Whether all values are true."""
    return _where_some(plan, groups, groups.column(plan, DiffColumn.TRUE) >= groups.column(plan, DiffColumn.COUNT)), []


def any_true(plan: CallPlan, groups: Groups) -> Results:
    """Whether any value is true."""
    return _where_some(plan, groups, groups.column(plan, DiffColumn.TRUE) > 0), []


def summed(plan: CallPlan, groups: Groups) -> Results:
    """The exact sum, rounded once."""
    if (fast := _fast_sum(plan, groups)) is not None:
        return _where_some(plan, groups, fast), []
    match plan.shape:
        case Shape.INTERVAL:
            spans = _intervals(plan, groups)
            return _each(plan, groups, lambda group, count: checked_interval(*spans(group)))
        case Shape.FLOAT:
            if (rounded := _rounded_sums(plan, groups)) is not None:
                return rounded
            sums = _floats(plan.total, groups)
            return _each(plan, groups, lambda group, count: float_sum(sums(group)))
        case _:
            total, _ = _totals(plan, groups)
            return _each(plan, groups, lambda group, count: _numeric(total(group)))


def averaged(plan: CallPlan, groups: Groups) -> Results:
    """The exact sum divided by the count, rounded once."""
    match plan.shape:
        case Shape.INTERVAL:
            spans = _intervals(plan, groups)
            return _each(plan, groups, lambda group, count: scale_interval(spans(group), lambda part: part / count))
        case Shape.FLOAT:
            sums = _floats(plan.total, groups)
            return _each(plan, groups, lambda group, count: float_average(sums(group), count))
        case _:
            total, _ = _totals(plan, groups)
            return _each(plan, groups, lambda group, count: numeric_average(total(group), count))


def moment(which: Moment) -> ResultRule:
    """A variance or standard deviation."""

    def finish(plan: CallPlan, groups: Groups) -> Results:
        if plan.shape is Shape.FLOAT:
            sums, squares = _floats(plan.total, groups), _floats(plan.squares, groups)
            return _each(plan, groups, lambda group, count: float_moment(which, count, sums(group), squares(group)))
        total, square = _totals(plan, groups)
        return _each(plan, groups, lambda group, count: numeric_moment(which, count, total(group), square(group)))

    return finish


def bits(is_set: Callable[[int, int], bool]) -> ResultRule:
    """Makes an integer of the bits where ``is_set(number of values with the bit set, number of values)`` holds."""

    def finish(plan: CallPlan, groups: Groups) -> Results:
        assert plan.total is not None
        set_bits = groups.limbs[plan.total]
        sign = BITS[plan.result.kind] - 1

        def compute(group: int, count: int) -> int:
            found = [bit for bit, times in set_bits.get(group, {}).items() if is_set(times, count)]
            return sum(-(1 << bit) if bit == sign else 1 << bit for bit in found)

        return _each(plan, groups, compute)

    return finish


def pairs(rule: PairRule) -> ResultRule:
    """Makes a rule from a function of the sums of pairs."""

    def finish(plan: CallPlan, groups: Groups) -> Results:
        sums = [(groups.limbs[s], SQUARE_BIAS if s.squared else FLOAT_BIAS) for s in plan.sets]

        def compute(group: int, count: int) -> float | None:
            return rule(count, [float_total(limbs.get(group, {}), bias) for limbs, bias in sums])

        return _each(plan, groups, compute)

    return finish


def _where_some(plan: CallPlan, groups: Groups, found: Words | Mask) -> Vector:
    """Makes results NULL in the groups without values."""
    empty = groups.column(plan, DiffColumn.COUNT) <= 0
    words = found.astype(np.int64, copy=False)
    return Vector(np.where(empty, 0, words), empty) if np.count_nonzero(empty) else Vector(words)


def _fast_sum(plan: CallPlan, groups: Groups) -> Words | None:
    # sums that fit the result's word in every group, so that no Python integers are needed
    if plan.shape is Shape.SHORT:
        return groups.column(plan, DiffColumn.VALUE)
    if plan.shape is not Shape.LONG:
        return None
    type_ = plan.call.types[0]
    if type_.kind is Kind.NUMERIC and groups.column(plan, DiffColumn.NAN).any():
        return None
    low = groups.column(plan, DiffColumn.LOW)
    high = groups.column(plan, DiffColumn.HIGH) + (low >> 32)
    if len(high) and (high.min() < -(2**24) or high.max() >= 2**24):
        return None
    value = (high << 32) | (low & 0xFFFFFFFF)
    return (value << 6) | np.int64((type_.scale or 0) << 1)


def _rounded_sums(plan: CallPlan, groups: Groups) -> Results | None:
    """The sums of doubles that have all groups' limbs side by side; None for others, and if one is not finite."""
    assert plan.total is not None
    if plan.total not in groups.dense or plan.result.kind is not Kind.FLOAT8:
        return None
    found = rounded(*groups.dense[plan.total])
    if found is None or not np.isfinite(found).all():
        return None
    return _where_some(plan, groups, codec.float_to_word(found)), []


def _each(plan: CallPlan, groups: Groups, compute: Callable[[int, int], Any]) -> Results:
    """``compute(group, count of its values)`` for each group that has values."""
    kind = plan.result.kind
    datums: list[object] = []
    failures: list[Failure] = []
    for group, count in enumerate(groups.column(plan, DiffColumn.COUNT).tolist()):
        datum: Any = None
        if count > 0:
            try:
                datum = compute(group, count)
                if kind is Kind.FLOAT4:
                    datum = _to_real(datum)
            except OverflowError:
                failures.append((group, SqlError("22003", _OUT_OF_RANGE.get(kind, "value out of range"))))
            except SqlError as error:
                failures.append((group, error.with_traceback(None)))
        datums.append(datum)
    return codec.encode(plan.result, datums, groups.dictionary), failures


def _to_real(value: float) -> float:
    with np.errstate(over="ignore"):
        real = float(np.float32(value))
    if np.isinf(real) and not np.isinf(value):
        raise OverflowError
    return real


def _floats(slot_set: SlotSet | None, groups: Groups) -> Callable[[int], Total]:
    """The exact total of each group's doubles, or of their squares."""
    assert slot_set is not None
    limbs, bias = groups.limbs[slot_set], SQUARE_BIAS if slot_set.squared else FLOAT_BIAS
    return lambda group: float_total(limbs.get(group, {}), bias)


def _numeric(total: Total) -> Decimal:
    return Decimal(total.special) if total.special else from_parts(total.mantissa, total.scale)


_Totals = tuple[Callable[[int], Total], Callable[[int], Total]]


def _totals(plan: CallPlan, groups: Groups) -> _Totals:
    """The exact sum and sum of squares of each group of integers or numerics."""
    if plan.shape is Shape.NUMERIC:
        assert plan.total is not None
        limbs = groups.limbs[plan.total]
        squares = {} if plan.squares is None else groups.limbs[plan.squares]
        return (lambda g: numeric_total(limbs.get(g, {}))), (lambda g: numeric_total(squares.get(g, {})))
    scale = plan.call.types[0].scale or 0
    parts = {part: groups.diffs[:, place].tolist() for part, place in plan.places.items()}

    def total(group: int) -> Total:
        if DiffColumn.NAN in parts and parts[DiffColumn.NAN][group] > 0:
            return Total(special="NaN")
        if DiffColumn.VALUE in parts:
            return Total(parts[DiffColumn.VALUE][group], scale)
        return Total(_limbs(parts, DiffColumn.LOW, DiffColumn.HIGH, group), scale)

    def square(group: int) -> Total:
        value = _limbs(parts, DiffColumn.SQUARE_LOW, DiffColumn.SQUARE_HIGH, group)
        if DiffColumn.CROSS_LOW in parts:
            value += _limbs(parts, DiffColumn.CROSS_LOW, DiffColumn.CROSS_HIGH, group) << 33
            value += _limbs(parts, DiffColumn.TOP_LOW, DiffColumn.TOP_HIGH, group) << 64
        return Total(value, 2 * scale)

    return total, square


def _limbs(parts: dict[DiffColumn, list[int]], low: DiffColumn, high: DiffColumn, group: int) -> int:
    return parts[low][group] + (parts[high][group] << 32)


def _intervals(plan: CallPlan, groups: Groups) -> Callable[[int], tuple[int, int, int]]:
    """The months, days and microseconds of each group, summed separately."""
    parts = {part: groups.diffs[:, place].tolist() for part, place in plan.places.items()}
    return lambda group: (
        parts[DiffColumn.MONTHS][group], parts[DiffColumn.DAYS][group],
        _limbs(parts, DiffColumn.LOW, DiffColumn.HIGH, group)
    )  # fmt: skip
