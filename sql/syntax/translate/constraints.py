"""Constraints and CREATE INDEX → our syntax tree."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from sql.syntax.nodes.constraints import (
    CheckConstraint,
    Constraint,
    CreateIndexStatement,
    ForeignKeyConstraint,
    IndexColumn,
    KeyConstraint,
)
from sql.syntax.rules.core import at
from sql.syntax.translate.expressions import expression
from sql.syntax.translate.queries import table_name

Columns = tuple[tuple[str, int], ...]


def constraints(elements: list[exp.Expr]) -> tuple[Constraint, ...]:
    """The constraints of a table's elements, its columns' own among them, as they are written."""
    found: list[Constraint] = []
    for element in elements:
        if isinstance(element, exp.ColumnDef):
            own = ((element.this.this, at(element)),)
            found += [constraint(c, own) for c in element.args["constraints"] if isinstance(c, exp.Constraint)]
        elif isinstance(element, exp.Constraint):
            found.append(constraint(element, ()))
    return tuple(found)


def constraint(node: exp.Constraint, own: Columns) -> Constraint:
    """``own``: the column that the constraint stands at, if it does."""
    meta: dict[str, Any] = node.meta
    name = None if meta["name"] is None else meta["name"].this
    match meta["kind"]:
        case "check":
            return CheckConstraint(name, expression(meta["condition"]), meta["text"], at(node))
        case "foreign":
            return ForeignKeyConstraint(
                name, columns(meta["columns"]) or own, table_name(meta["table"]), columns(meta["referenced"]),
                meta["full"], meta["delete"], meta["update"], columns(meta["changed"]), at(node),
            )  # fmt: skip
        case kind:
            listed = columns(meta["columns"]) or own
            return KeyConstraint(name, kind == "primary", listed, columns(meta["included"]), meta["distinct"], at(node))


def create_index(node: exp.Create) -> CreateIndexStatement:
    meta: dict[str, Any] = node.meta
    listed = tuple(IndexColumn(c.this, at(c), c.meta["descending"], c.meta["nulls_first"]) for c in meta["columns"])
    return CreateIndexStatement(
        None if meta["name"] is None else meta["name"].this,
        table_name(node.this),
        meta["method"],
        listed,
        columns(meta["included"]),
        bool(node.args["unique"]),
        meta["distinct"],
        bool(node.args["exists"]),
        at(node),
    )


def columns(nodes: list[exp.Identifier]) -> Columns:
    return tuple((node.this, at(node)) for node in nodes)
