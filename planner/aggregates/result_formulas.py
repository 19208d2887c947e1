"""Results of accumulable aggregates (``planner.aggregates.results``) as formulas, where integers suffice.

Each function is a ``planner.aggregates.function.FormulaRule``: ``counts`` is the number of the group's values, ``mask``
selects the groups that have any.
"""

from __future__ import annotations

from typing import Final

from ivm.formula import GREATER, NOT_LESS, Formula, Register
from ivm.kernels.codes import ADD, BITS_AND, BITS_OR, FIT, SHIFT, TO_DECIMAL
from planner.aggregates.components import CallPlan, DiffColumn, Shape

_HALF: Final = 0xFFFFFFFF


def counted(formula: Formula, plan: CallPlan, counts: Register, mask: Register) -> Register:
    """The number of values."""
    return counts


def all_true(formula: Formula, plan: CallPlan, counts: Register, mask: Register) -> Register:
    """Whether all values are true."""
    return formula.compare(formula.column(plan.places[DiffColumn.TRUE]), counts, NOT_LESS)


def any_true(formula: Formula, plan: CallPlan, counts: Register, mask: Register) -> Register:
    """Whether any value is true."""
    return formula.compare(formula.column(plan.places[DiffColumn.TRUE]), formula.constant(0), GREATER)


def summed(formula: Formula, plan: CallPlan, counts: Register, mask: Register) -> Register | None:
    """The sum of integers or of numerics stored as scaled integers."""
    if plan.shape is Shape.SHORT:
        return formula.column(plan.places[DiffColumn.VALUE])
    if plan.shape is not Shape.LONG:
        return None
    if DiffColumn.NAN in plan.places:
        # 0, or less where it is not final
        formula.step(FIT, formula.column(plan.places[DiffColumn.NAN]), None, mask, 1)
    low = formula.column(plan.places[DiffColumn.LOW])
    carry = formula.step(SHIFT, low, constant=-32)
    high = formula.step(ADD, formula.column(plan.places[DiffColumn.HIGH]), carry, mask, 64)
    high = formula.step(SHIFT, formula.step(FIT, high, None, mask, 32), constant=32)
    value = formula.step(BITS_OR, high, formula.step(BITS_AND, low, formula.constant(_HALF)))
    return formula.step(TO_DECIMAL, value, None, mask, plan.call.types[0].scale or 0)
