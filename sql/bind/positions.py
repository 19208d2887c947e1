"""Where error messages point to: character offsets of expressions, query bodies and their columns."""

from __future__ import annotations

from sql.syntax.nodes import queries as nodes


def position(expr: nodes.Expr) -> int:
    """An expression's offset: where its leftmost part starts, as in Postgres."""
    match expr:
        case nodes.Operator() if len(expr.args) >= 2:
            return min(expr.at, position(expr.args[0]))
        case nodes.AndExpr() | nodes.OrExpr():
            return position(expr.args[0])
        case nodes.IsTest() | nodes.InList() | nodes.InQuery() | nodes.Between() | nodes.Quantifier():
            return position(expr.expr)
        case nodes.Alike():
            return position(expr.first)
        case nodes.Mixed():
            return position(expr.chains[0].first)
        case _:
            return expr.at


def start(body: nodes.QueryBody) -> int:
    """A query body's offset: that of its first column."""
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
    """The offset of a query body's column in its first branch."""
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
