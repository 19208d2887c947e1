"""sqlglot's expressions → our syntax tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from sqlglot import exp

from ivm.errors import SqlError, unsupported
from sql.syntax.nodes.queries import (
    AndExpr,
    Apply,
    ArrayExpr,
    ArrayQuery,
    Between,
    Boolean,
    CaseExpr,
    Cast,
    Collate,
    Default,
    DistinctTest,
    ExistsExpr,
    Expr,
    Field,
    InList,
    InQuery,
    IsTest,
    Name,
    NotExpr,
    Null,
    Number,
    Operator,
    OrderItem,
    OrExpr,
    Over,
    Param,
    Quantifier,
    Query,
    RowExpr,
    Star,
    String,
    Subquery,
    Subscript,
    TypeName,
)
from sql.syntax.rules.core import at


def expression(node: exp.Expr) -> Expr:
    """Raises 0A000 for a node that no rule of ours makes."""
    translate = _TRANSLATIONS.get(type(node))
    if translate is None:
        raise unsupported(type(node).__name__, position=at(node) + 1)
    return translate(node)


def expressions(nodes: list[exp.Expr]) -> tuple[Expr, ...]:
    return tuple(expression(node) for node in nodes)


def optional(node: exp.Expr | None) -> Expr | None:
    return None if node is None else expression(node)


def subquery(node: exp.Expr) -> Query:
    from sql.syntax.translate.queries import query

    return query(node)


def type_name(node: exp.Expr) -> TypeName:
    args = node.args
    return TypeName(args["kind"], tuple(args["expressions"]), bool(args.get("nested")), at(node), args.get("schema"))


def order_items(node: exp.Expr | None) -> tuple[OrderItem, ...]:
    if node is None:
        return ()
    return tuple(
        OrderItem(expression(item.this), bool(item.args["desc"]), item.args["nulls_first"], at(item))
        for item in node.expressions
    )


def _column(node: exp.Expr) -> Expr:
    args = node.args
    names = [args[key] for key in ("catalog", "db", "table", "this") if args.get(key) is not None]
    if isinstance(names[-1], exp.Star):
        return Star(tuple(name.this for name in names[:-1]), at(node))
    return Name(tuple(name.this for name in names), at(node))


def _literal(node: exp.Expr) -> Expr:
    return String(node.this, at(node)) if node.args["is_string"] else Number(node.this, at(node))


def _connective(kind: type[exp.Expr], make: Callable[[tuple[Expr, ...], int], Expr]) -> Callable[[exp.Expr], Expr]:
    """AND and OR: sqlglot's left-deep pairs are one node of ours, whose offset is the first word's."""

    def translate(node: exp.Expr) -> Expr:
        operands = []
        first = node
        while isinstance(node, kind):
            operands.append(expression(node.args["expression"]))
            first, node = node, node.this
        operands.append(expression(node))
        return make(tuple(reversed(operands)), at(first))

    return translate


def _operator(node: exp.Expr) -> Expr:
    symbol, right = node.args["operator"], node.args.get("expression")
    left = expression(node.this)
    if right is None:
        return _prefix(symbol, left, at(node))
    if isinstance(right, exp.Any | exp.All):
        operand = right.this
        inner = subquery(operand) if isinstance(operand, exp.Subquery) else expression(operand)
        return Quantifier(left, symbol, isinstance(right, exp.All), inner, at(node))
    return _negated_pattern(node, symbol, (left, expression(right)))


def _prefix(symbol: str, operand: Expr, at_: int) -> Expr:
    """A minus before a bare number is part of it, as in PostgreSQL's doNegate."""
    if isinstance(operand, Number) and symbol == "-":
        text = operand.text
        return Number(text[1:] if text.startswith("-") else f"-{text}", at_)
    return Operator(symbol, (operand,), at_)


