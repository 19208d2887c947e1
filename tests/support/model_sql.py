"""The oracle's queries as SQL text."""

from __future__ import annotations

from typing import Any

from tests.support.model import (
    Agg,
    Block,
    Col,
    Compare,
    Const,
    Derived,
    Exists,
    Expr,
    First,
    From,
    In,
    Joined,
    Op,
    Query,
    Scalar,
    Select,
    SetOp,
    Table,
    Timed,
    When,
)

PLAIN: list[bool] = []
"""Set if ASOF JOIN must be written for PostgreSQL: as a lateral subquery with LIMIT 1."""
SQL_TYPES = {"int": "bigint", "text": "text", "bool": "boolean"}


def literal(value: Any, kind: str) -> str:
    """A typed constant."""
    if value is None:
        return f"NULL::{SQL_TYPES[kind]}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'::text"
    return f"{value}::bigint" if value >= 0 else f"({value})::bigint"


def expression(expr: Expr) -> str:
    """An expression, parenthesized if necessary."""
    match expr:
        case Const():
            return literal(expr.value, expr.type)
        case Col():
            return f"{expr.alias}.{expr.name}"
        case Op():
            return _operator(expr)
        case When():
            arms = f"WHEN {expression(expr.condition)} THEN {expression(expr.yes)} ELSE {expression(expr.no)}"
            return f"CASE {arms} END"
        case Scalar():
            return f"({text(expr.query)})"
        case Exists():
            return f"EXISTS ({text(expr.query)})"
        case In():
            return f"({expression(expr.arg)} {'NOT ' if expr.negated else ''}IN ({text(expr.query)}))"
        case Compare():
            word = "ALL" if expr.every else "ANY"
            return f"({expression(expr.arg)} {expr.op} {word} ({text(expr.query)}))"


def _operator(expr: Op) -> str:
    args = [expression(a) for a in expr.args]
    if expr.name.startswith("is ") and len(args) == 1:
        return f"({args[0]} {expr.name.upper()})"
    if expr.name == "not":
        return f"(NOT {args[0]})"
    if expr.name.isalpha() and expr.name not in ("and", "or"):
        return f"{expr.name}({', '.join(args)})"
    return "(" + f" {expr.name.upper()} ".join(args) + ")"


def _source(source: From) -> str:
    if isinstance(source, Table):
        return f"{source.name} {source.alias}"
    if isinstance(source, Derived):
        names = ", ".join(name for name, _ in source.columns)
        return f"({text(source.query)}) {source.alias}({names})"
    if isinstance(source, Timed):
        return _timed(source)
    assert isinstance(source, Joined)
    left, right = _source(source.left), _source(source.right)
    if isinstance(source.right, Joined):
        right = f"({right})"
    on = "" if source.kind == "cross" else f" ON {expression(source.on)}"
    return f"{left} {source.kind.upper()} JOIN {right}{on}"


def _timed(source: Timed) -> str:
    on = " AND ".join(expression(test) for test in source.tests)
    if not PLAIN:
        return f"{_source(source.left)} ASOF {'LEFT ' if source.outer else ''}JOIN {_source(source.right)} ON {on}"
    order = [f"{expression(source.points[1])}{' DESC' if source.sign[0] == '>' else ''}"]
    order += [f"{source.right.alias}.{name}" for name, _ in source.right.columns]
    near = f"SELECT * FROM {_source(source.right)} WHERE {on} ORDER BY {', '.join(order)} LIMIT 1"
    join = "LEFT JOIN" if source.outer else "JOIN"
    names = ", ".join(name for name, _ in source.right.columns)
    return f"{_source(source.left)} {join} LATERAL ({near}) {source.right.alias}({names}) ON true"


def _aggregate(agg: Agg) -> str:
    if agg.arg is None:
        return "count(*)"
    cast = "::bigint" if agg.name == "sum" else ""
    return f"{agg.name}({'DISTINCT ' if agg.distinct else ''}{expression(agg.arg)}){cast}"


def _select(query: Select) -> str:
    source = f"FROM {_source(query.source)}"
    where = f" WHERE {expression(query.where)}" if query.where is not None else ""
    word = "SELECT DISTINCT" if query.distinct else "SELECT"
    if query.keys is None:
        outputs = ", ".join(f"{expression(e)} AS c{i}" for i, e in enumerate(query.outputs))
        return f"{word} {outputs} {source}{where}"
    parts = [expression(k) for k in query.keys] + [_aggregate(a) for a in query.aggs]
    outputs = ", ".join(f"{p} AS c{i}" for i, p in enumerate(parts))
    group = f" GROUP BY {', '.join(expression(k) for k in query.keys)}" if query.keys else ""
    having = ""
    if query.having is not None:
        having = " HAVING " + _with_aggregates(expression(query.having), query.aggs)
    return f"{word} {outputs} {source}{where}{group}{having}"


def _with_aggregates(having: str, aggs: tuple[Agg, ...]) -> str:
    for i, agg in enumerate(aggs):
        having = having.replace(f"agg.a{i}", _aggregate(agg))
    return having


def text(query: Query) -> str:
    """The query as SQL; its columns are named c0, c1, …."""
    if isinstance(query, Select):
        return _select(query)
    if isinstance(query, SetOp):
        return f"({text(query.left)}) {query.kind.upper()}{' ALL' if query.all else ''} ({text(query.right)})"
    if isinstance(query, First):
        order = ", ".join(f"{i + 1}{' DESC' if descending else ''}" for i, descending in query.order)
        return f"SELECT * FROM ({text(query.query)}) f ORDER BY {order} LIMIT {query.limit} OFFSET {query.offset}"
    if isinstance(query, Block):
        return _block(query)
    names = ", ".join(name for name, _ in query.columns)
    union = "UNION ALL" if query.all else "UNION"
    body = f"{text(query.base)} {union} {text(query.step)}"
    return f"WITH RECURSIVE {query.name}({names}) AS ({body}) SELECT * FROM {query.name}"


def _block(block: Block) -> str:
    word = "RETURN AT" if block.return_at else "ERROR AT"
    limit = "" if block.limit is None else f" ({word} RECURSION LIMIT {block.limit})"
    bindings = ", ".join(
        f"{b.name}({', '.join(f'{name} {SQL_TYPES[kind]}' for name, kind in b.columns)}) AS ({text(b.query)})"
        for b in block.bindings
    )
    body = text(block.body)
    if body.startswith("WITH"):
        body = f"SELECT * FROM ({body}) b"
    return f"WITH MUTUALLY RECURSIVE{limit} {bindings} {body}"
