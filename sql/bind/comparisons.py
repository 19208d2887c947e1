"""IS, IN, BETWEEN, ANY and ALL, and comparisons of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL, Kind
from planner.expr.comparison import Comparison
from planner.expr.functions.compare import PATTERN_ORDER
from planner.expr.scalar import (
    And,
    Call,
    Case,
    Coalesce,
    Column,
    Literal,
    Or,
    Parameter,
    Quantified,
    Scalar,
    ScalarSubquery,
)
from planner.logical.levels import lift
from planner.logical.nodes import Project, Rel, TableFunction, Values, schema
from planner.logical.traversal import conjunction
from sql.bind import table_functions
from sql.bind.alike import in_alike
from sql.bind.coerce import cast, resolve_unknown, to_boolean, try_common_type, type_name
from sql.bind.constant_lists import in_array, in_constants, in_items
from sql.bind.environment import Binder
from sql.bind.operators import applied, check_repeatable, equal, negate, operator
from sql.bind.rows import null_test
from sql.catalog.column_types import array_of
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.constant_items import ConstantItems

_ROW_COMPARISONS = frozenset((*(c.value for c in Comparison), *PATTERN_ORDER))


def _test(key: str, expr: Scalar) -> Scalar:
    return Call(key, (expr,), BOOL, False)


def is_test(b: Binder, node: nodes.IsTest) -> Scalar:
    """IS [NOT] NULL, TRUE, FALSE, UNKNOWN."""
    if isinstance(node.expr, nodes.RowExpr) and node.what == "null":
        tests = [_test("is not null" if node.negated else "is null", b.typed(i)) for i in node.expr.items]
        return conjunction(tuple(tests)) if tests else Literal(True, BOOL)
    if node.what == "null":
        tested = b.typed(node.expr)
        if tested.type.kind is Kind.RECORD:
            return null_test(tested, node.negated)
        return _test("is not null" if node.negated else "is null", tested)
    words = f"IS {'NOT ' if node.negated else ''}{node.what.upper()}"
    expr = to_boolean(b.env, b.bind(node.expr), words, node.expr.at)
    if node.what == "unknown":
        return _test("is not null" if node.negated else "is null", expr)
    return _test(words.lower(), expr)


def distinct_test(b: Binder, node: nodes.DistinctTest) -> Scalar:
    """IS [NOT] DISTINCT FROM, of values or of rows."""
    if isinstance(node.left, nodes.RowExpr) and isinstance(node.right, nodes.RowExpr):
        left, right = _row_items(b, node.left, node.at), _row_items(b, node.right, node.at)
        _same_length(left, right, node.at)
        tests = tuple(_distinct(b, x, y, node.negated, node.at) for x, y in zip(left, right, strict=True))
        return And(tests) if node.negated else Or(tests)
    return _distinct(b, b.bind(node.left), b.bind(node.right), node.negated, node.at)


def _distinct(b: Binder, left: Scalar, right: Scalar, negated: bool, at: int) -> Scalar:
    found = applied(b.env, "=", [left, right], at)
    if not found.own:
        return Call("is not distinct from" if negated else "is distinct from", found.args, BOOL, False)
    check_repeatable("IS DISTINCT FROM", found.args, at)
    nulls = tuple(_test("is null", a) for a in found.args)
    arms = ((And(nulls), Literal(True, BOOL)), (Or(nulls), Literal(False, BOOL)))
    same = Case(arms, to_boolean(b.env, found.expr, "IS DISTINCT FROM", at), BOOL)
    return same if negated else negate(same)


def in_list(b: Binder, node: nodes.InList) -> Scalar:
    """``x [NOT] IN (a, b, …)``: x equals one of the items."""
    if isinstance(node.expr, nodes.RowExpr):
        tests = tuple(compare_rows(b, "=", node.expr, item, node.at) for item in node.items)
        result: Scalar = Or(tests) if len(tests) > 1 else tests[0]
        return negate(result) if node.negated else result
    left = b.bind(node.expr)
    if isinstance(node.listed, ConstantItems):
        found = in_constants(b.env, left, node.listed)
        if found is not None:
            return negate(found) if node.negated else found
    alike = node.alike
    found = None if alike is None else in_alike(b, left, alike, node.at)
    if found is not None:
        return negate(found) if node.negated else found
    written = node.items
    items = [b.bind(i) for i in written]
    common = try_common_type([left.type, *(i.type for i in items)])
    if common is not None and common.kind is not Kind.UNKNOWN:
        left = cast(b.env, left, common, "implicit", node.at)
        items = [cast(b.env, i, common, "implicit", n.at) for i, n in zip(items, written, strict=True)]
    found = in_items(b.env, left, items, node.at)
    if found is not None:
        return negate(found) if node.negated else found
    tests = tuple(equal(b.env, left, item, node.at) for item in items)
    result = Or(tests) if len(tests) > 1 else tests[0]
    return negate(result) if node.negated else result


def in_query(b: Binder, node: nodes.InQuery) -> Scalar:
    """``x [NOT] IN (query)``."""
    result = _quantified_query(b, node.expr, "=", node.query, False, node.at)
    return negate(result) if node.negated else result


def between(b: Binder, node: nodes.Between) -> Scalar:
    """[NOT] BETWEEN [SYMMETRIC]."""
    expr, low, high = b.bind(node.expr), b.bind(node.low), b.bind(node.high)

    def within(lower: Scalar, upper: Scalar) -> Scalar:
        return And((operator(b.env, ">=", [expr, lower], node.at), operator(b.env, "<=", [expr, upper], node.at)))

    def outside(lower: Scalar, upper: Scalar) -> Scalar:
        return Or((operator(b.env, "<", [expr, lower], node.at), operator(b.env, ">", [expr, upper], node.at)))

    if node.symmetric:
        both = Or((within(low, high), within(high, low)))
        return negate(both) if node.negated else both
    return outside(low, high) if node.negated else within(low, high)


_SEARCHES: Final = (("=", False), ("<>", True))
"""The quantified comparisons that look for a value in an array."""


def quantifier(b: Binder, node: nodes.Quantifier) -> Scalar:
    """``x op ANY|ALL (query or array)``. Raises 42809, 42601."""
    if isinstance(node.operand, nodes.Query):
        return _quantified_query(b, node.expr, node.symbol, node.operand, node.every, node.at, node.schema)
    left = b.bind(node.expr)
    if isinstance(node.operand, nodes.ArrayExpr) and not any(
        isinstance(i, nodes.ArrayExpr) for i in node.operand.items
    ):
        items = _elements(b, node.operand)
        if node.symbol == "=" and not node.every and node.schema is None:
            found = in_items(b.env, left, items, node.at)
            if found is not None:
                return found
        tests = tuple(
            _yes_no(operator(b.env, node.symbol, [left, item], node.at, node.schema), node.at) for item in items
        )
        if not tests:
            return Literal(node.every, BOOL)
        if len(tests) == 1:
            return tests[0]
        return And(tests) if node.every else Or(tests)
    array = _array_operand(b, b.bind(node.operand), left, node)
    if (node.symbol, node.every) in _SEARCHES and node.schema is None and not any(b.env.catalog.operators(None, "<>")):
        found = in_array(b.env, left, array, node.at)
        if found is not None:
            return negate(found) if node.every else found
    if array.nullable:
        # for a NULL array the result is NULL, as it is for one NULL element
        array = Coalesce((array, Literal((None,), array.type)), array.type)
    element = array.type.element
    assert element is not None
    rel = TableFunction(Values(((),), ()), *table_functions.unnest(lift(array)))
    item = Column(0, element, True)
    comparison = operator(b.env, node.symbol, [_lifted(left), item], node.at, node.schema)
    return Quantified(rel, _yes_no(comparison, node.at), node.every)


def _elements(b: Binder, operand: nodes.ArrayExpr) -> list[Scalar]:
    items = [b.bind(i) for i in operand.items]
    common = try_common_type([i.type for i in items]) if items else None
    if common is not None and any(i.type.kind is not Kind.UNKNOWN for i in items):
        items = [cast(b.env, i, common, "implicit", operand.at) for i in items]
    return items


def _array_operand(b: Binder, array: Scalar, left: Scalar, node: nodes.Quantifier) -> Scalar:
    if array.type.kind is Kind.UNKNOWN:
        known = resolve_unknown(b.env, left, node.at).type
        return cast(b.env, array, array_of(type(known)(known.kind)), "implicit", node.at)
    if array.type.kind is not Kind.ARRAY:
        raise SqlError("42809", "op ANY/ALL (array) requires array on right side", position=node.at + 1)
    return array


def _lifted(expr: Scalar) -> Scalar:
    return expr if isinstance(expr, Literal | Parameter) else lift(expr)


def _quantified_query(
    b: Binder, expr: nodes.Expr, symbol: str, query: nodes.Query, every: bool, at: int, schema_name: str | None = None
) -> Scalar:
    rel, comparison = _with_query(b, expr, symbol, query, at, schema_name)
    return Quantified(rel, comparison, every)


def _with_query(
    b: Binder, expr: nodes.Expr, symbol: str, query: nodes.Query, at: int, schema_name: str | None
) -> tuple[Rel, Scalar]:
    """A query, and the comparison of an expression or a row with one of its rows, in which it is an outer one. Raises
    42601."""
    table = b.query(query)
    columns = schema(table.rel)
    items = list(expr.items) if isinstance(expr, nodes.RowExpr) else [expr]
    if len(items) != len(columns):
        few = len(items) > len(columns)
        raise SqlError("42601", f"subquery has too {'few' if few else 'many'} columns", position=at + 1)
    left = [_lifted(b.bind(i)) for i in items]
    right: list[Scalar] = [Column(i, c.type, c.nullable) for i, c in enumerate(columns)]
    return table.rel, _compare(b, symbol, left, right, at, schema_name)


def _yes_no(comparison: Scalar, at: int) -> Scalar:
    if comparison.type.kind is not Kind.BOOL:
        raise SqlError("42809", "op ANY/ALL (array) requires operator to yield boolean", position=at + 1)
    return comparison


def _row_items(b: Binder, node: nodes.Expr, at: int) -> list[Scalar]:
    if not isinstance(node, nodes.RowExpr):
        raise unsupported("comparing a row with anything but a row constructor", position=at + 1)
    return [b.bind(i) for i in node.items]


def _same_length(left: Sequence[Scalar], right: Sequence[Scalar], at: int) -> None:
    if len(left) != len(right):
        raise SqlError("42601", "unequal number of entries in row expressions", position=at + 1)


def compare_rows(
    b: Binder, symbol: str, left: nodes.Expr, right: nodes.Expr, at: int, schema_name: str | None = None
) -> Scalar:
    """A comparison whose left side is written as a row. Raises 42601, 0A000."""
    if isinstance(right, nodes.Subquery) and isinstance(left, nodes.RowExpr):
        rel, comparison = _with_query(b, left, symbol, right.query, at, schema_name)
        return ScalarSubquery(Project(rel, (comparison,)), comparison.type)
    if not isinstance(right, nodes.RowExpr):
        return operator(b.env, symbol, [b.bind(left), b.bind(right)], at, schema_name)
    first, second = _row_items(b, left, at), _row_items(b, right, at)
    _same_length(first, second, at)
    return _compare(b, symbol, first, second, at, schema_name)


def _compare(
    b: Binder, symbol: str, left: list[Scalar], right: list[Scalar], at: int, schema_name: str | None
) -> Scalar:
    """Rows compared as in Postgres: = and <> by element, the others by the first elements that differ."""
    if not left:
        raise SqlError("0A000", "cannot compare rows of zero length", position=at + 1)
    pairs = list(zip(left, right, strict=True))
    tests = [applied(b.env, symbol, [x, y], at, schema_name) for x, y in pairs]
    for test in tests:
        if test.expr.type.kind is not Kind.BOOL:
            message = f"row comparison operator must yield type boolean, not type {type_name(test.expr.type)}"
            raise SqlError("42804", message, position=at + 1)
    if len(left) == 1:
        return tests[0].expr
    if symbol not in _ROW_COMPARISONS or any(test.own for test in tests):
        raise SqlError(
            "0A000", f"could not determine interpretation of row comparison operator {symbol}",
            hint="Row comparison operators must be associated with btree operator families.", position=at + 1,
        )  # fmt: skip
    if symbol == "=":
        return And(tuple(test.expr for test in tests))
    if symbol == "<>":
        return Or(tuple(test.expr for test in tests))
    strict = symbol.replace("=", "")
    result = tests[-1].expr
    for x, y in reversed(pairs[:-1]):
        tie = And((operator(b.env, "=", [x, y], at, "pg_catalog"), result))
        result = Or((operator(b.env, strict, [x, y], at, "pg_catalog"), tie))
    return result
