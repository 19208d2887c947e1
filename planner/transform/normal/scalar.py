"""The normal form of expressions, and a total order of expressions.

Commutative operands, comparisons, ANDs and ORs are put in order.

Rule: the same value and the same error on every row. So an expression that can raise keeps its place: in an AND or OR
later arguments see only the rows that earlier ones let through, and of two operands that both fail the first one's
error is reported.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ivm.words import Kind, SqlType
from planner.expr.comparison import Comparison
from planner.expr.functions.boolean import NOT
from planner.expr.functions.library import FUNCTIONS
from planner.expr.functions.table import Function
from planner.expr.scalar import (
    And,
    Call,
    Case,
    Checked,
    Coalesce,
    Column,
    Literal,
    Or,
    Parameter,
    Scalar,
    children,
    with_children,
)
from planner.logical.fallibility import can_raise, error_of
from planner.logical.join_keys import operator
from planner.memo import by_identity

Order = tuple[Any, ...]
"""Comparable with every other one: a number for the kind of expression, then the details of that kind."""


def normal(expr: Scalar) -> Scalar:
    """The normal form of all expressions that have the same parts in another order."""
    parts = children(expr)
    if parts:
        new = tuple(normal(p) for p in parts)
        if any(a is not b for a, b in zip(parts, new, strict=True)):
            expr = with_children(expr, new)
    match expr:
        case And() | Or():
            return _ordered(expr)
        case Call():
            return _call(expr)
        case _:
            return expr


def in_order(parts: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """The distinct arguments of an AND or OR in order, sorted only between those that can raise."""
    found: list[Scalar] = []
    run: list[Scalar] = []
    for part in parts:
        if can_raise(part):
            found += [*sorted(run, key=order), part]
            run = []
        else:
            run.append(part)
    return tuple(dict.fromkeys((*found, *sorted(run, key=order))))


def orderless(exprs: tuple[Scalar, ...]) -> bool:
    """Whether the order of evaluation cannot be observed: at most one can raise, or all raise the same error."""
    raising = [e for e in exprs if can_raise(e)]
    return len(raising) < 2 or (None not in (errors := {error_of(e) for e in raising}) and len(errors) == 1)


def _ordered(expr: And | Or) -> Scalar:
    flat: list[Scalar] = []
    for part in expr.args:
        flat += part.args if type(part) is type(expr) else (part,)
    args = in_order(tuple(flat))
    return args[0] if len(args) == 1 else type(expr)(args)


def _call(call: Call) -> Scalar:
    name = operator(call)
    if name == NOT and isinstance(inner := call.args[0], Call):
        if operator(inner) == NOT:
            return inner.args[0]
        if (negated := _negated(inner)) is not None:
            return _call(Call(negated, inner.args, call.type, call.nullable))
    if len(call.args) != 2 or name is None:
        return call
    left, right = call.args
    function = FUNCTIONS.get(call.function)
    if function is not None and function.comparison is not None and left.type.kind is not Kind.RECORD:
        call = Call(call.function, call.args, call.type, left.nullable or right.nullable)
    one, two = order(left), order(right)
    descending = function is not None and function.comparison in (Comparison.GREATER, Comparison.NOT_LESS)
    if one < two or (one == two and not descending) or not orderless((left, right)):
        return call
    swapped = _swapped(function, name, call)
    return call if swapped is None else Call(swapped, (right, left), call.type, call.nullable)


def _negated(call: Call) -> str | None:
    """The key of the comparison that holds where this one does not; None: the call is no comparison."""
    function = FUNCTIONS.get(call.function)
    if function is None or function.comparison is None:
        return None
    key = function.comparison.negator.value + call.function[len(function.name) :]
    return key if key in FUNCTIONS else None


def _swapped(function: Function | None, name: str, call: Call) -> str | None:
    """The key of the function that gives the same with its arguments exchanged; None: there is none."""
    if function is None or not (function.commutative or function.comparison is not None):
        return None
    turned = name if function.comparison is None else function.comparison.commutator.value
    signature = call.function[len(name) :]
    if call.function == function.name:
        return call.function
    one, _, two = signature[1:-1].partition(",")
    key = f"{turned}({two},{one})"
    return key if key in FUNCTIONS else None


@by_identity
def order(expr: Scalar) -> Order:
    """The sort key of an expression: columns by number, then computed expressions, then constants."""
    constant = not _reads_columns(expr)
    match expr:
        case Column():
            return 0, expr.index, _named(expr.type)
        case Literal():
            return 20, repr(expr.value), _named(expr.type)
        case Parameter():
            return 21, expr.index, _named(expr.type)
        case Call():
            return (11 if constant else 1), expr.function, _named(expr.type), len(expr.args), *map(order, expr.args)
        case And() | Or() | Case() | Coalesce() | Checked():
            parts = children(expr)
            return (12 if constant else 2), type(expr).__name__, _named(expr.type), len(parts), *map(order, parts)
        case _:
            return 30, repr(expr)


@by_identity
def _reads_columns(expr: Scalar) -> bool:
    return isinstance(expr, Column) or any(map(_reads_columns, children(expr)))


@lru_cache(1024)
def _named(type_: SqlType) -> str:
    return repr(type_)
