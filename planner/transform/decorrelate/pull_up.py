"""Pulls up correlated predicates. EXISTS over a plan correlated only by predicates is a semijoin without a domain."""

from __future__ import annotations

from dataclasses import replace

from ivm.words import Schema
from planner.expr.parts import walk
from planner.expr.scalar import Literal, OuterColumn, Scalar
from planner.logical.fallibility import can_raise
from planner.logical.nodes import (
    Distinct,
    Filter,
    Join,
    JoinKind,
    Project,
    Rel,
    SetKind,
    SetOperation,
    schema,
)  # fmt: skip
from planner.logical.traversal import TRUE, conjunction, conjuncts, has_subquery, own_columns, substitute
from planner.transform.decorrelate.domain import raw_columns, same_words


def split(rel: Rel) -> tuple[Rel, tuple[Scalar, ...]]:
    """Splits a plan of which only *existence* matters into (plan, conditions over its columns and outer columns).

    Rule: some row of the new plan meets the conditions exactly when the given plan has a row.
    """
    conditions: tuple[Scalar, ...] = ()
    while True:
        match rel:
            case Filter() if not has_subquery(rel.predicate):
                conditions = (*conjuncts(rel.predicate), *conditions)
                rel = rel.input
            case Project() if not any(has_subquery(e) or can_raise(e) for e in rel.exprs):
                conditions = tuple(substitute(c, rel.exprs) for c in conditions)
                rel = rel.input
            case Distinct():
                rel = rel.input
            case Join(kind=JoinKind.INNER, lateral=False) if _is_outer(rel.on) and not has_subquery(rel.on):
                conditions = (*conjuncts(rel.on), *conditions)
                rel = replace(rel, on=TRUE)
            case _:
                break
    own = tuple(c for c in conditions if not _is_outer(c))
    outer = tuple(c for c in conditions if _is_outer(c))
    return (Filter(rel, conjunction(own)) if own else rel), outer


def _is_outer(expr: Scalar) -> bool:
    return any(isinstance(p, OuterColumn) for p in walk(expr))


def outer_from_pairs(join: Join, pairs: Rel, count: int) -> Rel:
    """An outer, semi- or antijoin from its matched pairs. A row has no match if it is not among the pairs' rows."""
    left, right = schema(join.left), schema(join.right)
    if join.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return _by_presence(join.kind, join.left, pairs, 0, left)
    out = pairs
    if join.kind in (JoinKind.LEFT, JoinKind.FULL):
        alone = _by_presence(JoinKind.ANTI, join.left, pairs, 0, left)
        padded = Project(alone, (*own_columns(left), *(Literal(None, c.type) for c in right)))
        out = SetOperation(SetKind.UNION, True, out, padded)
    if join.kind in (JoinKind.RIGHT, JoinKind.FULL):
        alone = _by_presence(JoinKind.ANTI, join.right, pairs, count, right)
        padded = Project(alone, (*(Literal(None, c.type) for c in left), *own_columns(right)))
        out = SetOperation(SetKind.UNION, True, out, padded)
    return out


def _by_presence(kind: JoinKind, rel: Rel, pairs: Rel, first: int, row: Schema) -> Rel:
    present = Distinct(Project(pairs, raw_columns(tuple(range(first, first + len(row))), row)))
    on = tuple(same_words(i, len(row) + i, c) for i, c in enumerate(row))
    return Join(kind, rel, present, conjunction(on))
