"""Queries: WITH, ORDER BY, LIMIT and OFFSET around a body, and the entry points for whole statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ivm.errors import SqlError, unsupported
from ivm.words import INT8, TIMESTAMPTZ, Kind, SqlType
from planner.expr.scalar import Literal, Scalar
from planner.logical.nodes import Finishing, LetRec, Project, schema
from sql.bind import cte, volatile
from sql.bind.arrival import in_order
from sql.bind.bound_query import BoundQuery, finished
from sql.bind.coerce import cast, type_name
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.locking import check_locked, locked_tables, note_locked
from sql.bind.namespace import Namespace, visible_columns
from sql.bind.order_by import ordinal, sort_key
from sql.bind.priority import block_priorities
from sql.bind.row_limits import constant_expression, limited
from sql.bind.scope import NameScope
from sql.bind.selection import bind_select
from sql.bind.setops import bind_set_query
from sql.bind.subquery import resolve_columns
from sql.statements.queries import OutputColumn, Query
from sql.syntax.nodes import queries as nodes

_NUMBERS = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.FLOAT4, Kind.FLOAT8)


def bind_top(env: Environment, query: nodes.Query) -> Query:
    """A statement's own query: its ORDER BY, LIMIT and OFFSET go into the ``Finishing``. Raises 0A000, 42P01, 42804."""
    as_of = None if query.as_of is None else epoch_expression(env, query.as_of, "AS OF")
    check_locked(query)
    locking = replace(env, locked=frozenset(ref.at for ref in locked_tables(query)))
    written = bind_query(locking, replace(query, as_of=None, locking=()), None, query.locking)
    bound = resolve_columns(locking, written)
    note_locked(env, query)
    columns = _as_written(env, written, _typed_columns(bound))
    if not bound.order:
        rel, order = in_order(bound.rel, limited=bound.limit is not None)
        bound = replace(bound, rel=rel, order=order)
    width = bound.width if len(schema(bound.rel)) != bound.width else None
    finishing = Finishing(bound.order, bound.limit, bound.offset, width)
    if volatile.gives_volatile(bound):
        bound, project = volatile.postponed(bound)
        finishing = replace(finishing, width=None, project=project)
    return Query(bound.rel, finishing, columns, as_of, query.as_of_at_least, bound.locks)


def bind_stored(env: Environment, query: nodes.Query) -> Query:
    """A query to be maintained or inserted: its LIMIT is part of the plan, its ``Finishing`` is empty. Raises 0A000."""
    if query.as_of is not None:
        raise unsupported("AS OF in a view or subquery", position=query.as_of.at + 1)
    bound = resolve_columns(env, bind_query(env, query, None))
    return Query(finished(bound), Finishing(), _typed_columns(bound))


def _typed_columns(bound: BoundQuery) -> tuple[OutputColumn, ...]:
    pairs = zip(bound.columns, schema(bound.rel), strict=False)
    return tuple([c if c.type is t.type else replace(c, type=t.type) for c, t in pairs])


def _as_written(env: Environment, written: BoundQuery, columns: tuple[OutputColumn, ...]) -> tuple[OutputColumn, ...]:
    """The columns of a query for a client, to whom untyped literals in ROW(…) are of type unknown, as in Postgres."""
    if not env.rows or not isinstance(written.rel, Project) or env.parameters.of_routine:
        return columns
    typed = []
    for column, expr in zip(columns, written.rel.exprs, strict=False):
        row = column.type.kind is Kind.RECORD
        typed.append(replace(column, type=_written_type(env, expr, column.type)) if row else column)
    return tuple(typed)


def _written_type(env: Environment, expr: Scalar, type_: SqlType) -> SqlType:
    if expr.type.kind is Kind.UNKNOWN:
        return expr.type
    written = env.unresolved(expr)
    if not written:
        return type_
    pairs = zip(written, type_.fields, strict=True)
    return replace(type_, fields=tuple((name, _written_type(env, value, own)) for value, (name, own) in pairs))


