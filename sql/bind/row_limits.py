"""LIMIT, OFFSET and FETCH FIRST … WITH TIES."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError, unsupported
from ivm.words import INT8
from planner.expr.scalar import And, Column, Literal, OuterColumn, Scalar, SortKey
from planner.logical.levels import relevel, relevel_rel
from planner.logical.nodes import Filter, Join, JoinKind, Numbering, Project, Rel, TopK, schema
from planner.logical.traversal import TRUE, own_columns
from sql.bind.bound_query import UNIT, BoundQuery
from sql.bind.coerce import cast
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.from_clause import bind_from
from sql.bind.operators import operator
from sql.bind.scope import NameScope
from sql.bind.subquery import resolve_columns
from sql.bind.walk import has_subquery, references
from sql.syntax.nodes import queries as nodes


def limited(env: Environment, query: nodes.Query, bound: BoundQuery, outer: NameScope | None) -> BoundQuery:
    """The query with its LIMIT and OFFSET, which may name columns of enclosing queries. Raises 2201W, 2201X, 42P10."""
    limit, offset = _row_count(env, query, "LIMIT", outer), _row_count(env, query, "OFFSET", outer)
    bound = replace(bound, limit=bound.limit if query.limit is None else limit,
                    offset=bound.offset if query.offset is None else offset)  # fmt: skip
    if query.ties:
        return _with_ties(env, query, bound)
    if any(has_subquery(e) for e in (limit, offset) if e is not None):
        return _computed(resolve_columns(env, bound))
    return bound


def _computed(bound: BoundQuery) -> BoundQuery:
    """The query with bounds that have subqueries: joined to one row of them, it sees them as outer columns."""
    given = tuple(e for e in (bound.limit, bound.offset) if e is not None)
    columns = iter(OuterColumn(1, i, INT8) for i in range(len(given)))
    limit, offset = (None if e is None else next(columns) for e in (bound.limit, bound.offset))
    inner: Rel = relevel_rel(bound.rel, lambda level, index: (level + 1, index), 1)
    order = tuple(SortKey(_deeper(k.expr), k.descending, k.nulls_first) for k in bound.order)
    joined = Join(JoinKind.INNER, Project(UNIT, given), TopK(inner, (), order, limit, offset), TRUE, True)
    return replace(bound, rel=Project(joined, own_columns(schema(joined))[len(given) :]), limit=None, offset=None)


def _deeper(expr: Scalar) -> Scalar:
    return relevel(expr, lambda level, index: (level + 1 if level else 0, index))


def constant_expression(env: Environment, node: nodes.Expr, what: str) -> Scalar:
    """An expression without columns; its type may be UNKNOWN. ``what``: the clause, for errors. Raises 42P10, 0A000."""
    expr = _without_columns(env, node, what, None)
    if has_subquery(expr):
        raise unsupported(f"a subquery in {what}", position=node.at + 1)
    return expr


def _without_columns(env: Environment, node: nodes.Expr, what: str, outer: NameScope | None) -> Scalar:
    """An expression without columns of its own query. Raises 42P10."""
    try:
        return ExpressionBinder(env, NameScope(parent=outer, clause=what), what).bind(node)
    except SqlError as error:
        if error.sqlstate == "42703":
            message = f"argument of {what} must not contain variables"
            raise SqlError("42P10", message, position=error.position) from None
        raise


def _check_outer(env: Environment, query: nodes.Query, node: nodes.Expr, what: str, outer: NameScope | None) -> None:
    """Raises 42P10 where a name that an enclosing query has too is one of the query's own."""
    if isinstance(query.body, nodes.Select):
        _, namespace = bind_from(env, query.body.from_, outer)
        expr = ExpressionBinder(env, NameScope(namespace, outer, clause=what), what).bind(node)
        if any(level == 0 for level, _ in references(expr)):
            raise SqlError("42P10", f"argument of {what} must not contain variables", position=node.at + 1)


def _with_ties(env: Environment, query: nodes.Query, bound: BoundQuery) -> BoundQuery:
    """FETCH FIRST n ROWS WITH TIES: of the rows after OFFSET, those before which at most n - 1 others sort. Raises
    2201W, 42601."""
    assert query.limit is not None
    if any(has_subquery(e) for e in (bound.limit, bound.offset) if e is not None):
        raise unsupported("a subquery in FETCH FIRST … WITH TIES", position=query.limit.at + 1)
    if not query.order:
        raise SqlError("42601", "WITH TIES cannot be specified without ORDER BY clause")
    if bound.limit is None:
        raise SqlError("2201W", "row count cannot be null in FETCH FIRST ... WITH TIES clause")
    limit, offset = bound.limit, bound.offset
    bound = resolve_columns(env, bound)
    at, columns = query.limit.at, schema(bound.rel)
    numbers = (Numbering.RANK, Numbering.ROW_NUMBER)
    rank, number = (Column(len(columns) + i, INT8, False) for i in range(2))
    zero = Literal(0, INT8)
    last = limit if offset is None else operator(env, "+", [limit, offset], at, "pg_catalog")
    conditions = [
        operator(env, "<=", [rank, last], at, "pg_catalog"), operator(env, ">", [limit, zero], at, "pg_catalog")
    ]  # fmt: skip
    if offset is not None:
        conditions.append(operator(env, ">", [number, offset], at, "pg_catalog"))
    kept = numbers[:1] if offset is None else numbers
    numbered = TopK(bound.rel, (), bound.order, None, None, kept)
    rel = Project(Filter(numbered, And(tuple(conditions))), own_columns(columns))
    return replace(bound, rel=rel, limit=None, offset=None)


def _row_count(env: Environment, query: nodes.Query, what: str, outer: NameScope | None) -> Scalar | None:
    """LIMIT or OFFSET as a bigint; None for NULL, which means no limit. Raises 2201W, 2201X."""
    node = query.limit if what == "LIMIT" else query.offset
    if node is None:
        return None
    expr = cast(env, _without_columns(env, node, what, outer), INT8, "assignment", node.at)
    if references(expr):
        _check_outer(env, query, node, what, outer)
    if isinstance(expr, Literal):
        if expr.value is None:
            return None
        if isinstance(expr.value, int) and expr.value < 0:
            code = "2201W" if what == "LIMIT" else "2201X"
            raise SqlError(code, f"{what} must not be negative")
    return expr
