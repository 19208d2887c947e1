"""Set operations and VALUES: columns brought to their common types."""

from __future__ import annotations

from collections.abc import Sequence

from ivm.errors import SqlError
from ivm.words import ColumnType, SqlType
from planner.expr.scalar import Scalar
from planner.logical.nodes import Project, Rel, SetKind, SetOperation, Values, schema
from sql.bind import query as queries
from sql.bind import selection
from sql.bind.coerce import common_type
from sql.bind.conditional import unify
from sql.bind.environment import Environment
from sql.bind.expression import Binder
from sql.bind.scope import Scope
from sql.bind.walk import references
from sql.statements.queries import OutputColumn
from sql.syntax import nodes


def bind_body(env: Environment, body: nodes.SetQuery | nodes.ValuesList, outer: Scope | None) -> queries.Bound:
    """A set operation or VALUES."""
    if isinstance(body, nodes.ValuesList):
        return _values_list(env, body, outer)
    left, right = _operand(env, body.left, outer), _operand(env, body.right, outer)
    return combine(env, body, left, right)


def _operand(env: Environment, body: nodes.QueryBody, outer: Scope | None) -> queries.Bound:
    match body:
        case nodes.Select():
            return selection.bind_select(env, body, (), outer)
        case nodes.Query():
            bound = queries.bind_unsettled(env, body, outer)
            if bound.order or bound.limit is not None or bound.offset is not None:
                table = queries.finished(queries.settle(env, bound))
                return queries.Bound(table, bound.columns)
            return bound
        case _:
            return bind_body(env, body, outer)


def combine(env: Environment, node: nodes.SetQuery, left: queries.Bound, right: queries.Bound) -> queries.Bound:
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
    rel = SetOperation(
        kind,
        node.all,
        queries.convert(env, left.rel, types, "implicit"),
        queries.convert(env, right.rel, types, "implicit"),
    )
    columns = tuple(OutputColumn(c.name, t) for c, t in zip(left.columns, types, strict=True))
    return queries.Bound(rel, columns)


def start(body: nodes.QueryBody) -> int:
    match body:
        case nodes.Select() if body.targets:
            return body.targets[0].at
        case nodes.SetQuery():
            return start(body.left)
        case nodes.Query():
            return start(body.body)
        case _:
            return body.at


def column_at(body: nodes.QueryBody, index: int) -> int:
    """Where a branch's column stands, for errors."""
    match body:
        case nodes.Select() if index < len(body.targets):
            return body.targets[index].at
        case nodes.SetQuery():
            return column_at(body.left, index)
        case nodes.Query():
            return column_at(body.body, index)
        case nodes.ValuesList() if index < len(body.rows[0]):
            return body.rows[0][index].at
        case _:
            return body.at


def _values_list(env: Environment, node: nodes.ValuesList, outer: Scope | None) -> queries.Bound:
    binder = Binder(env, Scope(parent=outer, clause="VALUES"), "VALUES")
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
    rel = values(tuple(tuple(row) for row in bound))
    columns = tuple(OutputColumn(f"column{i + 1}", c.type) for i, c in enumerate(schema(rel)))
    return queries.Bound(rel, columns)


def values(rows: Sequence[tuple[Scalar, ...]]) -> Rel:
    """VALUES of rows whose columns have one type each; a union of projections where they refer to an outer query."""
    if any(references(e) for row in rows for e in row):
        parts: list[Rel] = [Project(Values(((),), ()), row) for row in rows]
        result = parts[0]
        for part in parts[1:]:
            result = SetOperation(SetKind.UNION, True, result, part)
        return result
    columns = tuple(ColumnType(column[0].type, any(e.nullable for e in column)) for column in zip(*rows, strict=True))
    return Values(tuple(rows), columns)


def combine_types(node: nodes.SetQuery, index: int, left: SqlType, right: SqlType) -> SqlType:
    """The common type of one column. Raises 42804."""
    positions = [column_at(node.left, index), column_at(node.right, index)]
    return common_type([left, right], node.kind.upper(), positions)
