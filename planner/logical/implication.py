"""Whether some conditions of a query imply another one, as those of a lookup must imply a partial index's predicate, or
exclude it, as they may exclude a partition's bound.

The rule is one-sided, as PostgreSQL's (predtest.c): what is not recognised is not implied. Conditions are in the form
of ``recognised``. A condition holds where it is true, so NULL counts as false.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from ivm.words import Kind
from planner.expr.comparison import Comparison
from planner.expr.functions.boolean import IS_NOT_NULL, IS_NULL
from planner.expr.functions.library import called_function, comparison_of
from planner.expr.scalar import And, Call, Column, Literal, Or, Scalar, children, with_children
from planner.logical.traversal import conjuncts

_INTEGERS: Final = frozenset({Kind.INT2, Kind.INT4, Kind.INT8})
_ORDERED: Final = frozenset(
    {
        Kind.INT2,
        Kind.INT4,
        Kind.INT8,
        Kind.NUMERIC,
        Kind.TEXT,
        Kind.VARCHAR,
        Kind.DATE,
        Kind.TIMESTAMP,
        Kind.TIMESTAMPTZ,
    }
)
"""The types whose constants compare as their Python datums do."""

_OUTCOMES: Final[dict[Comparison, Callable[[Any, Any], bool]]] = {
    Comparison.EQUAL: lambda a, b: a == b,
    Comparison.NOT_EQUAL: lambda a, b: a != b,
    Comparison.LESS: lambda a, b: a < b,
    Comparison.NOT_GREATER: lambda a, b: a <= b,
    Comparison.GREATER: lambda a, b: a > b,
    Comparison.NOT_LESS: lambda a, b: a >= b,
}
_ABOVE: Final = (Comparison.NOT_LESS, Comparison.GREATER)
_BELOW: Final = (Comparison.NOT_GREATER, Comparison.LESS)


def recognised(expr: Scalar) -> Scalar:
    """The expression without what its surroundings know of NULLs, so that equal expressions are equal objects."""
    parts = children(expr)
    if parts:
        expr = with_children(expr, tuple(map(recognised, parts)))
    return replace(expr, nullable=True) if isinstance(expr, Column | Call) else expr


def implied(wanted: Scalar, given: Sequence[Scalar]) -> bool:
    """Whether ``wanted`` is true of every row of which all ``given`` conditions are true."""
    if isinstance(wanted, And):
        return all(implied(part, given) for part in conjuncts(wanted))
    if wanted in given:
        return True
    if isinstance(wanted, Or) and any(implied(part, given) for part in wanted.args):
        return True
    if any(_implies(part, wanted) for part in given):
        return True
    return any(all(implied(wanted, conjuncts(arm)) for arm in part.args) for part in given if isinstance(part, Or))


def refuted(condition: Scalar, given: Sequence[Scalar]) -> bool:
    """Whether ``condition`` is true of no row of which all ``given`` conditions are true."""
    if isinstance(condition, And):
        return any(refuted(part, given) for part in conjuncts(condition))
    if isinstance(condition, Or):
        return all(refuted(part, given) for part in condition.args)
    if isinstance(condition, Literal) and condition.value is not True:
        return True
    if any(_excludes(part, condition) for part in given):
        return True
    return any(all(refuted(condition, conjuncts(arm)) for arm in part.args) for part in given if isinstance(part, Or))


def _excludes(given: Scalar, condition: Scalar) -> bool:
    """Whether two conditions, neither of them an AND or OR, are never true together."""
    for one, other in ((given, condition), (condition, given)):
        if isinstance(one, Call) and one.function == IS_NULL:
            value = one.args[0]
            return _needs(other, value) or other == Call(IS_NOT_NULL, (value,), one.type)
    first, second = _bound(given), _bound(condition)
    if first is None or second is None or first[0] != second[0] or not _alike(first[2], second[2]):
        return False
    return _reaches(first[1], first[2].value, second[1].negator, second[2].value)


def _implies(given: Scalar, wanted: Scalar) -> bool:
    """Whether one condition alone implies another, neither of them an AND or OR."""
    if isinstance(wanted, Call) and wanted.function == IS_NOT_NULL:
        return _needs(given, wanted.args[0])
    one, other = _bound(given), _bound(wanted)
    if one is None or other is None or one[0] != other[0] or not _alike(one[2], other[2]):
        return False
    return _reaches(one[1], one[2].value, other[1], other[2].value)


def _reaches(given: Comparison, least: Any, wanted: Comparison, limit: Any) -> bool:
    """Whether ``x given least`` implies ``x wanted limit``."""
    if given is Comparison.EQUAL:
        return _OUTCOMES[wanted](least, limit)
    if wanted is Comparison.NOT_EQUAL:
        return given is not Comparison.NOT_EQUAL and not _OUTCOMES[given](limit, least)
    for loose, strict in (_ABOVE, _BELOW):
        if given in (loose, strict) and wanted in (loose, strict):
            return _OUTCOMES[strict](least, limit) or (bool(least == limit) and (given is strict or wanted is loose))
    return False


def _needs(given: Scalar, value: Scalar) -> bool:
    """Whether a condition is never true where ``value`` is NULL: it is computed from it by strict functions alone."""
    if given == value:
        return True
    function = called_function(given)
    if function is None or not function.strict or not isinstance(given, Call):
        return False
    return any(_needs(part, value) for part in given.args)


def _bound(expr: Scalar) -> tuple[Scalar, Comparison, Literal] | None:
    """(value, comparison, constant) of a comparison with a constant that is not NULL."""
    comparison = comparison_of(expr)
    if comparison is None or not isinstance(expr, Call):
        return None
    left, right = expr.args
    if isinstance(left, Literal):
        left, right, comparison = right, left, comparison.commutator
    if not isinstance(right, Literal) or right.value is None or isinstance(left, Literal):
        return None
    return left, comparison, right


def _alike(one: Literal, other: Literal) -> bool:
    """Whether two constants compare as Python compares them."""
    kinds = {one.type.kind, other.type.kind}
    if not kinds <= _ORDERED or (len(kinds) > 1 and not kinds <= _INTEGERS):
        return False
    return all(not isinstance(c.value, Decimal) or c.value.is_finite() for c in (one, other))
