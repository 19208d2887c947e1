"""Splits a join condition into equi-join keys, one-sided predicates and a residual. Keys compare as words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ivm.words import NAMED_OIDS, NUMERIC, TIMESTAMP, Kind, Schema, SqlType
from planner.expr.functions.compare import EQUALITY_CLASS, NOT_DISTINCT
from planner.expr.functions.internal.subquery import SAME_WORD
from planner.expr.functions.library import CAST, is_equality
from planner.expr.scalar import Call, Literal, Parameter, Scalar
from planner.logical.traversal import columns_of, conjuncts, has_subquery, shift

_INTEGERS: Final = frozenset({Kind.INT2, Kind.INT4, Kind.INT8, Kind.OID, *NAMED_OIDS})
_TEXTS: Final = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.NAME})
_FLOATS: Final = frozenset({Kind.FLOAT4, Kind.FLOAT8})


@dataclass(frozen=True, slots=True)
class KeyPair:
    """left = right, each side over its own input's columns, both encoded alike. ``null_safe``: NULL equals NULL."""

    left: Scalar
    right: Scalar
    null_safe: bool


@dataclass(frozen=True, slots=True)
class Inequality:
    """``low <= high``, or ``low < high`` if strict: one over the left side's columns, the other over the right side's.

    ``part``: the condition that it follows from. ``exact``: it is that condition.
    """

    low: Scalar
    high: Scalar
    strict: bool
    part: Scalar
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Band:
    """At least one of: a left row's low end before a right row's high end (``up``), and the reverse (``down``)."""

    up: Inequality | None
    down: Inequality | None

    @property
    def parts(self) -> tuple[Scalar, ...]:
        """The conditions that it is all of."""
        return tuple(i.part for i in (self.up, self.down) if i is not None and i.exact)

    @property
    def left(self) -> tuple[Scalar | None, Scalar | None]:
        """The ends of a left row's interval, over left's columns."""
        return (None if self.up is None else self.up.low), (None if self.down is None else self.down.high)

    @property
    def right(self) -> tuple[Scalar | None, Scalar | None]:
        """The ends of a right row's interval, over right's columns."""
        return (None if self.down is None else self.down.low), (None if self.up is None else self.up.high)


@dataclass(frozen=True, slots=True)
class Condition:
    """A split join condition. ``left`` and ``right`` are over their own input's columns, ``residual`` over both."""

    keys: tuple[KeyPair, ...]
    left: tuple[Scalar, ...]
    right: tuple[Scalar, ...]
    residual: tuple[Scalar, ...]
    band: Band | None = None
    """Taken out of the residual."""

    @property
    def of_keys(self) -> bool:
        """Whether keys and one-sided predicates are all of it."""
        return not self.residual and self.band is None


def operator(expr: Scalar) -> str | None:
    """The name of the function that a call calls; None for any other expression."""
    return expr.function.partition("(")[0] or expr.function if isinstance(expr, Call) else None


def common_type(left: SqlType, right: SqlType) -> SqlType | None:
    """The type to cast both sides to so that equal values have equal words (by equality class); None: there is none."""
    if left == right:
        return left
    for family in (_INTEGERS, _TEXTS, _FLOATS):
        if left.kind in family and right.kind in family:
            return left
    if left.kind is Kind.NUMERIC and right.kind is Kind.NUMERIC:
        return left if left.storage is right.storage and left.scale == right.scale else NUMERIC
    kinds = {left.kind, right.kind}
    if kinds <= {Kind.DATE, Kind.TIMESTAMP}:
        return left if left.kind is right.kind else TIMESTAMP
    if left.kind is right.kind and left.element is None and right.element is None:
        return left
    return None


def as_type(expr: Scalar, target: SqlType) -> Scalar:
    """The expression cast to ``target``; the expression itself where both types encode values the same way."""
    source = expr.type
    same = source == target or (source.kind in _INTEGERS and target.kind in _INTEGERS)
    same = same or (source.kind in _TEXTS and target.kind in _TEXTS)
    same = same or (source.kind in _FLOATS and target.kind in _FLOATS)
    if source.kind is target.kind:
        same = same or source.kind is not Kind.NUMERIC
        same = same or (source.storage is target.storage and source.scale == target.scale)
    return expr if same else Call(CAST, (expr,), target, expr.nullable)


def comparable(call: Scalar) -> tuple[Scalar, Scalar, bool] | None:
    """An equality's two arguments in one representation, and whether it is null-safe; None if it is no equality."""
    if not isinstance(call, Call) or not (is_equality(call) or call.function in (NOT_DISTINCT, SAME_WORD)):
        return None
    left, right = call.args
    if call.function == SAME_WORD:
        return left, right, True
    target = common_type(left.type, right.type)
    if target is None:
        return None
    return by_class(as_type(left, target)), by_class(as_type(right, target)), call.function == NOT_DISTINCT


def by_class(expr: Scalar) -> Scalar:
    """The expression by which equal values have equal words."""
    return Call(EQUALITY_CLASS, (expr,), expr.type, expr.nullable) if expr.type.has_equality_class else expr


def has_classes(row: Schema) -> bool:
    """Whether any column's type has equal values with different words."""
    return any(c.type.has_equality_class for c in row)


def take_apart(on: Scalar, left_width: int) -> Condition:
    """Splits a join condition, conjunct by conjunct. ``left_width``: the number of left columns."""
    keys: list[KeyPair] = []
    left: list[Scalar] = []
    right: list[Scalar] = []
    residual: list[Scalar] = []
    for part in conjuncts(on):
        pair = _key_pair(part, left_width)
        used = columns_of(part)
        if pair is not None:
            keys.append(pair)
        elif has_subquery(part) or not used:
            residual.append(part)
        elif max(used) < left_width:
            left.append(part)
        elif min(used) >= left_width:
            right.append(shift(part, -left_width))
        else:
            residual.append(part)
    return Condition(tuple(dict.fromkeys(keys)), tuple(left), tuple(right), tuple(residual))


def _key_pair(part: Scalar, left_width: int) -> KeyPair | None:
    equality = None if has_subquery(part) else comparable(part)
    if equality is None:
        return None
    first, second, null_safe = equality
    one, two = columns_of(first), columns_of(second)
    if not one or not two:
        return None
    if max(one) < left_width and min(two) >= left_width:
        return KeyPair(first, shift(second, -left_width), null_safe)
    if max(two) < left_width and min(one) >= left_width:
        return KeyPair(second, shift(first, -left_width), null_safe)
    return None


def is_constant(expr: Scalar) -> bool:
    """Whether an expression has the same value on every row: it reads no columns and has no subquery."""
    return isinstance(expr, Literal | Parameter) or (not columns_of(expr) and not has_subquery(expr))
