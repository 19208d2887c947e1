"""Which expressions can raise an error on a row, by what the table of functions says. Conservative: the table's default
is that a function may raise anything."""

from __future__ import annotations

from ivm.words import INTERVAL, TIMESTAMPTZ, SqlType
from planner.expr.functions.library import RAISING_CASTS, TRY_CAST, called_function, is_volatile
from planner.expr.functions.table import Function, Raises
from planner.expr.parts import walk
from planner.expr.scalar import (
    LEAVES,
    Alike,
    Call,
    Checked,
    Exists,
    Literal,
    Quantified,
    Scalar,
    ScalarSubquery,
    children,
)
from planner.logical.nodes import Rel
from planner.logical.temporal import is_clock
from planner.logical.traversal import children as inputs
from planner.logical.traversal import scalars
from planner.memo import by_identity


def can_raise(expr: Scalar) -> bool:
    """Whether evaluating the expression can fail on some row.

    A scalar subquery always counts; EXISTS, ANY and ALL count if their plan can fail.
    """
    todo = [expr]
    while todo:
        part = todo.pop()
        if type(part) in LEAVES:
            continue
        if isinstance(part, ScalarSubquery | Checked) or (isinstance(part, Call) and _raises(part) is not Raises.NEVER):
            return True
        if isinstance(part, Alike) and (part.operator == "+" or any(can_raise(f.body) for f in part.forms)):
            return True
        if isinstance(part, Exists | Quantified) and rel_can_raise(part.rel):
            return True
        todo += children(part)
    return False


def error_of(expr: Scalar) -> str | None:
    """The integer type whose overflow is the only error that the expression can raise, by name; None otherwise."""
    found: set[str] = set()
    for part in walk(expr):
        if isinstance(part, Exists | Quantified | ScalarSubquery | Checked | Alike):
            return None
        if not isinstance(part, Call) or (raises := _raises(part)) is Raises.NEVER:
            continue
        if raises is not Raises.OVERFLOW:
            return None
        found.add(part.type.kind.value)
    return found.pop() if len(found) == 1 else None


@by_identity
def rel_can_raise(rel: Rel) -> bool:
    """Whether any expression in the plan can fail."""
    return any(map(can_raise, scalars(rel))) or any(map(rel_can_raise, inputs(rel)))


@by_identity
def rel_is_volatile(rel: Rel) -> bool:
    """Whether a plan calls a volatile function: computing fewer of its rows would be seen."""
    return any(is_volatile(part) for e in scalars(rel) for part in walk(e)) or any(map(rel_is_volatile, inputs(rel)))


def _raises(call: Call) -> Raises:
    """What the call itself may raise, whatever its arguments raise."""
    function = called_function(call)
    if function is not None and function.raises is Raises.NEVER:
        return Raises.NEVER
    if _is_near_present(call, function):
        return Raises.NEVER
    source = call.args[0].type if call.args else None
    if call.function == TRY_CAST or (call.function in RAISING_CASTS and source == call.type):
        return Raises.NEVER
    if function is None:
        return Raises.ANYTHING
    if function.raises is Raises.TYPMOD:
        return Raises.ANYTHING if _has_typmod(call.type) else Raises.NEVER
    return function.raises


def _is_near_present(call: Call, function: Function | None) -> bool:
    """Whether the call is the current time, or that moved by a constant interval of less than a thousand years."""
    if is_clock(call):
        return True
    if function is None or function.args != (TIMESTAMPTZ, INTERVAL) or not function.follows:
        return False
    clock, by = call.args
    if not is_clock(clock) or not isinstance(by, Literal):
        return False
    value = by.value
    return isinstance(value, tuple) and abs(value[0]) < 12_000 and abs(value[1]) < 365_000 and abs(value[2]) < 1 << 54


def _has_typmod(type_: SqlType) -> bool:
    """Whether values may not fit the type's length, precision or scale."""
    return type_.precision is not None
