"""Operators and what PostgreSQL makes of comparisons: IN, BETWEEN, ANY and ALL, comparisons of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ivm.errors import SqlError
from ivm.words import TEXT, Kind, SqlType
from planner.expr.functions.library import overloads
from sql.bind.coerce import try_common_type
from sql.bind.overloads import resolve_operator
from sql.catalog.column_types import array_of
from sql.deparse.context import Reader, names_in
from sql.deparse.literals import as_type
from sql.deparse.tree import (
    Array,
    Differs,
    FunctionCall,
    Link,
    Logic,
    Operation,
    Phrase,
    Quantified,
    RowComparison,
    Shown,
    Test,
)
from sql.syntax.nodes import queries as nodes

_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")
_ARITHMETIC: Final = ("+", "-", "*", "/")
_MIXED: Final = (
    (frozenset({Kind.INT2, Kind.INT4, Kind.INT8}), (*_COMPARISONS, *_ARITHMETIC)),
    (frozenset({Kind.FLOAT4, Kind.FLOAT8}), (*_COMPARISONS, *_ARITHMETIC)),
    (frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ}), _COMPARISONS),
    (frozenset({Kind.NAME, Kind.TEXT}), _COMPARISONS),
)
"""Types for which PostgreSQL has operators with one on each side, without a cast."""


def operand_types(symbol: str, types: Sequence[SqlType]) -> tuple[SqlType, ...]:
    """The types that the operands of an operator are cast to."""
    kinds = {t.kind for t in types}
    if any(kinds <= mixed and symbol in symbols for mixed, symbols in _MIXED):
        return tuple(types)
    try:
        found = resolve_operator(overloads(symbol), tuple(types))
    except SqlError:
        found = None
    if found is None:
        return tuple(TEXT if t.kind is Kind.UNKNOWN else t for t in types)
    return tuple(have if have.plain == want.plain else want for have, want in zip(types, found.args, strict=True))


def chosen(r: Reader, symbol: str, types: Sequence[SqlType], at: int) -> tuple[str, tuple[SqlType, ...]]:
    """The operator that a symbol at an offset means, and the types that its operands are cast to."""
    own = r.context.notes.operators.get((at, symbol))
    if own is None or len(own[1]) != len(types):
        return symbol, operand_types(symbol, types)
    wanted = (have if have.plain == want.plain else want for have, want in zip(types, own[1], strict=True))
    return r.context.names.operator(own[0]), tuple(wanted)


def operation(r: Reader, symbol: str, args: Sequence[nodes.Expr], at: int) -> Operation:
    """An operator applied to operands."""
    shown, wanted = chosen(r, symbol, [r.type(a) for a in args], at)
    return Operation(shown, tuple(r.coerced(a, t) for a, t in zip(args, wanted, strict=True)))


def operator(r: Reader, node: nodes.Operator) -> Shown:
    """An operator as written."""
    if len(node.args) == 2 and isinstance(node.args[0], nodes.RowExpr):
        return rows(r, node.symbol, node.args[0], node.args[1], node.at)
    if node.symbol == "at time zone":
        moment, zone = node.args
        return Phrase(("(", r.value(moment), " AT TIME ZONE ", r.value(zone), ")"), True)
    if node.symbol == "similar to" or len(node.args) == 3:
        name = "similar_to_escape" if node.symbol == "similar to" else "like_escape"
        pattern = FunctionCall(name, tuple(r.coerced(a, TEXT) for a in node.args[1:]))
        symbol = "~" if node.symbol == "similar to" else node.symbol
        return Operation(
            symbol, (r.coerced(node.args[0], operand_types(symbol, [r.type(node.args[0]), TEXT])[0]), pattern)
        )
    return operation(r, node.symbol, node.args, node.at)


def unlike(r: Reader, node: nodes.NotExpr) -> Shown | None:
    """``x NOT LIKE y ESCAPE z`` and NOT SIMILAR TO, as one operator; None for any other negation."""
    inner = node.arg
    if not isinstance(inner, nodes.Operator) or inner.at != node.at:
        return None
    shown = operator(r, inner)
    return Operation(f"!{shown.symbol}", shown.args) if isinstance(shown, Operation) else None


def rows(r: Reader, symbol: str, left: nodes.RowExpr, right: nodes.Expr, at: int) -> Shown:
    """A comparison whose left side is written as a row."""
    if isinstance(right, nodes.Subquery):
        return link(r, "row", left, symbol, right.query, at)
    if not isinstance(right, nodes.RowExpr) or len(left.items) != len(right.items):
        return Operation(symbol, (r.value(left), r.value(right)))
    pairs = list(zip(left.items, right.items, strict=True))
    if len(pairs) == 1:
        return operation(r, symbol, pairs[0], at)
    if symbol in ("=", "<>"):
        tests = tuple(operation(r, symbol, pair, at) for pair in pairs)
        return Logic("AND" if symbol == "=" else "OR", tests)
    wanted = [operand_types(symbol, [r.type(a), r.type(b)]) for a, b in pairs]
    sides = [
        tuple(r.coerced(pair[side], types[side]) for pair, types in zip(pairs, wanted, strict=True)) for side in (0, 1)
    ]
    return RowComparison(sides[0], symbol, sides[1])


def distinct(r: Reader, node: nodes.DistinctTest) -> Shown:
    """IS [NOT] DISTINCT FROM: of NULL it is a test for NULL."""
    shown = _differs(r, node.left, node.right, node.at)
    if isinstance(shown, Test):
        return Test(shown.arg, "NULL" if node.negated else "NOT NULL", True)
    return Logic("NOT", (shown,)) if node.negated else shown


def _differs(r: Reader, left: nodes.Expr, right: nodes.Expr, at: int) -> Shown:
    if isinstance(left, nodes.RowExpr) and isinstance(right, nodes.RowExpr):
        tests = tuple(_differs(r, a, b, at) for a, b in zip(left.items, right.items, strict=True))
        return Logic("OR", tests) if len(tests) > 1 else tests[0]
    if isinstance(right, nodes.Null):
        return Test(r.value(left), "NOT NULL", True)
    if isinstance(left, nodes.Null):
        return Test(r.value(right), "NOT NULL", True)
    _, wanted = chosen(r, "=", [r.type(left), r.type(right)], at)
    return Differs(r.coerced(left, wanted[0]), r.coerced(right, wanted[1]))


def in_list(r: Reader, node: nodes.InList) -> Shown:
    """``x [NOT] IN (a, b, …)``: ANY or ALL of an array of the items that name no columns; the others one by one."""
    symbol = "<>" if node.negated else "="
    if isinstance(node.expr, nodes.RowExpr):
        tests = [rows(r, symbol, node.expr, item, node.at) for item in node.items]
    else:
        written = node.items
        fixed = [i for i in written if next(names_in(i), None) is None]
        common = try_common_type([r.type(node.expr), *map(r.type, fixed)]) if len(fixed) > 1 else None
        together = common is not None and common.kind is not Kind.RECORD
        tests = [_any_of(r, node, symbol, fixed, common)] if together and common else []
        apart = set(map(id, fixed)) if together else set()
        tests += [operation(r, symbol, (node.expr, i), node.at) for i in written if id(i) not in apart]
    return tests[0] if len(tests) == 1 else Logic("AND" if node.negated else "OR", tuple(tests))


def _any_of(r: Reader, node: nodes.InList, symbol: str, items: Sequence[nodes.Expr], element: SqlType) -> Shown:
    array: Shown = Array(tuple(r.coerced(i, element) for i in items), r.context.names.type(array_of(element)))
    shown, wanted = chosen(r, symbol, [r.type(node.expr), element], node.at)
    if wanted[1].plain != element.plain:
        array = as_type(r.context.names, array, array_of(element), array_of(wanted[1]), implicit=True)
    return Quantified(r.coerced(node.expr, wanted[0]), shown, node.negated, array)


def quantifier(r: Reader, node: nodes.Quantifier) -> Shown:
    """``x op ANY|ALL (query or array)``."""
    if isinstance(node.operand, nodes.Query):
        return link(r, "all" if node.every else "any", node.expr, node.symbol, node.operand, node.at)
    array, have = r.type(node.operand), r.type(node.expr)
    if array.kind is Kind.UNKNOWN:
        array = array_of(TEXT if have.kind is Kind.UNKNOWN else have.plain)
    element = array.element or TEXT
    symbol, wanted = chosen(r, node.symbol, [have, element], node.at)
    shown = r.value(node.operand, array)
    if wanted[1].plain != element.plain:
        shown = as_type(r.context.names, shown, array, array_of(wanted[1]), implicit=True)
    return Quantified(r.coerced(node.expr, wanted[0]), symbol, node.every, shown)


def link(r: Reader, kind: str, left: nodes.Expr, symbol: str, query: nodes.Query, at: int) -> Link:
    """A comparison with the rows of a query."""
    items = left.items if isinstance(left, nodes.RowExpr) else (left,)
    types = r.context.notes.columns.get(id(query), (None, ()))[1]
    found = [chosen(r, symbol, [r.type(i), t], at) for i, t in zip(items, types, strict=False)]
    shown = [r.coerced(i, wanted[0]) for i, (_, wanted) in zip(items, found, strict=False)]
    return Link(kind, query, tuple(shown or map(r.value, items)), found[0][0] if found else symbol)


def between(r: Reader, node: nodes.Between) -> Shown:
    """[NOT] BETWEEN [SYMMETRIC]."""
    kind = "OR" if node.negated else "AND"
    signs = ("<", ">") if node.negated else (">=", "<=")

    def one(low: nodes.Expr, high: nodes.Expr) -> Shown:
        return Logic(
            kind,
            (operation(r, signs[0], (node.expr, low), node.at), operation(r, signs[1], (node.expr, high), node.at)),
        )

    if not node.symmetric:
        return one(node.low, node.high)
    return Logic("AND" if node.negated else "OR", (one(node.low, node.high), one(node.high, node.low)))
