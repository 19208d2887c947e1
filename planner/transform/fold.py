"""Merges adjacent filters, projections and constants; replaces what is always false by no rows.

Rule: equal rows. An expression that can raise is neither dropped for a row that it saw nor computed twice.
"""

from __future__ import annotations

from operator import is_
from typing import Final

from planner.expr.parts import Kinds, rebuild, walk
from planner.expr.scalar import LEAVES, And, Column, Literal, Or, Scalar
from planner.logical.fallibility import can_raise
from planner.logical.nodes import Filter, Project, Rel, Values, schema
from planner.logical.traversal import (
    Changed,
    bottom_up,
    conjunction,
    conjuncts,
    keeps_types,
    own_columns,
    scalars,
    substitute,
    with_scalars,
)
from planner.memo import by_identity


def fold(rel: Rel, known: Changed | None = None) -> Rel:
    """The plan with adjacent nodes merged. ``known``: what earlier calls have made of nodes, for a plan that is folded
    several times, between rewrites that leave much of it as it is."""
    return bottom_up(rel, _fold, known)


def _fold(rel: Rel) -> Rel:
    exprs = scalars(rel)
    if exprs and not isinstance(rel, Values):
        simple = tuple([e if type(e) in LEAVES else _simple(e) for e in exprs])
        if not all(map(is_, exprs, simple)):
            rel = with_scalars(rel, simple)
    match rel:
        case Filter():
            return _filter(rel)
        case Project():
            return _project(rel)
        case _:
            return rel


@by_identity
def _simple(expr: Scalar) -> Scalar:
    """The same, once for each object: a plan is folded several times, mostly unchanged."""
    return simplify(expr)


def simplify(expr: Scalar) -> Scalar:
    """Removes literals that do not affect an AND or OR, and folds one whose first argument decides it."""
    return rebuild(expr, _JUNCTIONS, _simplified)


_JUNCTIONS: Final[Kinds] = frozenset({And, Or})


def _simplified(expr: And | Or) -> Scalar:
    neutral = isinstance(expr, And)
    args = tuple([a for a in expr.args if not (isinstance(a, Literal) and a.value is neutral)])
    if not args:
        return Literal(neutral, expr.type)
    if isinstance(args[0], Literal) and args[0].value is (not neutral):
        return args[0]
    if len(args) == 1:
        return args[0]
    expr = expr if len(args) == len(expr.args) else type(expr)(args)
    return expr if isinstance(expr, And) else _factored(expr)


def _factored(expr: Or) -> Scalar:
    """What all arms of an OR ask for, once: ``a AND b OR a AND c`` is ``a AND (b OR c)``, so that joins find ``a``.
    Side condition: nothing in it can raise."""
    arms = [tuple(conjuncts(arm)) for arm in expr.args]
    common = tuple(c for c in dict.fromkeys(arms[0]) if all(c in arm for arm in arms[1:]))
    if not common or can_raise(expr):
        return expr
    rests = [tuple(c for c in arm if c not in common) for arm in arms]
    if not all(rests):
        return conjunction(common)
    return And((*common, Or(tuple(conjunction(rest) for rest in rests))))


def _filter(rel: Filter) -> Rel:
    found = conjuncts(rel.predicate)
    if not found:
        return rel.input
    if isinstance(found[0], Literal) and found[0].value is not True:
        return Values((), schema(rel))
    if isinstance(rel.input, Filter):
        return Filter(rel.input.input, conjunction((*conjuncts(rel.input.predicate), *found)))
    return rel


def _project(rel: Project) -> Rel:
    if rel.exprs == own_columns(schema(rel.input)):
        return rel.input
    below = rel.input
    if isinstance(below, Values) and not below.schema and len(below.rows) == 1:
        return Values((rel.exprs,), schema(rel))
    if isinstance(below, Project) and keeps_types(below.exprs, rel.exprs) and _once(below.exprs, rel.exprs):
        return _project(Project(below.input, tuple(substitute(e, below.exprs) for e in rel.exprs)))
    return rel


def _once(inner: tuple[Scalar, ...], outer: tuple[Scalar, ...]) -> bool:
    """Whether no computed column is used twice, and none that can raise is dropped or moved into a branch."""
    uses: dict[int, int] = {}
    for expr in outer:
        for part in walk(expr):
            if isinstance(part, Column):
                uses[part.index] = uses.get(part.index, 0) + 1
    for i, expr in enumerate(inner):
        if isinstance(expr, Column | Literal):
            continue
        if uses.get(i, 0) > 1 or (can_raise(expr) and Column(i, expr.type, expr.nullable) not in outer):
            return False
    return True
