"""The name of a result column without AS (FigureColname in parse_target.c)."""

from __future__ import annotations

from sql.bind.environment import Environment
from sql.syntax.nodes import queries as nodes
from storage.types.type_names import internal_name

UNNAMED = "?column?"


def column_name(env: Environment, expr: nodes.Expr) -> str:
    """The name that Postgres gives to a result column without AS."""
    return _figure(env, expr)[0] or UNNAMED


def _figure(env: Environment, expr: nodes.Expr) -> tuple[str, int]:
    """The name and its strength: 2 for a name, 1 for that of a type or CASE, 0 for none."""
    match expr:
        case nodes.Name():
            return expr.parts[-1], 2
        case nodes.Field():
            return expr.name, 2
        case nodes.Apply():
            return expr.label or expr.name[-1], 2
        case nodes.JsonCall() if expr.function != "is json":
            return expr.function, 2
        case nodes.Operator() if expr.symbol == "at time zone":
            return "timezone", 2
        case nodes.Collate():
            return _figure(env, expr.expr)
        case nodes.Subscript():
            return _figure(env, expr.expr)
        case nodes.Cast():
            name, strength = _figure(env, expr.expr)
            if strength > 1:
                return name, strength
            domain = env.domain(expr.type)
            if domain is not None:
                return domain.name, 1
            return internal_name(env.type(expr.type)).removeprefix("_"), 1
        case nodes.CaseExpr():
            name, strength = _figure(env, expr.otherwise) if expr.otherwise is not None else ("", 0)
            return (name, strength) if strength > 1 else ("case", 1)
        case nodes.Subquery():
            return _of_query(env, expr.query), 2
        case nodes.ExistsExpr():
            return "exists", 2
        case nodes.ArrayExpr() | nodes.ArrayQuery():
            return "array", 2
        case nodes.RowExpr():
            return "row", 2
        case _:
            return "", 0


def _of_query(env: Environment, query: nodes.Query) -> str:
    body: nodes.QueryBody = query
    while not isinstance(body, nodes.Select):
        if isinstance(body, nodes.ValuesList):
            return "column1"
        body = body.left if isinstance(body, nodes.SetQuery) else body.body
    if not body.targets:
        return ""
    target = body.targets[0]
    return target.alias or _figure(env, target.expr)[0]
