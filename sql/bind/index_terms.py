"""Indexes over expressions and with predicates: what their parts mean over their table's columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ivm.errors import SqlError
from planner.expr.parts import walk
from planner.expr.scalar import Call, Column, Scalar
from planner.logical.traversal import columns_of, conjuncts, has_subquery
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.namespace import Visible, one_table
from sql.bind.scope import NameScope
from sql.catalog.catalog import Relation, TableColumn
from sql.catalog.keys import Index
from sql.parse import parse_expression
from sql.settings.maintainable import is_immutable
from sql.syntax.nodes import queries as nodes

_EXPRESSION: Final = "index expressions"
_PREDICATE: Final = "index predicates"


def bind_part(env: Environment, table: str, columns: Sequence[TableColumn], node: nodes.Expr) -> Scalar:
    """An index expression over a table's columns. Raises 42P17, 0A000, and the errors of binding."""
    return _steady(_binder(env, table, columns, _EXPRESSION).bind(node), node, "expression")


def bind_predicate(env: Environment, table: str, columns: Sequence[TableColumn], node: nodes.Expr) -> Scalar:
    """An index predicate over a table's columns. Raises 42804 and what ``bind_part`` raises."""
    return _steady(_binder(env, table, columns, _PREDICATE).condition(node, "WHERE"), node, "predicate")


def _binder(env: Environment, table: str, columns: Sequence[TableColumn], clause: str) -> ExpressionBinder:
    visible = tuple(Visible(c.name, Column(i, c.type, c.nullable)) for i, c in enumerate(columns))
    return ExpressionBinder(env, NameScope(one_table(table, visible), clause=clause), clause)


def _steady(expr: Scalar, node: nodes.Expr, what: str) -> Scalar:
    if has_subquery(expr):
        raise SqlError("0A000", f"cannot use subquery in index {what}", position=node.at + 1)
    if any(isinstance(part, Call) and not is_immutable(part) for part in walk(expr)):
        raise SqlError("42P17", f"functions in index {what} must be marked IMMUTABLE")
    return expr


def bound_index(env: Environment, table: Relation, index: Index) -> tuple[tuple[Scalar, ...], Scalar | None]:
    """The parts of an index's key and its predicate, over the table's columns."""
    own = [Column(i, c.type, c.nullable) for i, c in enumerate(table.schema)]
    parts = tuple(
        own[p] if isinstance(p, int) else bind_part(env, table.name, table.columns, parse_expression(p))
        for p in index.parts
    )
    where = index.where
    return parts, None if where is None else bind_predicate(env, table.name, table.columns, parse_expression(where))


def used_columns(parts: Sequence[Scalar], predicate: Scalar | None) -> tuple[int, ...]:
    """The columns that expressions and a predicate name."""
    exprs = [p for p in parts if not isinstance(p, Column)] + ([] if predicate is None else [predicate])
    return tuple(sorted(set[int]().union(*map(columns_of, exprs)))) if exprs else ()


def inferred(
    env: Environment,
    table: Relation,
    columns: Sequence[int | None],
    exprs: Sequence[nodes.Expr],
    where: nodes.Expr | None,
) -> tuple[Index, ...]:
    """The unique indexes that ON CONFLICT means: those over just these columns (None: no column of the table) and
    expressions. The condition must have all conjuncts of the index's predicate."""
    if not exprs and where is None:
        return tuple(i for i in table.keys if set(i.columns) == set(columns))
    wanted: set[Scalar] = {Column(i, c.type, c.nullable) for i, c in enumerate(table.schema) if i in columns}
    wanted |= {bind_part(env, table.name, table.columns, e) for e in exprs}
    met = set() if where is None else set(conjuncts(bind_predicate(env, table.name, table.columns, where)))
    found = []
    for index in table.unique:
        parts, predicate = bound_index(env, table, index)
        if set(parts) == wanted and (predicate is None or set(conjuncts(predicate)) <= met):
            found.append(index)
    return tuple(found)
