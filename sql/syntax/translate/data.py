"""sqlglot's DML and DDL → our syntax tree."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sqlglot import exp

from ivm.errors import SqlError, unsupported
from sql.catalog.sequence_options import SequenceOptions
from sql.syntax.nodes.columns import ColumnDefinition
from sql.syntax.nodes.queries import (
    Assignment,
    ConflictClause,
    DeleteStatement,
    Expr,
    InsertStatement,
    Target,
    TypeName,
    UpdateStatement,
    With,
)
from sql.syntax.nodes.statements import (
    CreateTableStatement,
    CreateViewStatement,
    DropStatement,
    Statement,
    TruncateStatement,
)
from sql.syntax.rules.core import at
from sql.syntax.translate.constraints import constraints, create_index
from sql.syntax.translate.expressions import expression, type_name
from sql.syntax.translate.queries import from_items, query, table_name, targets, with_clause
from sql.syntax.utility.sequences import identity_options

Columns = tuple[tuple[str, int], ...]


def statement(node: exp.Expr) -> Statement:
    """Raises 0A000 for a node that no rule of ours makes."""
    match node:
        case exp.Insert() | exp.Update() | exp.Delete():
            return change(node)
        case exp.Create():
            return _create(node)
        case exp.Drop():
            names = tuple(table_name(table) for table in node.args["tables"])
            return DropStatement(node.args["kind"], names, bool(node.args["exists"]), bool(node.args["cascade"]))
        case exp.TruncateTable():
            names = tuple(table_name(table) for table in node.expressions)
            return TruncateStatement(names, node.meta["restart"], node.meta["cascade"])
        case _:
            return query(node)


def change(node: exp.Expr) -> InsertStatement | UpdateStatement | DeleteStatement:
    """INSERT, UPDATE or DELETE."""
    match node:
        case exp.Insert():
            return _insert(node)
        case exp.Update():
            return _update(node)
        case exp.Delete():
            return _delete(node)
        case _:
            raise unsupported(type(node).__name__, position=at(node) + 1)


def _columns(nodes: list[exp.Expr] | None) -> Columns:
    return tuple((node.this, at(node)) for node in nodes or [])


def _with(node: exp.Expr) -> With | None:
    with_ = node.args.get("with_")
    return None if with_ is None else with_clause(with_)


def _where(node: exp.Expr) -> Expr | None:
    where = node.args.get("where")
    return None if where is None else expression(where.this)


def _returning(node: exp.Expr) -> tuple[Target, ...] | None:
    returning = node.args.get("returning")
    return None if returning is None else targets(returning.expressions)


def _insert(node: exp.Insert) -> InsertStatement:
    schema, source = node.this, node.args.get("expression")
    return InsertStatement(
        table_name(schema.this),
        _columns(schema.expressions),
        None if source is None else query(source),
        _returning(node),
        _conflict(node.args.get("conflict")),
        at(node),
        _with(node),
        node.meta.get("overriding"),
    )


def _conflict(node: exp.OnConflict | None) -> ConflictClause | None:
    if node is None:
        return None
    constraint = node.args.get("constraint")
    changes = node.args.get("expressions")
    return ConflictClause(
        _columns(node.args.get("conflict_keys")),
        None if constraint is None else (constraint.this, at(constraint)),
        None if changes is None else tuple(_assignment(change) for change in changes),
        _where(node),
        at(node),
    )


def _update(node: exp.Update) -> UpdateStatement:
    from_ = node.args.get("from_")
    return UpdateStatement(
        table_name(node.this),
        tuple(_assignment(assignment) for assignment in node.expressions),
        () if from_ is None else from_items(from_.this),
        _where(node),
        _returning(node),
        at(node),
        _with(node),
    )


def _assignment(node: exp.Expr) -> Assignment:
    source = expression(node.args["expression"])
    if isinstance(node.this, exp.Tuple):
        return Assignment(_columns(node.this.expressions), source, True)
    return Assignment(_columns([node.this]), source, False)


def _delete(node: exp.Delete) -> DeleteStatement:
    using = node.args.get("using")
    tables = () if using is None else from_items(using[0])
    return DeleteStatement(table_name(node.this), tables, _where(node), _returning(node), at(node), _with(node))


def _create(node: exp.Create) -> Statement:
    match node.args["kind"]:
        case "VIEW":
            return _create_view(node)
        case "INDEX":
            return create_index(node)
        case _:
            return _create_table(node)


def _create_view(node: exp.Create) -> CreateViewStatement:
    schema, meta = node.this, node.meta
    table = replace(table_name(schema.this), columns=tuple(name for name, _ in _columns(schema.expressions)))
    return CreateViewStatement(
        table,
        query(node.args["expression"]),
        meta["text"],
        meta["text_at"],
        meta["materialized"],
        bool(node.args["replace"]),
        bool(node.args["exists"]),
        meta["retain"],
        at(node),
        meta["temporary"],
        meta["hydrate"],
        meta["parts"],
    )


def _create_table(node: exp.Create) -> CreateTableStatement:
    schema, meta = node.this, node.meta
    table, elements = table_name(schema.this), schema.expressions or []
    if meta["names"]:
        table = replace(table, columns=tuple(name for name, _ in _columns(elements)))
        elements = []
    source = node.args.get("expression")
    return CreateTableStatement(
        table,
        tuple(column(element, table.name) for element in elements if isinstance(element, exp.ColumnDef)),
        constraints(elements),
        bool(node.args["exists"]),
        meta["retain"],
        None if source is None else query(source),
        meta["no_data"],
        at(node),
        meta["temporary"],
        meta["goes"],
        tuple(table_name(parent) for parent in meta["inherits"]),
        meta["bound"],
        meta["partitioning"],
    )


def column(node: exp.ColumnDef, table: str = "") -> ColumnDefinition:
    """``table``: the table's name, for errors."""
    not_null = False
    default: tuple[Expr, str] | None = None
    for constraint in node.args["constraints"]:
        not_null = not_null or isinstance(constraint, exp.NotNullColumnConstraint)
        if isinstance(constraint, exp.DefaultColumnConstraint):
            default = (expression(constraint.this), constraint.meta["text"])
    type_ = type_name(node.args["kind"])
    generated = _generated(node, type_, table)
    if type_.name in SERIAL:
        type_, not_null = replace(type_, name=SERIAL[type_.name]), True
    not_null = not_null or generated is not None
    return ColumnDefinition(node.this.this, type_, not_null, default, constraints([node]), at(node), generated)


