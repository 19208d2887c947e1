"""Partitions that a one-shot query's conditions exclude are not read.

A partition is excluded if a condition on its rows contradicts its bound: comparisons with constants, IN, IS NULL. The
default partition is excluded if the conditions imply the bound of another one. As in PostgreSQL's plans, parameters
exclude nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.expr.scalar import Or, Scalar
from planner.logical.implication import implied, recognised, refuted
from planner.logical.nodes import Filter, Get, Project, Rel, SetKind, SetOperation, Values, schema
from planner.logical.traversal import bottom_up, conjuncts, nodes, own_columns, substitute
from planner.transform.normal.scalar import normal


@dataclass(frozen=True, slots=True)
class Bound:
    """What is true of a stored relation's rows, over its columns: ``holds``, and for a default partition that each of
    ``fails`` is not."""

    holds: tuple[Scalar, ...] = ()
    fails: tuple[Scalar, ...] = ()


BoundOf = Callable[[int], Bound | None]
"""What a stored relation's bounds say; None: it is no partition."""


def pruned(rel: Rel, bound_of: BoundOf) -> Rel:
    """The plan without the partitions that its filters exclude."""
    if not any(_is_empty(node) or (isinstance(node, Get) and bound_of(node.relation)) for node in nodes(rel)):
        return rel
    return bottom_up(rel, lambda node: _pruned(node, bound_of))


def _pruned(rel: Rel, bound_of: BoundOf) -> Rel:
    match rel:
        case Filter(input=Get(relation=relation)) if (bound := bound_of(relation)) is not None:
            return Values((), schema(rel)) if _excluded(bound, rel.predicate) else rel
        case Filter(input=Project(Get(relation=relation), exprs)) if (bound := bound_of(relation)) is not None:
            return Values((), schema(rel)) if _excluded(bound, substitute(rel.predicate, exprs)) else rel
        case Filter() | Project() if _is_empty(rel.input):
            return Values((), schema(rel))
        case SetOperation(kind=SetKind.UNION, all=True) if _is_empty(rel.left) or _is_empty(rel.right):
            rest = rel.right if _is_empty(rel.left) else rel.left
            row = schema(rel)
            return rest if schema(rest) == row else Project(rest, own_columns(row))
        case _:
            return rel


def _is_empty(rel: Rel) -> bool:
    return isinstance(rel, Values) and not rel.rows


def _excluded(bound: Bound, predicate: Scalar) -> bool:
    given = [recognised(normal(p)) for p in conjuncts(predicate)]
    holds = tuple(recognised(normal(c)) for c in bound.holds)
    fails = tuple(recognised(normal(c)) for c in bound.fails)
    return _contradicted(holds, fails, given)


def _contradicted(holds: tuple[Scalar, ...], fails: tuple[Scalar, ...], given: list[Scalar]) -> bool:
    if any(refuted(c, given) for c in holds) or any(implied(c, given) for c in fails):
        return True
    arms = (p.args for p in given if isinstance(p, Or))
    return any(all(_contradicted(holds, fails, [*conjuncts(arm)]) for arm in args) for args in arms)