def epoch_expression(env: Environment, node: nodes.Expr, what: str) -> Scalar:
    """A point in time: an epoch (bigint, as an untyped parameter becomes) or a timestamptz. Raises 42804, 42P10."""
    expr = constant_expression(env, node, what)
    if expr.type.kind in _NUMBERS or (expr.type.kind is Kind.UNKNOWN and not isinstance(expr, Literal)):
        return cast(env, expr, INT8, "assignment", node.at)
    if expr.type.kind in (Kind.UNKNOWN, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return cast(env, expr, TIMESTAMPTZ, "assignment", node.at)
    message = f"{what} takes an epoch (bigint) or a timestamp with time zone, not {type_name(expr.type)}"
    raise SqlError("42804", message, position=node.at + 1)


def bind_query(
    env: Environment, query: nodes.Query, outer: NameScope | None, locking: Sequence[nodes.Locking] = ()
) -> BoundQuery:
    """Any query. ``outer``: the enclosing level; ``locking``: what a statement's own query locks. Its columns may be of
    type UNKNOWN, for the context to type."""
    if query.as_of is not None:
        raise unsupported("AS OF in a view or subquery", position=query.as_of.at + 1)
    if query.locking:
        raise unsupported("FOR UPDATE or SHARE in a view or subquery", position=query.at + 1)
    if query.with_ is None:
        return _body(env, query, outer, locking)
    if query.with_.mutually:
        inner, bindings, schemas = cte.mutually_recursive(env, query.with_, outer)
        bound = resolve_columns(inner, _body(inner, query, outer))
        limit, at_limit = query.with_.limit, query.with_.return_at_limit
        if limit == 0:
            raise SqlError("22023", "RECURSION LIMIT must be greater than zero", position=query.with_.at + 1)
        names = tuple(c.name for c in query.with_.ctes)
        priorities = block_priorities(inner, query.with_)
        block = LetRec(bindings, schemas, bound.rel, limit, at_limit, names, priorities, not query.with_.no_priority)
        return replace(bound, rel=block)
    return _body(cte.with_ctes(env, query.with_, outer), query, outer, locking)


def _body(
    env: Environment, query: nodes.Query, outer: NameScope | None, locking: Sequence[nodes.Locking] = ()
) -> BoundQuery:
    """The query without its WITH."""
    body = query.body
    if isinstance(body, nodes.Select):
        bound = bind_select(env, body, query.order, outer, locking)
    elif isinstance(body, nodes.Query):
        bound = bind_query(env, body, outer)
        if query.order or query.limit is not None or query.offset is not None:
            bound = _ordered(env, BoundQuery(finished(resolve_columns(env, bound)), bound.columns), query.order)
    else:
        bound = _ordered(env, bind_set_query(env, body, outer), query.order)
    return limited(env, query, bound, outer)


def _position(node: nodes.Expr, position: int | None, bound: BoundQuery) -> int:
    """The output column that an item of ORDER BY names; -1 if it is none."""
    names = [c.name for c in bound.columns]
    if position is None and isinstance(node, nodes.Name) and node.parts[-1] in names:
        return names.index(node.parts[-1])
    return -1 if position is None else position


def _ordered(env: Environment, bound: BoundQuery, order: Sequence[nodes.OrderItem]) -> BoundQuery:
    """ORDER BY over a set operation, VALUES or a parenthesised query, which takes output columns only. Raises 0A000."""
    if not order:
        return bound
    bound = resolve_columns(env, bound)
    visible = visible_columns([c.name for c in bound.columns], schema(bound.rel))
    scope = NameScope(Namespace(visible), None, clause="ORDER BY")
    keys = []
    for item in order:
        position = ordinal(item.expr, len(visible), "ORDER BY")
        if env.notes is not None:
            env.notes.output(item.expr, _position(item.expr, position, bound))
        if position is not None:
            keys.append(sort_key(visible[position].expr, item))
            continue
        if not isinstance(item.expr, nodes.Name):
            raise SqlError(
                "0A000", "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
                detail="Only result column names can be used, not expressions or functions.",
                hint="Add the expression/function to every SELECT, or move the UNION into a FROM clause.",
                position=item.at + 1,
            )  # fmt: skip
        keys.append(sort_key(ExpressionBinder(env, scope, "ORDER BY").bind(item.expr), item))
    return replace(bound, order=tuple(keys))
