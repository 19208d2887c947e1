"""Which expressions can raise an error on a row. Conservative: what is not known to be safe may raise."""

from __future__ import annotations

from typing import Final

from ivm.words import Kind, SqlType, Storage
from planner.expr.functions.table import FUNCTIONS
from planner.expr.scalar import Call, Exists, Quantified, Scalar, ScalarSubquery, children
from planner.logical.nodes import Rel
from planner.logical.traversal import children as inputs
from planner.logical.traversal import scalars, walk
from planner.memo import by_identity

_SAFE_NAMES: Final = frozenset(
    {
        "=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from", "is null", "is not null", "not",
        "is true", "is not true", "is false", "is not false", "is unknown", "is not unknown", "equality_class",
        "order_prefix", "order_bytes", "upper", "lower", "length", "char_length", "greatest", "least", "nullif", "||",
        "row", "field of row", "row is null", "row is not null", "btrim", "ltrim", "rtrim", "starts_with", "position",
        "strpos",
    }
)  # fmt: skip
_INTEGERS: Final = (Kind.INT2, Kind.INT4, Kind.INT8)
_TEXTS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.NAME, Kind.BPCHAR)


def can_raise(expr: Scalar) -> bool:
    """Whether evaluating the expression may fail on some row (subqueries inside count by their own expressions)."""
    if isinstance(expr, ScalarSubquery):
        return True
    if isinstance(expr, Exists | Quantified):
        return rel_can_raise(expr.rel)
    if isinstance(expr, Call) and not _safe_call(expr):
        return True
    return any(can_raise(part) for part in children(expr))


def error_of(expr: Scalar) -> str | None:
    """The one error that an expression can raise, by the name of the type that overflows; None: it may raise others."""
    found: set[str] = set()
    for part in walk(expr):
        if isinstance(part, Call) and not _safe_call(part):
            if part.function[0] not in "+-*" or part.type.kind not in _INTEGERS:
                return None
            found.add(part.type.kind.value)
        elif isinstance(part, Exists | Quantified | ScalarSubquery):
            return None
    return found.pop() if len(found) == 1 else None


@by_identity
def rel_can_raise(rel: Rel) -> bool:
    """Whether any expression in a plan may fail."""
    return any(can_raise(part) for e in scalars(rel) for part in walk(e)) or any(map(rel_can_raise, inputs(rel)))


@by_identity
def rel_is_volatile(rel: Rel) -> bool:
    """Whether a plan calls a volatile function: computing fewer of its rows would be seen."""
    return any(_is_volatile(part) for e in scalars(rel) for part in walk(e)) or any(map(rel_is_volatile, inputs(rel)))


def _is_volatile(part: Scalar) -> bool:
    function = FUNCTIONS.get(part.function) if isinstance(part, Call) else None
    return function is not None and function.volatility == "volatile"


def _safe_call(call: Call) -> bool:
    name = call.function.partition("(")[0] or call.function
    if name == "cast":
        return _safe_cast(call.args[0].type, call.type)
    if name == "try_cast":
        return True
    if name == "||":
        return call.type.kind in _TEXTS
    return name in _SAFE_NAMES


def _safe_cast(source: SqlType, target: SqlType) -> bool:
    if source == target:
        return True
    if source.kind in _INTEGERS and target.kind in _INTEGERS:
        return _INTEGERS.index(source.kind) <= _INTEGERS.index(target.kind)
    if source.kind in _INTEGERS and target.kind in (Kind.FLOAT8, Kind.NUMERIC):
        return target.storage is not Storage.DIRECT or target.kind is Kind.FLOAT8
    if source.kind is Kind.NUMERIC and target.kind is Kind.NUMERIC:
        return target.precision is None
    if target.kind is Kind.TEXT:
        return True
    return source.kind in _TEXTS and target.kind in _TEXTS and target.precision is None
