"""Queries: the entry points for subqueries and for whole statements, and ORDER BY, LIMIT and OFFSET around a body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ivm.errors import SqlError, unsupported
from ivm.words import INT8, TIMESTAMPTZ, Kind, SqlType
from planner.expr.functions.casts import CastContext
from planner.expr.scalar import Column, Literal, Scalar, SortKey
from planner.logical.nodes import Distinct, Finishing, LetRec, Project, Rel, SetOperation, TopK, Values, schema
from sql.bind import cte, selection, setops, volatile
from sql.bind.coerce import cast, type_name
from sql.bind.environment import Environment, Table
from sql.bind.expression import Binder, sort_key
from sql.bind.priority import block_priorities
from sql.bind.scope import Namespace, Scope, Visible
from sql.bind.walk import has_subquery
from sql.statements.queries import OutputColumn, Query
from sql.syntax import nodes

_NUMBERS = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.FLOAT4, Kind.FLOAT8)


@dataclass(frozen=True, slots=True)
class Bound:
    """A query not yet finished: ``rel`` may have hidden columns after the named ones, for ``order`` to use."""

    rel: Rel
    columns: tuple[OutputColumn, ...]
    order: tuple[SortKey, ...] = ()
    limit: Scalar | None = None
    offset: Scalar | None = None

    @property
    def width(self) -> int:
        return len(self.columns)


def bind_query(env: Environment, query: nodes.Query, outer: Scope | None) -> Table:
    """A subquery: its order matters to LIMIT only."""
    bound = settle(env, bind_unsettled(env, query, outer))
    return Table(finished(bound), tuple(c.name for c in bound.columns))


def bind_ordered(env: Environment, query: nodes.Query, outer: Scope | None) -> tuple[Table, tuple[SortKey, ...]]:
    """A subquery whose order matters (ARRAY(…)): its plan, hidden columns included, and the order."""
    bound = settle(env, bind_unsettled(env, query, outer))
    rel = sliced(bound)
    return Table(rel, tuple(c.name for c in bound.columns)), bound.order


def bind_top(env: Environment, query: nodes.Query) -> Query:
    """A whole statement: order and slice are left to its finishing."""
    as_of = None if query.as_of is None else moment_expression(env, query.as_of, "AS OF")
    _check_locked(query)
    bound = settle(env, bind_unsettled(env, replace(query, as_of=None, locking=None), None))
    columns = _typed_columns(bound)
    width = bound.width if len(schema(bound.rel)) != bound.width else None
    finishing = Finishing(bound.order, bound.limit, bound.offset, width)
    if volatile.gives_volatile(bound):
        bound, project = volatile.postponed(bound)
        finishing = replace(finishing, width=None, project=project)
    return Query(bound.rel, finishing, columns, as_of, query.as_of_at_least, query.locking is not None)


def _check_locked(query: nodes.Query) -> None:
    """FOR UPDATE stands over a plain SELECT, its tables in FROM. Raises 0A000 and 42P01 as Postgres does."""
    if query.locking is None:
        return
    if not isinstance(query.body, nodes.Select):
        message = "FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT"
        raise SqlError("0A000", message, position=query.at + 1)
    todo = list(query.body.from_)
    known: set[str | None] = set()
    while todo:
        ref = todo.pop()
        if not isinstance(ref, nodes.JoinedTable):
            known.add(ref.alias or (ref.name if isinstance(ref, nodes.TableName) else None))
        elif ref.alias is None:
            todo += [ref.left, ref.right]
    for name, at in query.locking:
        if name not in known:
            message = f'relation "{name}" in FOR UPDATE clause not found in FROM clause'
            raise SqlError("42P01", message, position=at + 1)


def bind_stored(env: Environment, query: nodes.Query) -> Query:
    """A query to be maintained or inserted: LIMIT is part of the plan, and nothing is left to finish."""
    if query.as_of is not None:
        raise unsupported("AS OF in a view or subquery", position=query.as_of.at + 1)
    bound = settle(env, bind_unsettled(env, query, None))
    return Query(finished(bound), Finishing(), _typed_columns(bound))


def _typed_columns(bound: Bound) -> tuple[OutputColumn, ...]:
    return tuple(replace(c, type=t.type) for c, t in zip(bound.columns, schema(bound.rel), strict=False))


def sliced(bound: Bound) -> Rel:
    """The plan with LIMIT and OFFSET applied."""
    if bound.limit is None and bound.offset is None:
        return bound.rel
    return TopK(bound.rel, (), bound.order, bound.limit, bound.offset)


def finished(bound: Bound) -> Rel:
    """The plan with slice applied and hidden columns gone."""
    rel = sliced(bound)
    columns = schema(rel)
    if len(columns) == bound.width:
        return rel
    if rel is bound.rel and isinstance(rel, Project):
        return Project(rel.input, rel.exprs[: bound.width])
    return Project(rel, tuple(Column(i, c.type, c.nullable) for i, c in enumerate(columns[: bound.width])))


def constant_expression(env: Environment, node: nodes.Expr, what: str) -> Scalar:
    """An expression without columns, perhaps untyped. Raises 42P10 for one with."""
    try:
        expr = Binder(env, Scope(clause=what), what).bind(node)
    except SqlError as error:
        if error.sqlstate == "42703":
            message = f"argument of {what} must not contain variables"
            raise SqlError("42P10", message, position=error.position) from None
        raise
    if has_subquery(expr):
        raise unsupported(f"a subquery in {what}", position=node.at + 1)
    return expr


def moment_expression(env: Environment, node: nodes.Expr, what: str) -> Scalar:
    """An epoch (bigint; so a parameter without a type) or a timestamptz. Raises 42804 for what is neither."""
    expr = constant_expression(env, node, what)
    if expr.type.kind in _NUMBERS or (expr.type.kind is Kind.UNKNOWN and not isinstance(expr, Literal)):
        return cast(env, expr, INT8, "assignment", node.at)
    if expr.type.kind in (Kind.UNKNOWN, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return cast(env, expr, TIMESTAMPTZ, "assignment", node.at)
    message = f"{what} takes an epoch (bigint) or a timestamp with time zone, not {type_name(expr.type)}"
    raise SqlError("42804", message, position=node.at + 1)


def bind_unsettled(env: Environment, query: nodes.Query, outer: Scope | None) -> Bound:
    """A query whose columns may still be untyped literals, for the place it stands in to type them."""
    if query.as_of is not None:
        raise unsupported("AS OF in a view or subquery", position=query.as_of.at + 1)
    if query.locking is not None:
        raise unsupported("FOR UPDATE or SHARE in a view or subquery", position=query.at + 1)
    if query.with_ is None:
        return _body(env, query, outer)
    if query.with_.mutually:
        inner, bindings, schemas = cte.mutually_recursive(env, query.with_, outer)
        bound = settle(inner, _body(inner, query, outer))
        limit, at_limit = query.with_.limit, query.with_.return_at_limit
        if limit == 0:
            raise SqlError("22023", "RECURSION LIMIT must be greater than zero", position=query.with_.at + 1)
        names = tuple(c.name for c in query.with_.ctes)
        priorities = block_priorities(inner, query.with_)
        block = LetRec(bindings, schemas, bound.rel, limit, at_limit, names, priorities, not query.with_.no_priority)
        return replace(bound, rel=block)
    return _body(cte.with_ctes(env, query.with_, outer), query, outer)


def _body(env: Environment, query: nodes.Query, outer: Scope | None) -> Bound:
    body = query.body
    if isinstance(body, nodes.Select):
        bound = selection.bind_select(env, body, query.order, outer)
    elif isinstance(body, nodes.Query):
        bound = bind_unsettled(env, body, outer)
        if query.order or query.limit is not None or query.offset is not None:
            bound = _ordered(env, Bound(finished(settle(env, bound)), bound.columns), query.order)
    else:
        bound = _ordered(env, setops.bind_body(env, body, outer), query.order)
    if query.limit is not None:
        bound = replace(bound, limit=_count(env, query.limit, "LIMIT"))
    if query.offset is not None:
        bound = replace(bound, offset=_count(env, query.offset, "OFFSET"))
    return bound


def _count(env: Environment, node: nodes.Expr, what: str) -> Scalar | None:
    expr = cast(env, constant_expression(env, node, what), INT8, "assignment", node.at)
    if isinstance(expr, Literal):
        if expr.value is None:
            return None
        if isinstance(expr.value, int) and expr.value < 0:
            code = "2201W" if what == "LIMIT" else "2201X"
            raise SqlError(code, f"{what} must not be negative")
    return expr


def _ordered(env: Environment, bound: Bound, order: Sequence[nodes.OrderItem]) -> Bound:
    """ORDER BY over a set operation or VALUES: by output columns only."""
    if not order:
        return bound
    bound = settle(env, bound)
    columns = schema(bound.rel)
    visible = tuple(
        Visible(c.name, Column(i, columns[i].type, columns[i].nullable)) for i, c in enumerate(bound.columns)
    )
    scope = Scope(Namespace(visible), None, clause="ORDER BY")
    keys = []
    for item in order:
        position = selection.ordinal(item.expr, len(visible), "ORDER BY")
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
        keys.append(sort_key(Binder(env, scope, "ORDER BY").bind(item.expr), item))
    return replace(bound, order=tuple(keys))


def settle(env: Environment, bound: Bound) -> Bound:
    """Untyped columns become text."""
    columns = schema(bound.rel)
    if all(c.type.kind is not Kind.UNKNOWN for c in columns):
        return bound
    types = [None if c.type.kind is not Kind.UNKNOWN else SqlType(Kind.TEXT) for c in columns]
    return replace(bound, rel=convert(env, bound.rel, types, "implicit"))


def convert(env: Environment, rel: Rel, types: Sequence[SqlType | None], context: CastContext) -> Rel:
    """The relation with its columns cast to these types (None: as they are), literals where they stand."""
    columns = schema(rel)
    if all(t is None or t == c.type for t, c in zip(types, columns, strict=True)):
        return rel

    def one(expr: Scalar, type_: SqlType | None) -> Scalar:
        return expr if type_ is None else cast(env, expr, type_, context, 0)

    match rel:
        case Project():
            return Project(rel.input, tuple(one(e, t) for e, t in zip(rel.exprs, types, strict=True)))
        case Values():
            rows = tuple(tuple(one(e, t) for e, t in zip(row, types, strict=True)) for row in rel.rows)
            return setops.values(rows)
        case SetOperation() if any(c.type.kind is Kind.UNKNOWN for c in columns):
            left = convert(env, rel.left, types, context)
            return replace(rel, left=left, right=convert(env, rel.right, types, context))
        case Distinct() if any(c.type.kind is Kind.UNKNOWN for c in columns):
            return Distinct(convert(env, rel.input, types, context))
        case _:
            exprs = (Column(i, c.type, c.nullable) for i, c in enumerate(columns))
            return Project(rel, tuple(one(e, t) for e, t in zip(exprs, types, strict=True)))
