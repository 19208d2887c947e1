"""sqlglot's queries → our syntax tree."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sqlglot import exp

from ivm.errors import unsupported
from sql.syntax.nodes.queries import (
    Cte,
    DerivedTable,
    Expr,
    FunctionTable,
    JoinedTable,
    Preparable,
    Query,
    QueryBody,
    Select,
    SetQuery,
    TableName,
    TableRef,
    Target,
    ValuesList,
    With,
)
from sql.syntax.rules.core import at
from sql.syntax.translate.expressions import expression, expressions, optional, order_items, type_name

_KINDS: Final = {exp.Union: "union", exp.Except: "except", exp.Intersect: "intersect"}
_KNOWN_OF_SELECT: Final = frozenset(
    "with_ distinct expressions from_ joins where group having order limit offset as_of locking".split()  # noqa: SIM905
)


def query(node: exp.Expr) -> Query:
    """A query with its WITH and what stands after its body. A Subquery without any of that is the query inside."""
    start = _query_at(node)
    with_ = node.args.get("with_")
    if isinstance(node, exp.Subquery) and with_ is None and not _has_tail(node):
        return query(node.this)
    args = node.args
    limit, offset, as_of, locking = args.get("limit"), args.get("offset"), args.get("as_of"), args.get("locking")
    return Query(
        _body(node),
        start,
        None if with_ is None else with_clause(with_),
        order_items(args.get("order")),
        None if limit is None else expression(limit.args["expression"]),
        None if offset is None else expression(offset.args["expression"]),
        None if as_of is None else expression(as_of.expressions[0]),
        as_of is not None and bool(as_of.expressions[1].this),
        None if locking is None else tuple((table.this, at(table)) for table in locking.expressions),
    )


def _query_at(node: exp.Expr) -> int:
    found = node.meta_get("query_at")
    return at(node) if found is None else int(found)


def _has_tail(node: exp.Expr) -> bool:
    return any(node.args.get(key) is not None for key in ("order", "limit", "offset", "as_of", "locking"))


def _body(node: exp.Expr) -> QueryBody:
    match node:
        case exp.Select():
            return _select(node)
        case exp.Values():
            rows = tuple(expressions(row.expressions) for row in node.expressions)
            return ValuesList(rows, at(node))
        case exp.SetOperation():
            return _set_query(node)
        case exp.Subquery():
            return query(node.this)
        case _:
            raise unsupported(type(node).__name__, position=at(node) + 1)


def _set_query(node: exp.SetOperation) -> QueryBody:
    """By the left operands in a loop: a UNION ALL may have thousands of them."""
    operations: list[exp.SetOperation] = []
    first: exp.Expr = node
    while isinstance(first, exp.SetOperation):
        operations.append(first)
        first = first.this
    left = _operand(first)
    for operation in reversed(operations):
        right = _operand(operation.args["expression"])
        left = SetQuery(_KINDS[type(operation)], not operation.args["distinct"], left, right, at(operation))
    return left


def _operand(node: exp.Expr) -> QueryBody:
    """sqlglot puts INTERSECT under UNION into a Subquery of its own, which has no offset: it was not written."""
    if isinstance(node, exp.Subquery) and node.meta_get("at") is None:
        return _operand(node.this)
    return query(node.this) if isinstance(node, exp.Subquery) else _body(node)


def _select(node: exp.Select) -> Select:
    args = node.args
    for key, value in args.items():
        if value and key not in _KNOWN_OF_SELECT:
            raise unsupported(key.strip("_").upper(), position=at(node) + 1)
    distinct = args.get("distinct")
    group, having, where = args.get("group"), args.get("having"), args.get("where")
    from_ = args.get("from_")
    return Select(
        targets(node.expressions),
        () if from_ is None else from_list(from_.this, args.get("joins") or []),
        None if where is None else expression(where.this),
        None if group is None else expressions(group.expressions),
        None if having is None else expression(having.this),
        None if distinct is None else _distinct_on(distinct),
        at(node),
    )


def _distinct_on(node: exp.Expr) -> tuple[Expr, ...]:
    on = node.args.get("on")
    return () if on is None else expressions(on.expressions)


def targets(nodes: list[exp.Expr]) -> tuple[Target, ...]:
    return tuple(_target(node) for node in nodes)


def _target(node: exp.Expr) -> Target:
    if not isinstance(node, exp.Alias):
        return Target(expression(node), None, at(node))
    alias = node.args.get("alias")
    label = alias.this if isinstance(alias, exp.Identifier) else None
    return Target(expression(node.this), label, at(node))


def with_clause(node: exp.Expr) -> With:
    ctes = tuple(_cte(cte) for cte in node.expressions)
    recursive, meta = bool(node.args.get("recursive")), node.meta
    if not meta.get("mutually"):
        return With(recursive, ctes, at(node))
    priority = None if meta["priority"] is None else expression(meta["priority"])
    return With(True, ctes, at(node), True, meta["limit"], meta["return_at"], priority, meta["no_priority"])


def _cte(node: exp.Expr) -> Cte:
    alias = node.args["alias"]
    name, columns = alias.this.this, alias.args.get("columns") or []
    inner = preparable(node.this)
    if columns and isinstance(columns[0], exp.ColumnDef):
        types = tuple(type_name(column.args["kind"]) for column in columns)
        return Cte(name, tuple(column.this.this for column in columns), inner, at(node), types)
    return Cte(name, tuple(column.this for column in columns), inner, at(node))


def preparable(node: exp.Expr) -> Preparable:
    if isinstance(node, exp.DML):
        from sql.syntax.translate.data import change

        return change(node)
    return query(node)


def from_list(first: exp.Expr, joins: list[exp.Expr]) -> tuple[TableRef, ...]:
    """The items of FROM; sqlglot has commas among the joins."""
    items = [_table(first)]
    for join in joins:
        if join.meta_get("at") is None:
            items.append(_table(join.this))
        else:
            items[-1] = _join(items[-1], join)
    return tuple(items)


def from_items(node: exp.Expr) -> tuple[TableRef, ...]:
    """A FROM list as ``QueryRules.from_items`` makes it."""
    return from_list(node, node.args.get("joins") or [])


def _join(left: TableRef, node: exp.Expr) -> JoinedTable:
    args = node.args
    right = _table(node.this)
    for nested in node.this.args.get("joins") or []:
        right = _join(right, nested)
    kind = "cross" if args.get("kind") else args.get("side") or "inner"
    timed = node.meta_get("timed")
    kind = kind if timed is None else f"{timed} {kind}"
    using = tuple(name.this for name in args.get("using") or [])
    on = optional(args.get("on"))
    natural = args.get("method") is not None
    alias = node.meta_get("using_alias")
    return JoinedTable(kind, left, right, on, using, natural, at(node), using_alias=alias)


def _table(node: exp.Expr) -> TableRef:
    """An item without the joins that follow it."""
    alias, columns = _alias(node)
    lateral = bool(node.meta_get("lateral"))
    if isinstance(node, exp.Table):
        if node.meta_get("timed"):
            raise unsupported("FOR SYSTEM_TIME AS OF PROCTIME() anywhere but after [LEFT] JOIN", position=at(node) + 1)
        functions = node.args.get("rows_from")
        if functions is None:
            return replace(table_name(node), alias=alias, columns=columns)
        ordinality = bool(node.args.get("ordinality"))
        return FunctionTable(expressions(functions), at(node), alias, columns, ordinality, lateral)
    assert isinstance(node, exp.Subquery)
    if not isinstance(node.this, exp.Table) and not _is_joined(node.this):
        return DerivedTable(query(node.this), at(node), alias, columns, lateral)
    joined = _table(node.this)
    for join in node.this.args.get("joins") or []:
        joined = _join(joined, join)
    if alias is None:
        return joined
    assert isinstance(joined, JoinedTable)
    return replace(joined, alias=alias, columns=columns)


def _is_joined(node: exp.Expr) -> bool:
    """Whether a Subquery is a table in parentheses rather than a query."""
    return isinstance(node, exp.Subquery) and node.meta_get("lateral") is not None


def _alias(node: exp.Expr) -> tuple[str | None, tuple[str, ...]]:
    alias = node.args.get("alias")
    if alias is None:
        return None, ()
    return alias.this.this, tuple(column.this for column in alias.args.get("columns") or [])


def table_name(node: exp.Expr) -> TableName:
    """``[[database.]schema.]name`` with its alias, at the name."""
    schema = node.args.get("db")
    start = node.meta_get("name_at")
    name = TableName(None if schema is None else schema.this, node.this.this, at(node) if start is None else start)
    alias, _ = _alias(node)
    name = replace(name, only=True) if node.meta_get("only") else name
    return replace(name, alias=alias) if alias is not None else name
