"""Set operations and VALUES: columns brought to their common types."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from planner.logical.nodes import Rel, SetKind, SetOperation, schema
from sql.bind.bound_query import BoundQuery, finished, values_rel
from sql.bind.coerce import common_type
from sql.bind.comparable import check_equality
from sql.bind.conditional import unify
from sql.bind.constant_rows import constant_values
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.positions import column_at, start
from sql.bind.scope import NameScope
from sql.bind.selection import bind_select
from sql.bind.subquery import convert, resolve_columns
from sql.statements.queries import OutputColumn
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.constant_items import ConstantRows


def bind_set_query(env: Environment, body: nodes.SetQuery | nodes.ValuesList, outer: NameScope | None) -> BoundQuery:
    """A set operation or VALUES; its columns may be of type UNKNOWN. Raises 42601, 42804."""
    if isinstance(body, nodes.ValuesList):
        return _values_list(env, body, outer)
    left, right = _operand(env, body.left, outer), _operand(env, body.right, outer)
    return _combined(env, body, left, right)


def _operand(env: Environment, body: nodes.QueryBody, outer: NameScope | None) -> BoundQuery:
    """One side, without hidden columns; a parenthesised query's ORDER BY, LIMIT and OFFSET become part of its plan."""
    match body:
        case nodes.Select():
            bound = bind_select(env, body, (), outer)
        case nodes.Query():
            bound = env.bind_query(body, outer)
        case _:
            return bind_set_query(env, body, outer)
    hidden = len(schema(bound.rel)) > bound.width
    if hidden or bound.order or bound.limit is not None or bound.offset is not None:
        return BoundQuery(finished(resolve_columns(env, bound)), bound.columns)
    return bound


def _combined(env: Environment, node: nodes.SetQuery, left: BoundQuery, right: BoundQuery) -> BoundQuery:
    """The operation over its bound operands. Raises 42601 for different widths, 42804 for types."""
    kind = SetKind(node.kind)
    name = node.kind.upper()
    if left.width != right.width:
        message = f"each {name} query must have the same number of columns"
        raise SqlError("42601", message, position=start(node.right) + 1)
    types = [
        combine_types(node, i, a.type, b.type)
        for i, (a, b) in enumerate(zip(schema(left.rel), schema(right.rel), strict=True))
    ]
    if not (node.all and kind is SetKind.UNION):
        for type_ in types:
            check_equality(type_, start(node.left))
    first = convert(env, left.rel, types, "implicit")
    if kind is SetKind.UNION and not node.all and isinstance(first, SetOperation) and first.kind is kind:
        first = replace(first, all=True)  # the rows are made distinct once
    rel = SetOperation(
        kind,
        node.all,
        first,
        convert(env, right.rel, types, "implicit"),
    )
    if env.notes is not None:
        env.notes.query(node, types)
    columns = tuple(OutputColumn(c.name, t) for c, t in zip(left.columns, types, strict=True))
    return BoundQuery(rel, columns)


def _values_list(env: Environment, node: nodes.ValuesList, outer: NameScope | None) -> BoundQuery:
    rel = constant_values(node.rows) if isinstance(node.rows, ConstantRows) else None
    if rel is None:
        rel = _bound_values(env, node, outer)
    if env.notes is not None:
        env.notes.query(node, [c.type for c in schema(rel)])
    columns = tuple(OutputColumn(f"column{i + 1}", c.type) for i, c in enumerate(schema(rel)))
    return BoundQuery(rel, columns)


def _bound_values(env: Environment, node: nodes.ValuesList, outer: NameScope | None) -> Rel:
    binder = ExpressionBinder(env, NameScope(parent=outer, clause="VALUES"), "VALUES")
    width = len(node.rows[0])
    for row in node.rows:
        if len(row) != width:
            raise SqlError("42601", "VALUES lists must all be the same length", position=row[0].at + 1)
    bound = [[binder.bind(e) for e in row] for row in node.rows]
    if len(bound) > 1:
        for i in range(width):
            unified = unify(binder, [row[i] for row in bound], "VALUES", [row[i].at for row in node.rows])
            for exprs, expr in zip(bound, unified, strict=True):
                exprs[i] = expr
    return values_rel(tuple(tuple(row) for row in bound))


def combine_types(node: nodes.SetQuery, index: int, left: SqlType, right: SqlType) -> SqlType:
    """The common type of a column of both sides. Raises 42804."""
    if left == right and left.kind is not Kind.UNKNOWN and left.domain is None:
        return left
    positions = [column_at(node.left, index), column_at(node.right, index)]
    return common_type([left, right], node.kind.upper(), positions)
