"""What plans with subqueries refer to, and how ANY and ALL reduce to EXISTS, with exact three-valued logic.

``x op ANY (q)``: true if some comparison is true, else NULL if some is NULL, else false. ``ALL`` is its dual.
"""

from __future__ import annotations

from typing import Final

from ivm.words import BOOL
from planner.expr.functions.boolean import IS_NULL, NOT
from planner.expr.functions.library import comparison_of
from planner.expr.parts import kinds_of, walk
from planner.expr.scalar import (
    And,
    Call,
    Case,
    Column,
    Exists,
    Literal,
    Or,
    OuterColumn,
    Quantified,
    Scalar,
    ScalarSubquery,
)  # fmt: skip
from planner.logical.apart import sets_apart
from planner.logical.join_keys import operator
from planner.logical.levels import unlift
from planner.logical.nodes import Filter, Join, Project, Reduce, Reference, Rel, TableFunction, TopK, Values
from planner.logical.traversal import children, conjunction, scalars, subqueries
from planner.memo import by_identity

parts = walk
_OWN: Final = frozenset({Column, Literal, Call, And, Or, Case})
"""What refers to no other level by itself."""


@by_identity
def outer_columns(rel: Rel) -> frozenset[tuple[int, int]]:
    """The (level, index) of the outer columns that a plan refers to, with levels as seen from its top."""
    found: set[tuple[int, int]] = set()
    for expr in scalars(rel):
        found |= outer_columns_of(expr)
    if isinstance(rel, Join) and rel.lateral:
        return frozenset(found | outer_columns(rel.left) | _inside(outer_columns(rel.right)))
    return frozenset(found.union(*(outer_columns(c) for c in children(rel))))


def outer_columns_of(expr: Scalar) -> set[tuple[int, int]]:
    """The outer columns that an expression refers to, including those of its subqueries."""
    found: set[tuple[int, int]] = set()
    if _OWN.issuperset(kinds_of(expr)):
        return found
    for part in walk(expr):
        if type(part) in _OWN:
            continue
        match part:
            case OuterColumn():
                found.add((part.level, part.index))
            case ScalarSubquery() | Exists():
                found |= _inside(outer_columns(part.rel))
            case Quantified():
                found |= _inside(outer_columns(part.rel) | outer_columns_of(part.comparison))
            case _:
                pass
    return found


def _inside(columns: frozenset[tuple[int, int]] | set[tuple[int, int]]) -> frozenset[tuple[int, int]]:
    return frozenset((level - 1, index) for level, index in columns if level > 1)


@by_identity
def references(rel: Rel) -> frozenset[int]:
    """The recursive bindings that a plan refers to, including those in subqueries."""
    found = {rel.binding} if isinstance(rel, Reference) else set()
    for expr in scalars(rel):
        for part in subqueries(expr):
            found |= references(part.rel)
    return frozenset(found.union(*(references(c) for c in children(rel))))


def at_most_one(rel: Rel) -> bool:
    """Whether the plan certainly has at most one row for each binding of the outer columns."""
    match rel:
        case Reduce():
            return not rel.keys
        case Values():
            return len(rel.rows) <= 1
        case Project() | Filter():
            return at_most_one(rel.input)
        case TableFunction() if sets_apart(rel):
            return at_most_one(rel.input)
        case TopK():
            limit = rel.limit.value if isinstance(rel.limit, Literal) else None
            return not rel.keys and not rel.numbers and isinstance(limit, int) and limit <= 1
        case _:
            return False


def exactly_one(rel: Rel) -> bool:
    """Whether the plan certainly has exactly one row for each binding of the outer columns."""
    match rel:
        case Reduce():
            return not rel.keys
        case Values():
            return len(rel.rows) == 1
        case Project():
            return exactly_one(rel.input)
        case TableFunction() if sets_apart(rel):
            return exactly_one(rel.input)
        case _:
            return False


