"""The one traversal of expressions: their parts, and rebuilding them with others.

A rewrite of expressions names the kinds that it replaces, and passes by those in which they do not occur.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from planner.expr.scalar import (
    LEAVES,
    Call,
    Column,
    Exists,
    Literal,
    OuterColumn,
    Parameter,
    Quantified,
    Scalar,
    ScalarSubquery,
    children,
    with_children,
)

Kinds = frozenset[type]
"""Of expressions: some of the types in ``Scalar``."""
COLUMNS: Final[Kinds] = frozenset({Column})
OUTER_COLUMNS: Final[Kinds] = frozenset({OuterColumn})
ALL_COLUMNS: Final[Kinds] = COLUMNS | OUTER_COLUMNS
PARAMETERS: Final[Kinds] = frozenset({Parameter})
LITERALS: Final[Kinds] = frozenset({Literal})
CALLS: Final[Kinds] = frozenset({Call})
SUBQUERIES: Final[Kinds] = frozenset({ScalarSubquery, Exists, Quantified})


def walk(expr: Scalar) -> tuple[Scalar, ...]:
    """An expression and all its parts, without the plans of subqueries; each before its own parts, left ones first.

    It is walked once, however many rewrites ask: an expression remembers its parts, and most rewrites leave it as it
    is.
    """
    if type(expr) in LEAVES:
        return (expr,)
    kinds_of(expr)
    return (expr, *expr.below)  # type: ignore[union-attr]


def kinds_of(expr: Scalar) -> Kinds:
    """The types of an expression and of its parts."""
    kind = type(expr)
    if kind in LEAVES:
        return frozenset((kind,))
    try:
        return expr.kinds  # type: ignore[union-attr]
    except AttributeError:
        below = _parts(children(expr))
        kinds = frozenset((kind, *map(type, below)))
        object.__setattr__(expr, "below", below)
        object.__setattr__(expr, "kinds", kinds)
        return kinds


def _parts(exprs: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """The expressions and all their parts."""
    found: list[Scalar] = []
    todo = list(exprs[::-1])
    while todo:
        part = todo.pop()
        found.append(part)
        if type(part) in LEAVES:
            continue
        known = getattr(part, "below", None)
        if known is None:
            todo += children(part)[::-1]
        else:
            found += known
    return tuple(found)


def rebuild(expr: Scalar, kinds: Kinds, change: Callable[[Any], Scalar]) -> Scalar:
    """Replaces, bottom up, each part of these kinds by what ``change`` makes of it, once its own parts are replaced."""
    if type(expr) in LEAVES:
        return change(expr) if type(expr) in kinds else expr
    if kinds.isdisjoint(kinds_of(expr)):
        return expr
    made: dict[int, Scalar] = {}
    for part in reversed(walk(expr)):
        new = part
        if made and type(part) not in LEAVES:
            parts = children(part)
            if not made.keys().isdisjoint(map(id, parts)):
                new = with_children(part, tuple([made.get(id(p), p) for p in parts]))
        if type(part) in kinds:
            new = change(new)
        if new is not part:
            made[id(part)] = new
    return made.get(id(expr), expr)
