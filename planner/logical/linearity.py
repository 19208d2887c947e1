"""How a recursion's step depends on the binding that it reads.

A step that distributes over sums of its binding needs no working table. A step that is empty whenever its binding is
empty lets the loop end when a round adds nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from planner.logical.nodes import (
    AsOf,
    Distinct,
    Filter,
    Get,
    Join,
    JoinKind,
    LetRec,
    Locked,
    Project,
    Recursive,
    Reduce,
    Reference,
    Rel,
    SetKind,
    SetOperation,
    TableFunction,
    TemporalFilter,
    TopK,
    Values,
)  # fmt: skip
from planner.logical.traversal import children


class Use(Enum):
    """How a plan depends on a binding: not at all, linearly (it distributes over sums), or in another way."""

    NONE = 0
    LINEAR = 1
    OTHER = 2


def use(rel: Rel, binding: int, sets: bool) -> Use:
    """How a plan depends on a binding. ``sets``: multiplicities do not matter, so DISTINCT is linear too."""
    match rel:
        case Get() | Values():
            return Use.NONE
        case Reference():
            return Use.LINEAR if rel.binding == binding else Use.NONE
        case Filter() | TemporalFilter() | Project() | TableFunction():
            return use(rel.input, binding, sets)
        case Distinct():
            inner = use(rel.input, binding, sets)
            return inner if sets else _not_linear(inner)
        case Join():
            return _join_use(rel, binding, sets)
        case SetOperation():
            left, right = use(rel.left, binding, sets), use(rel.right, binding, sets)
            union = rel.kind is SetKind.UNION and (rel.all or sets)
            return _both(left, right) if union else _not_linear(_worst(left, right))
        case Reduce() | TopK() | AsOf() | Locked() | Recursive() | LetRec():
            return _not_linear(_worst(*(use(c, binding, sets) for c in children(rel))))
        case _:
            assert_never(rel)


def _worst(*uses: Use) -> Use:
    return max(uses, key=lambda u: u.value)


def _not_linear(inner: Use) -> Use:
    return Use.NONE if inner is Use.NONE else Use.OTHER


def _both(left: Use, right: Use) -> Use:
    """The use of a UNION. Constant rows beside the reference would be added again each round, which is not linear."""
    return left if left is right else Use.OTHER


def _join_use(join: Join, binding: int, sets: bool) -> Use:
    left, right = use(join.left, binding, sets), use(join.right, binding, sets)
    if left is Use.NONE and right is Use.NONE:
        return Use.NONE
    if right is Use.NONE and join.kind not in (JoinKind.RIGHT, JoinKind.FULL):
        return left
    if left is Use.NONE and join.kind in (JoinKind.INNER, JoinKind.RIGHT):
        return right
    if left is Use.NONE and join.kind is JoinKind.SEMI and sets:
        return right
    return Use.OTHER


def empty_without(rel: Rel, binding: int) -> bool:
    """Whether the plan certainly has no rows when the binding has none."""
    match rel:
        case Reference():
            return rel.binding == binding
        case Get() | Values() | Recursive() | LetRec():
            return False
        case Filter() | TemporalFilter() | Project() | TableFunction() | Distinct() | TopK():
            return empty_without(rel.input, binding)
        case AsOf() | Locked():
            return empty_without(rel.left, binding) or (not rel.outer and empty_without(rel.right, binding))
        case Reduce():
            return bool(rel.keys) and empty_without(rel.input, binding)
        case Join():
            left, right = empty_without(rel.left, binding), empty_without(rel.right, binding)
            match rel.kind:
                case JoinKind.INNER | JoinKind.SEMI:
                    return left or right
                case JoinKind.LEFT | JoinKind.ANTI:
                    return left
                case JoinKind.RIGHT:
                    return right
                case JoinKind.FULL:
                    return left and right
                case _:
                    assert_never(rel.kind)
        case SetOperation():
            left, right = empty_without(rel.left, binding), empty_without(rel.right, binding)
            if rel.kind is SetKind.UNION:
                return left and right
            return left or (right and rel.kind is SetKind.INTERSECT)
        case _:
            assert_never(rel)