def negation(expr: Scalar) -> Scalar:
    """NOT expr."""
    return Call(NOT, (expr,), BOOL, expr.nullable)


def test(name: str, expr: Scalar) -> Scalar:
    """``expr IS [NOT] NULL | TRUE | FALSE``."""
    return Call(name, (expr,), BOOL, False)


def existence(expr: Scalar) -> tuple[bool, Rel] | None:
    """(negated, plan) of an EXISTS or NOT EXISTS; None for any other expression."""
    if isinstance(expr, Exists):
        return False, expr.rel
    if operator(expr) == NOT and isinstance(expr, Call) and isinstance(expr.args[0], Exists):
        return True, expr.args[0].rel
    return None


def simplify_truth(expr: Scalar) -> Scalar:
    """Rewrites ANY, ALL and their negations as EXISTS, in a condition of which only the true rows count.

    Rule: the same rows are true; false and NULL may be exchanged.
    """
    if isinstance(expr, And):
        return conjunction(tuple(simplify_truth(a) for a in expr.args))
    if isinstance(expr, Quantified):
        if expr.every:
            return negation(Exists(Filter(expr.rel, test("is not true", expr.comparison))))
        return Exists(Filter(expr.rel, expr.comparison))
    if operator(expr) == NOT and isinstance(expr, Call):
        return _simplify_not(expr, expr.args[0])
    return expr


def _simplify_not(expr: Scalar, inner: Scalar) -> Scalar:
    if operator(inner) == NOT and isinstance(inner, Call):
        return simplify_truth(inner.args[0])
    if isinstance(inner, Or):
        return conjunction(tuple(simplify_truth(negation(a)) for a in inner.args))
    if not isinstance(inner, Quantified):
        return expr
    if inner.every:
        return Exists(Filter(inner.rel, test("is false", inner.comparison)))
    nulls = tuple(_none(a) for a in _null_parts(inner))
    return conjunction((negation(Exists(Filter(inner.rel, inner.comparison))), *nulls))


def _none(part: Scalar) -> Scalar:
    """NOT part, for a part that is never NULL."""
    if isinstance(part, And):
        return Or(tuple(_none(a) for a in part.args))
    if operator(part) == IS_NULL and isinstance(part, Call):
        return test("is not null", part.args[0])
    return negation(part)


def expand_quantified(expr: Quantified) -> Scalar:
    """ANY or ALL as a value, by EXISTS."""
    decided = test("is false", expr.comparison) if expr.every else expr.comparison
    null = _null_parts(expr)
    arms: list[tuple[Scalar, Scalar]] = [(Exists(Filter(expr.rel, decided)), Literal(not expr.every, BOOL))]
    if null:
        arms.append((null[0] if len(null) == 1 else Or(null), Literal(None, BOOL)))
    return Case(tuple(arms), Literal(expr.every, BOOL), BOOL)


def _null_parts(expr: Quantified) -> tuple[Scalar, ...]:
    """Conditions, themselves never NULL, one of which holds exactly when some comparison is NULL.

    A strict comparison of an outer with an inner value is NULL when either is NULL: two tests that need no pairs.
    """
    comparison = expr.comparison
    if not comparison.nullable:
        return ()
    if isinstance(comparison, Call) and comparison_of(comparison) is not None:
        sides = sorted(comparison.args, key=_is_inner)
        outer, inner = sides
        if not _is_inner(outer) and _is_inner(inner) and not outer_columns_of(inner):
            found: list[Scalar] = []
            if inner.nullable:
                found.append(Exists(Filter(expr.rel, test("is null", inner))))
            if outer.nullable:
                found.append(And((test("is null", unlift(outer)), Exists(expr.rel))))
            return tuple(found)
    return (Exists(Filter(expr.rel, test("is null", comparison))),)


def _is_inner(expr: Scalar) -> bool:
    return any(isinstance(p, Column) for p in walk(expr))