SERIAL: Final = {
    "serial": "int4", "serial4": "int4", "bigserial": "int8", "serial8": "int8", "smallserial": "int2",
    "serial2": "int2",
}  # fmt: skip


def _generated(node: exp.ColumnDef, type_: TypeName, table: str) -> tuple[str, SequenceOptions] | None:
    """Where the column's numbers come from. Raises 42601 for two such places, 0A000."""
    found: list[tuple[str, SequenceOptions]] = []
    if type_.name in SERIAL:
        if type_.array:
            raise SqlError("0A000", "array of serial is not implemented", position=type_.at + 1)
        found.append(("default", SequenceOptions()))
    for constraint in node.args["constraints"]:
        if _is_identity(constraint):
            options = identity_options(constraint.meta.get("options", ""), constraint.meta.get("options_at", 0))
            found.append(("always" if constraint.this else "by default", options))
    kinds = [kind for kind, _ in found] + ["default" for c in node.args["constraints"] if _is_default(c)]
    if len(kinds) > 1:
        identities = sum(kind != "default" for kind in kinds)
        what = "multiple identity specifications" if identities > 1 else "both default and identity specified"
        what = what if identities else "multiple default values specified"
        place = next((at(c) + 1 for c in node.args["constraints"] if _is_identity(c)), None)
        raise SqlError("42601", f'{what} for column "{node.this.this}" of table "{table}"', position=place)
    return found[0] if found else None


def _is_identity(constraint: exp.Expr) -> bool:
    return isinstance(constraint, exp.GeneratedAsIdentityColumnConstraint)


def _is_default(constraint: exp.Expr) -> bool:
    return isinstance(constraint, exp.DefaultColumnConstraint)
