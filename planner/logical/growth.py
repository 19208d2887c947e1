"""Which plans only gain rows while their recursions run on and their series get longer.

Such a plan may stop early in a one-shot query: any part of its rows is part of its result, so a LIMIT ends a recursion
that would not end by itself. A LIMIT inside of the plan, without ORDER BY and for no groups, does so too: once it has
its rows, they are as good as the whole.
"""

from __future__ import annotations

from typing import Final, assert_never

from planner.logical.apart import sets_apart
from planner.logical.kinds import kinds_in
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

_INSIDE: Final = frozenset({-1})
"""No binding: marks what is inside of a recursion, where no LIMIT counts as reached."""


_GROWING: Final = frozenset({Recursive, LetRec, Reference, TableFunction})
"""Where there is none of these, nothing is there in part."""


def grows(rel: Rel) -> bool:
    """Whether the plan has a recursion or a series under no LIMIT of its own, and less of each gives a part of the
    plan's rows."""
    return _partial(rel, frozenset()) and _monotone(rel, frozenset())


def limits(rel: Rel) -> list[TopK]:
    """The LIMITs inside of the plan that may end a recursion or a series, if they are all that is needed of them."""
    if isinstance(rel, Recursive | LetRec):
        return []
    own = [rel] if isinstance(rel, TopK) and _ends(rel) else []
    return own + [found for child in children(rel) for found in limits(child)]


def stops(rel: Rel) -> bool:
    """Whether the plan may stop early: as ``grows`` says, or at the ``limits``, below which alone anything grows."""
    if _GROWING.isdisjoint(kinds_in(rel)):
        return False
    return grows(rel) or (not _partial(rel, frozenset()) and bool(limits(rel)))


def _ends(rel: TopK) -> bool:
    """Whether a LIMIT outside of recursions takes any rows of a plan that grows."""
    plain = not (rel.keys or rel.order or rel.numbers or rel.framed) and rel.limit is not None
    return plain and _monotone(rel.input, frozenset()) and _partial(rel.input, frozenset())


def _partial(rel: Rel, bindings: frozenset[int]) -> bool:
    """Whether a plan reads anything that may be there in part: a recursion, a series, or one of some bindings."""
    match rel:
        case TableFunction() if sets_apart(rel):
            return _partial(rel.input, bindings)
        case Recursive() | TableFunction():
            return True
        case Reference():
            return rel.binding in bindings
        case LetRec():
            return any(_partial(child, bindings | _INSIDE) for child in children(rel))
        case TopK() if not bindings and _ends(rel):
            return False
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
            outer = bindings | _INSIDE
            own = _partial(rel.step, outer) or _partial(rel.base, outer)
            return not own or (_monotone(rel.base, outer) and _monotone(rel.step, outer | {rel.binding}))
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