def _negated_pattern(node: exp.Expr, symbol: str, args: tuple[Expr, ...]) -> Expr:
    if not node.meta_get("negated"):
        return Operator(symbol, args, at(node))
    if symbol.startswith("~~") and len(args) == 2:
        return Operator(f"!{symbol}", args, at(node))
    return NotExpr(Operator(symbol, args, at(node)), at(node))


def _escape(node: exp.Expr) -> Expr:
    like = node.this
    args = (expression(like.this), expression(like.args["expression"]), expression(node.args["expression"]))
    return _negated_pattern(node, like.args["operator"], args)


def _distinct_test(node: exp.Expr) -> Expr:
    negated = isinstance(node, exp.NullSafeEQ)
    return DistinctTest(expression(node.this), expression(node.args["expression"]), negated, at(node))


def _in(node: exp.Expr) -> Expr:
    left, items = expression(node.this), node.args["field"]
    negated = bool(node.meta_get("negated"))
    if isinstance(items, exp.Subquery):
        return InQuery(left, subquery(items), negated, at(node))
    listed = items.expressions if isinstance(items, exp.Tuple) else [items.this]
    return InList(left, expressions(listed), negated, at(node))


def _between(node: exp.Expr) -> Expr:
    args = node.args
    operands = expression(node.this), expression(args["low"]), expression(args["high"])
    return Between(*operands, bool(node.meta_get("negated")), bool(args["symmetric"]), at(node))


def _case(node: exp.Expr) -> Expr:
    arms = tuple((expression(arm.this), expression(arm.args["true"])) for arm in node.args["ifs"])
    return CaseExpr(optional(node.args.get("this")), arms, optional(node.args.get("default")), at(node))


def _array(node: exp.Expr) -> Expr:
    if node.args.get("value_constructor"):
        return ArrayQuery(subquery(node.expressions[0]), at(node))
    return ArrayExpr(expressions(node.expressions), at(node))


def _bracket(node: exp.Expr) -> Expr:
    (index,) = node.expressions
    if isinstance(index, exp.Slice):
        low, high = optional(index.args.get("this")), optional(index.args.get("expression"))
        return Subscript(expression(node.this), low, high, True, at(node))
    return Subscript(expression(node.this), expression(index), None, False, at(node))


def _dot(node: exp.Expr) -> Expr:
    """A field of an expression, or a call with a schema's name."""
    inner = node.args["expression"]
    if isinstance(inner, exp.Identifier):
        return Field(expression(node.this), inner.this, at(node))
    call = expression(inner)
    assert isinstance(call, Apply)
    prefix = tuple(part.this for part in node.this.expressions)
    return replace(call, name=prefix + call.name, at=at(node))


def _call(node: exp.Expr) -> Expr:
    name = node.this.this if isinstance(node.this, exp.Identifier) else node.this
    args: list[Any] = list(node.expressions)
    order: tuple[OrderItem, ...] = ()
    if args and isinstance(args[-1], exp.Order):
        order = order_items(args.pop())
    distinct = len(args) == 1 and isinstance(args[0], exp.Distinct)
    if distinct:
        args = args[0].expressions
    if len(args) == 1 and isinstance(args[0], exp.Star):
        return Apply((name,), (), at(node), star=True)
    variadic = bool(args) and isinstance(args[-1], exp.Variadic)
    names: tuple[str | None, ...] = ()
    if any(isinstance(arg, exp.Kwarg) for arg in args):
        names = tuple(arg.this.this if isinstance(arg, exp.Kwarg) else None for arg in args)
        _check_names(names, at(node))
    plain = [arg.this if isinstance(arg, exp.Variadic) else arg for arg in args]
    plain = [arg.expression if isinstance(arg, exp.Kwarg) else arg for arg in plain]
    applied = Apply((name,), expressions(plain), at(node), distinct=distinct, variadic=variadic, order=order)
    return replace(applied, names=names) if names else applied


