"""ASOF JOIN: its condition taken apart into equalities (the keys), one inequality, and conditions on one side.

A condition on one side only filters that side: the right rows that may match, and the left rows that may have a match.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ivm.errors import SqlError, unsupported
from planner.expr.comparison import Comparison
from planner.expr.functions.library import comparison_of
from planner.expr.ordering import comparable
from planner.expr.scalar import Call, Case, Column, Literal, Scalar
from planner.logical.join_keys import as_type, common_type, take_apart
from planner.logical.nodes import AsOf, Filter, Project, Rel, schema
from planner.logical.traversal import columns_of, conjunction, has_subquery, own_columns, shift

_EQUALITY: Final = (Comparison.EQUAL, Comparison.NOT_EQUAL)
_LATER: Final = (Comparison.LESS, Comparison.NOT_GREATER)
_STRICT: Final = (Comparison.LESS, Comparison.GREATER)


@dataclass(frozen=True, slots=True)
class _Points:
    """The inequality ``left sign right``, each over its own side, both of one type."""

    left: Scalar
    right: Scalar
    sign: Comparison


def asof(left: Rel, right: Rel, on: Scalar, outer: bool, at: int) -> Rel:
    """The join; its columns are left's, then right's. ``on``: bound over these; ``outer``: LEFT. Raises 42601."""
    count = len(schema(left))
    condition = take_apart(on, count)
    of_neither = tuple(part for part in condition.residual if not columns_of(part))
    found = [_points(part, count) for part in condition.residual if part not in of_neither]
    points = [p for p in found if p is not None]
    if len(points) != 1 or len(found) != 1:
        raise _wrong(len(points), at)
    of_right = (*condition.right, *(part for part in of_neither if part != Literal(True, part.type)))
    if any(has_subquery(p) for p in (*condition.left, *of_right)):
        raise unsupported("a subquery in the condition of an ASOF JOIN", position=at + 1)
    if of_right:
        right = Filter(right, conjunction(of_right))
    point = points[0].left
    if condition.left and outer:
        point = Case(((conjunction(condition.left), point),), Literal(None, point.type), point.type)
    elif condition.left:
        left = Filter(left, conjunction(condition.left))
    one, left_at = with_columns(left, (*(k.left for k in condition.keys), point))
    two, right_at = with_columns(right, (*(k.right for k in condition.keys), points[0].right))
    keys = tuple((a, b, k.null_safe) for a, b, k in zip(left_at, right_at, condition.keys, strict=False))
    sign = points[0].sign
    joined = AsOf(one, two, keys, (left_at[-1], right_at[-1]), sign in _LATER, sign in _STRICT, outer)
    own, width = own_columns(schema(joined)), len(schema(one))
    kept = (*own[:count], *own[width : width + len(schema(right))])
    return joined if kept == own else Project(joined, kept)


def _wrong(points: int, at: int) -> SqlError:
    if points == 1:
        hint = "Put further conditions on both sides into WHERE: they then filter the matches."
        return unsupported("an ASOF JOIN condition other than equalities and one inequality", hint, at + 1)
    message = "ASOF JOIN needs exactly one inequality (>=, >, <= or <) between its two sides"
    return SqlError("42601", message, position=at + 1)


def _points(part: Scalar, count: int) -> _Points | None:
    """The inequality between the two sides that a part of the condition is, if it is one."""
    sign = comparison_of(part)
    if sign is None or sign in _EQUALITY or not isinstance(part, Call) or has_subquery(part):
        return None
    first, second = part.args
    target = common_type(first.type, second.type)
    one, two = columns_of(first), columns_of(second)
    if target is None or not comparable(target) or not one or not two:
        return None
    first, second = as_type(first, target), as_type(second, target)
    if max(one) < count <= min(two):
        return _Points(first, shift(second, -count), sign)
    if max(two) < count <= min(one):
        return _Points(second, shift(first, -count), sign.commutator)
    return None


def with_columns(rel: Rel, exprs: tuple[Scalar, ...]) -> tuple[Rel, tuple[int, ...]]:
    """The relation with a column appended for each expression that is not a column, and each expression's column."""
    own = own_columns(schema(rel))
    extra = tuple(dict.fromkeys(e for e in exprs if not isinstance(e, Column)))
    places = tuple(e.index if isinstance(e, Column) else len(own) + extra.index(e) for e in exprs)
    return (Project(rel, (*own, *extra)) if extra else rel), places
