"""Nested queries with typed columns: ``Environment.bind_query`` leaves untyped literals for their context to type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ivm.words import Kind, SqlType
from planner.expr.functions.casts.registry import CastContext
from planner.expr.literal_rows import LiteralRows
from planner.expr.scalar import Column, Scalar, SortKey
from planner.logical.nodes import Distinct, Project, Rel, SetOperation, Values, schema
from sql.bind.bound_query import BoundQuery, NamedRel, finished, sliced, values_rel
from sql.bind.coerce import cast, resolved
from sql.bind.environment import Environment
from sql.bind.scope import NameScope
from sql.catalog.composite import same_domains
from sql.syntax.nodes import queries as nodes


def bind_subquery(env: Environment, query: nodes.Query, outer: NameScope | None) -> NamedRel:
    """A query as an unordered relation: its ORDER BY matters to its LIMIT only."""
    bound = resolved_query(env, query, outer)
    return NamedRel(finished(bound), tuple(c.name for c in bound.columns))


def resolved_query(env: Environment, query: nodes.Query, outer: NameScope | None) -> BoundQuery:
    """A query whose columns of type UNKNOWN are text."""
    bound = resolve_columns(env, env.bind_query(query, outer))
    if env.notes is not None:
        env.notes.query(query, [c.type for c in schema(bound.rel)[: bound.width]])
    return bound


def bind_ordered(env: Environment, query: nodes.Query, outer: NameScope | None) -> tuple[NamedRel, tuple[SortKey, ...]]:
    """A query whose order matters (``ARRAY(query)``, or in FROM): its plan, with hidden columns if it has an order, and
    its order."""
    bound = resolved_query(env, query, outer)
    rel = sliced(bound) if bound.order else finished(bound)
    return NamedRel(rel, tuple(c.name for c in bound.columns)), bound.order


_OPEN: Final = (Kind.UNKNOWN, Kind.RECORD)
"""The kinds of types that ``resolved`` may replace."""


def resolve_columns(env: Environment, bound: BoundQuery) -> BoundQuery:
    """The query with its columns of type UNKNOWN as text."""
    columns = schema(bound.rel)
    if not any(c.type.kind in _OPEN for c in columns):
        return bound
    types = [None if resolved(c.type) == c.type else resolved(c.type) for c in columns]
    if not any(types):
        return bound
    return replace(bound, rel=convert(env, bound.rel, types, "implicit"))


def convert(env: Environment, rel: Rel, types: Sequence[SqlType | None], context: CastContext) -> Rel:
    """The relation with its columns cast to ``types`` (None: unchanged). Literals are converted where they stand."""
    columns = schema(rel)
    if all(t is None or (t == c.type and same_domains(c.type, t)) for t, c in zip(types, columns, strict=True)):
        return rel

    def one(expr: Scalar, type_: SqlType | None) -> Scalar:
        return expr if type_ is None else cast(env, expr, type_, context, 0)

    match rel:
        case Project():
            return Project(rel.input, tuple(one(e, t) for e, t in zip(rel.exprs, types, strict=True)))
        case Values() if not isinstance(rel.rows, LiteralRows):
            rows = tuple(tuple(one(e, t) for e, t in zip(row, types, strict=True)) for row in rel.rows)
            return values_rel(rows)
        case SetOperation() if any(c.type.kind is Kind.UNKNOWN for c in columns):
            left = convert(env, rel.left, types, context)
            return replace(rel, left=left, right=convert(env, rel.right, types, context))
        case Distinct() if any(c.type.kind is Kind.UNKNOWN for c in columns):
            return Distinct(convert(env, rel.input, types, context))
        case _:
            exprs = (Column(i, c.type, c.nullable) for i, c in enumerate(columns))
            return Project(rel, tuple(one(e, t) for e, t in zip(exprs, types, strict=True)))
