"""What finishes an accumulable aggregate's sums (``planner.aggregates.results``) as a formula, where integers
suffice."""

from __future__ import annotations

from typing import Final

from ivm.formula import GREATER, NOT_LESS, Formula, Register
from ivm.graph import Words
from ivm.kernels.codes import ADD, BITS_AND, BITS_OR, FIT, SHIFT, TO_DECIMAL
from planner import gathers
from planner.aggregates.accumulable import Accumulation, CallPlan, Part, Shape
from planner.aggregates.table import COUNTS, Family
from storage.types.numeric import INLINE_SCALE

_HALF: Final = 0xFFFFFFFF


def finishing(layout: Accumulation) -> Words | None:
    """The formula that makes a group's sums, one diff column a word, its row of results; groups without rows go."""
    if layout.slot_sets:
        return None
    formula = Formula()
    zero = formula.constant(0)
    keep = formula.compare(formula.column(0), zero, GREATER)
    words: list[int] = []
    nulls: list[tuple[int, int, Register]] = []
    for i, (plan, column) in enumerate(zip(layout.plans, layout.schema, strict=True)):
        result = _finished(formula, plan, keep)
        if result is None:
            return None
        if column.nullable:
            nulls.append((len(layout.schema) + i // 64, i % 64, result))
        words.append(result)
    words += [zero] * (gathers.width(layout.schema) - len(words))
    return formula.made(keep, words, nulls)


def _finished(formula: Formula, plan: CallPlan, keep: Register) -> Register | None:
    """An aggregate's result, as ``planner.aggregates.results`` has it; None: no formula has it."""
    zero = formula.constant(0)
    if not plan.call.args:
        return formula.column(plan.places[Part.ROWS])
    counts = formula.column(plan.places[Part.COUNT])
    if plan.family in COUNTS:
        return counts
    value: Register | None = None
    some = formula.compare(counts, zero, GREATER)
    match plan.family:
        case Family.BOOL_AND:
            value = formula.compare(formula.column(plan.places[Part.TRUE]), counts, NOT_LESS)
        case Family.BOOL_OR:
            value = formula.compare(formula.column(plan.places[Part.TRUE]), zero, GREATER)
        case Family.SUM:
            value = _sum(formula, plan, formula.both(keep, some))
        case _:
            pass
    return None if value is None else formula.choose(some, value, formula.constant(None))


def _sum(formula: Formula, plan: CallPlan, mask: Register) -> Register | None:
    if plan.shape is Shape.SHORT:
        return formula.column(plan.places[Part.VALUE])
    if plan.shape is not Shape.LONG:
        return None
    if Part.NAN in plan.places:
        formula.step(FIT, formula.column(plan.places[Part.NAN]), None, mask, 1)  # 0, or less where it is not final
    low = formula.column(plan.places[Part.LOW])
    carry = formula.step(SHIFT, low, constant=-32)
    high = formula.step(ADD, formula.column(plan.places[Part.HIGH]), carry, mask, 64)
    high = formula.step(SHIFT, formula.step(FIT, high, None, mask, 32), constant=32)
    value = formula.step(BITS_OR, high, formula.step(BITS_AND, low, formula.constant(_HALF)))
    scale = plan.call.types[0].scale or 0
    if not 0 <= scale <= INLINE_SCALE:
        return None
    return formula.step(TO_DECIMAL, value, None, mask, scale)