def _check_names(names: tuple[str | None, ...], where: int) -> None:
    """Raises 42601 for a name twice, and for a value without one behind one that has."""
    given = [n for n in names if n is not None]
    if names[len(names) - len(given) :] != tuple(given):
        raise SqlError("42601", "positional argument cannot follow named argument", position=where + 1)
    for i, name in enumerate(given):
        if name in given[:i]:
            raise SqlError("42601", f'argument name "{name}" used more than once', position=where + 1)


def _filter(node: exp.Expr) -> Expr:
    call = expression(node.this)
    if not isinstance(call, Apply):
        raise unsupported("FILTER", position=at(node) + 1)
    return replace(call, filter=expression(node.args["expression"]))


def _within(node: exp.Expr) -> Expr:
    call = expression(node.this)
    if not isinstance(call, Apply):
        raise unsupported("WITHIN GROUP", position=at(node) + 1)
    what = "DISTINCT" if call.distinct else "multiple ORDER BY clauses" if call.order else None
    what = "VARIADIC" if call.variadic else what
    if what is not None:
        raise SqlError("42601", f"cannot use {what} with WITHIN GROUP", position=call.at + 1)
    return replace(call, within=True, order=order_items(node.expression))


def _window(node: exp.Expr) -> Expr:
    call = expression(node.this)
    if not isinstance(call, Apply):
        raise unsupported("OVER", position=at(node) + 1)
    other = any(node.args.get(part) is not None for part in ("spec", "alias"))
    partition = expressions(node.args.get("partition_by") or [])
    return replace(call, over=Over(partition, order_items(node.args.get("order")), other))


_TRANSLATIONS: Final[dict[type[exp.Expr], Callable[[Any], Expr]]] = {
    exp.Column: _column,
    exp.Star: lambda node: Star((), at(node)),
    exp.Literal: _literal,
    exp.Parameter: lambda node: Param(int(node.this), at(node)),
    exp.Null: lambda node: Null(at(node)),
    exp.Boolean: lambda node: Boolean(node.this, at(node)),
    exp.Paren: lambda node: expression(node.this),
    exp.Tuple: lambda node: RowExpr(expressions(node.expressions), at(node)),
    exp.And: _connective(exp.And, AndExpr),
    exp.Or: _connective(exp.Or, OrExpr),
    exp.Not: lambda node: NotExpr(expression(node.this), at(node)),
    exp.Operator: _operator,
    exp.Escape: _escape,
    exp.AtTimeZone: lambda node: Operator(
        "at time zone", (expression(node.this), expression(node.args["zone"])), at(node)
    ),
    exp.Collate: lambda node: Collate(
        expression(node.this), tuple(part.this for part in node.args["expression"].expressions), at(node)
    ),
    exp.Is: lambda node: IsTest(
        expression(node.this), node.args["expression"].this, bool(node.args["negate"]), at(node)
    ),
    exp.NullSafeEQ: _distinct_test,
    exp.NullSafeNEQ: _distinct_test,
    exp.In: _in,
    exp.Between: _between,
    exp.Subquery: lambda node: Subquery(subquery(node), at(node)),
    exp.Exists: lambda node: ExistsExpr(subquery(node.this), at(node)),
    exp.Array: _array,
    exp.Case: _case,
    exp.Bracket: _bracket,
    exp.Dot: _dot,
    exp.Cast: lambda node: Cast(expression(node.this), type_name(node.args["to"]), at(node)),
    exp.TryCast: lambda node: Cast(expression(node.this), type_name(node.args["to"]), at(node), True),
    exp.Anonymous: _call,
    exp.Filter: _filter,
    exp.WithinGroup: _within,
    exp.Window: _window,
    exp.Extract: lambda node: Apply(
        ("extract",), (expression(node.this), expression(node.args["expression"])), at(node)
    ),
    exp.StrPosition: lambda node: Apply(
        ("position",), (expression(node.this), expression(node.args["substr"])), at(node)
    ),
    exp.Var: lambda node: Default(at(node)),
}
