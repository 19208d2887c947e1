"""Which plans only gain rows while their recursions run on and their series get longer.

Such a plan may stop early in a one-shot query: any part of its rows is part of its result, so a LIMIT ends a recursion
that would not end by itself.
"""

from __future__ import annotations

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


def grows(rel: Rel) -> bool:
    """Whether the plan has a recursion or a series, and less of each gives a part of the plan's rows."""
    return _partial(rel, frozenset()) and _monotone(rel, frozenset())


def _partial(rel: Rel, bindings: frozenset[int]) -> bool:
    """Whether a plan reads anything that may be there in part: a recursion, a series, or one of some bindings."""
    match rel:
        case Recursive() | TableFunction():
            return True
        case Reference():
            return rel.binding in bindings
        case _:
            return any(_partial(child, bindings) for child in children(rel))


def _monotone(rel: Rel, bindings: frozenset[int]) -> bool:
    """Whether less of what may be there in part gives a part of the rows."""
    match rel:
        case Get() | Values() | Reference():
            return True
        case Filter() | TemporalFilter() | Project() | Distinct() | TableFunction():
            return _monotone(rel.input, bindings)
        case Join():
            return _monotone(rel.left, bindings) and _monotone(rel.right, bindings) and _grows_join(rel, bindings)
        case SetOperation():
            fixed = rel.kind is not SetKind.EXCEPT or not _partial(rel.right, bindings)
            return fixed and _monotone(rel.left, bindings) and _monotone(rel.right, bindings)
        case Recursive():
            # a step over less of the recursion's own rows matters only if they are there in part
            inner = bindings | {rel.binding}
            own = _partial(rel.step, bindings) or _partial(rel.base, bindings)
            return not own or (_monotone(rel.base, bindings) and _monotone(rel.step, inner))
        case Reduce() | TopK() | AsOf() | Locked() | LetRec():
            return not _partial(rel, bindings)
        case _:
            assert_never(rel)


def _grows_join(join: Join, bindings: frozenset[int]) -> bool:
    match join.kind:
        case JoinKind.INNER | JoinKind.SEMI:
            return True
        case JoinKind.LEFT | JoinKind.ANTI:
            return not _partial(join.right, bindings)
        case JoinKind.RIGHT:
            return not _partial(join.left, bindings)
        case JoinKind.FULL:
            return not _partial(join, bindings)
        case _:
            assert_never(join.kind)
