"""ALTER TABLE: expressions and types. The names of its columns are looked up when it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, assert_never

from ivm.errors import SqlError, unsupported
from ivm.words import SqlType
from planner.expr.scalar import Scalar
from sql.bind import ddl, sequences
from sql.bind.coerce import assign
from sql.bind.constraints import exclusion, foreign_key
from sql.bind.domains import domain_value
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.from_clause import stored
from sql.bind.generation import generated_from, generation
from sql.bind.lookup import lookup_in_schema
from sql.bind.scope import NameScope
from sql.bind.target import bind_default, column_default
from sql.bind.view_targets import check_updatable
from sql.bind.walk import has_subquery
from sql.catalog.catalog import Relation, RelationKind, TableColumn
from sql.catalog.sequence_options import sequence_type
from sql.parse import parse_expression
from sql.statements import definitions
from sql.syntax.nodes import alter as nodes_alter
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.constraints import (
    CheckConstraint,
    Constraint,
    ExcludeConstraint,
    ForeignKeyConstraint,
    KeyConstraint,
)
from storage.types.type_names import format_type

SYSTEM_COLUMNS: Final = frozenset({"ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"})
_KINDS: Final = {RelationKind.VIEW: "views", RelationKind.MATERIALIZED_VIEW: "materialized views"}


def alter_table(
    env: Environment, node: nodes_alter.AlterTableStatement
) -> definitions.AlterTable | definitions.AlterView:
    """ALTER TABLE. Raises 42P01, 3F000, 42809, 42501, and the errors of expressions and types."""
    table = env.catalog.resolve(node.table.schema_name, node.table.name)
    if table is None and node.if_exists:
        return definitions.AlterTable(None, node.table.name, ())
    if table is None:
        table = lookup_in_schema(env, node.table)
    if table.kind is RelationKind.SYSTEM:
        raise SqlError("42501", f'permission denied: "{table.name}" is a system catalog')
    of_views = nodes_alter.SetDefault | nodes_alter.SetOptions
    if table.kind is RelationKind.VIEW and all(isinstance(c, of_views) for c in node.changes):
        return _alter_view(env, table, node)
    if table.kind is not RelationKind.TABLE:
        message = f'ALTER action {_action(node.changes[0])} cannot be performed on relation "{table.name}"'
        detail = f"This operation is not supported for {_KINDS.get(table.kind, 'this kind of relation')}."
        raise SqlError("42809", message, detail)
    return definitions.AlterTable(
        table, table.name, tuple(found for change in node.changes for found in _changes(env, table, node, change)),
        node.only,
    )  # fmt: skip


def _alter_view(env: Environment, view: Relation, node: nodes_alter.AlterTableStatement) -> definitions.AlterView:
    """The view's options and its columns' defaults after all changes. Raises 42703, 0A000, 42804."""
    options, defaults = list(view.options), [c.default for c in view.columns]
    for change in node.changes:
        if isinstance(change, nodes_alter.SetDefault):
            found = _set_default(env, view, change)
            defaults[column_position(view, found.column)] = found.default
            continue
        assert isinstance(change, nodes_alter.SetOptions), "the caller has looked"
        gone = {*change.reset, *(o.partition("=")[0] for o in change.options)}
        options = [*(o for o in options if o.partition("=")[0] not in gone), *change.options]
        if any(o.startswith("check_option=") for o in change.options):
            check_updatable(env, view)
    return definitions.AlterView(view, view.name, tuple(options), tuple(defaults))


def column_position(relation: Relation, name: str) -> int:
    """A column's position. Raises 42703."""
    for i, column in enumerate(relation.columns):
        if column.name == name:
            return i
    raise SqlError("42703", f'column "{name}" of relation "{relation.name}" does not exist')


def _action(change: nodes_alter.Change) -> str:
    """A change as errors name it."""
    match change:
        case nodes_alter.SetOptions() | definitions.Unchanged():
            return "SET"
        case definitions.AlterConstraint():
            return "ALTER CONSTRAINT"
        case definitions.Validate():
            return "VALIDATE CONSTRAINT"
        case definitions.SetIdentity():
            return f"ALTER COLUMN ... {'ADD' if change.adds else 'SET'} IDENTITY"
        case definitions.DropIdentity():
            return "ALTER COLUMN ... DROP IDENTITY"
        case nodes_alter.AddPrimaryKey() | nodes_alter.AddConstraint():
            return "ADD CONSTRAINT"
        case definitions.DropConstraint():
            return "DROP CONSTRAINT"
        case nodes_alter.AddColumn():
            return "ADD COLUMN"
        case definitions.DropColumn():
            return "DROP COLUMN"
        case nodes_alter.SetDefault():
            return "ALTER COLUMN ... SET DEFAULT"
        case definitions.DropExpression():
            return "ALTER COLUMN ... DROP EXPRESSION"
        case definitions.SetNotNull():
            return f"ALTER COLUMN ... {'SET' if change.not_null else 'DROP'} NOT NULL"
        case nodes_alter.SetType():
            return "ALTER COLUMN ... SET DATA TYPE"
        case _:
            assert_never(change)


def _changes(
    env: Environment, table: Relation, node: nodes_alter.AlterTableStatement, change: nodes_alter.Change
) -> list[definitions.Change]:
    """A change; ADD COLUMN with constraints is several."""
    changes = [_change(env, table, node, change)]
    if isinstance(change, nodes_alter.AddColumn):
        own = [c for c in change.column.constraints if not (isinstance(c, KeyConstraint) and c.primary)]
        if own and change.if_not_exists:
            raise unsupported("ADD COLUMN IF NOT EXISTS with UNIQUE, CHECK or REFERENCES", position=own[0].at + 1)
        changes += [_add_constraint(env, table, c) for c in own]
    return changes


def _change(
    env: Environment, table: Relation, node: nodes_alter.AlterTableStatement, change: nodes_alter.Change
) -> definitions.Change:
    match change:
        case nodes_alter.SetOptions():
            raise unsupported("ALTER TABLE … SET of an option")
        case nodes_alter.AddPrimaryKey():
            return _add_key(change)
        case nodes_alter.AddConstraint():
            return _add_constraint(env, table, change.constraint)
        case definitions.DropConstraint():
            return change
        case nodes_alter.AddColumn():
            return _add_column(env, table, node, change)
        case definitions.DropColumn():
            _not_system(change.name, "drop")
            return change
        case nodes_alter.SetDefault():
            return _set_default(env, table, change)
        case (
            definitions.SetNotNull() | definitions.DropExpression() | definitions.SetIdentity()
            | definitions.DropIdentity()
        ):  # fmt: skip
            _not_system(change.column, "alter")
            return change
        case definitions.Validate() | definitions.AlterConstraint() | definitions.Unchanged():
            return change
        case nodes_alter.SetType():
            return _set_type(env, table, node.table, change)
        case _:
            assert_never(change)


def _not_system(name: str, verb: str) -> None:
    if name in SYSTEM_COLUMNS:
        raise SqlError("0A000", f'cannot {verb} system column "{name}"')


def _add_key(change: nodes_alter.AddPrimaryKey) -> definitions.AddPrimaryKey:
    names = [name for name, _ in change.columns]
    for i, (name, at) in enumerate(change.columns):
        if name in names[:i]:
            raise SqlError("42701", f'column "{name}" appears twice in primary key constraint', position=at + 1)
    return definitions.AddPrimaryKey(tuple(names), change.name)


def _add_constraint(
    env: Environment, table: Relation, node: Constraint
) -> definitions.AddUnique | definitions.AddExclusion | definitions.AddCheck | definitions.NewForeignKey:
    match node:
        case ExcludeConstraint():
            if table.partitioning is not None:
                message = "exclusion constraints are not supported on partitioned tables"
                raise SqlError("0A000", message, position=node.at + 1)
            return exclusion(node)
        case KeyConstraint():
            columns = tuple(name for name, _ in node.columns)
            included = tuple(name for name, _ in node.included)
            return definitions.AddUnique(
                columns, node.name, node.nulls_distinct, included, node.deferrable, node.deferred
            )
        case CheckConstraint():
            return definitions.AddCheck(node.text, node.name, node.no_inherit, node.valid)
        case ForeignKeyConstraint():
            return foreign_key(env, node, None)
        case _:
            assert_never(node)


def _add_column(
    env: Environment, table: Relation, node_: nodes_alter.AlterTableStatement, change: nodes_alter.AddColumn
) -> definitions.AddColumn:
    node = change.column
    before = node_.changes[: node_.changes.index(change)]
    others = [c.column for c in before if isinstance(c, nodes_alter.AddColumn) and c.column.expression is None]
    added = [ddl.column_definition(env, other) for other in others if node.expression is not None]
    if node.name in SYSTEM_COLUMNS:
        raise SqlError("42701", f'column name "{node.name}" conflicts with a system column name')
    key = any(isinstance(c, KeyConstraint) and c.primary for c in node.constraints)
    column = replace(ddl.column_definition(env, node), nullable=not (node.not_null or key))
    if node.expression is not None:
        generation(table.name, (*table.columns, *added, column), column, node.expression[0])
    if node.generated is not None and node.generated[0] != "default":
        sequence_type(column.type, "identity column")
    default = column_default(env, column)
    if column.domain is not None:
        default = domain_value(env, replace(column.type, domain=column.domain), default)
    if has_subquery(default):
        raise unsupported("ADD COLUMN with a DEFAULT that reads tables", position=node.at + 1)
    return definitions.AddColumn(column, default, change.if_not_exists, key, node.generated)


def column_of(table: Relation, name: str) -> TableColumn:
    """A table's column by name. Raises 42703."""
    found = next((c for c in table.columns if c.name == name), None)
    if found is None:
        raise SqlError("42703", f'column "{name}" of relation "{table.name}" does not exist')
    return found


def _set_default(env: Environment, table: Relation, change: nodes_alter.SetDefault) -> definitions.SetDefault:
    _not_system(change.column, "alter")
    if change.default is None:
        return definitions.SetDefault(change.column, None)
    expr, text = change.default
    known = next((c for c in table.columns if c.name == change.column), None)
    if known is not None:
        bound = ddl.default_expression(env, expr, known.type, known.name)
        sequence = sequences.of_default(bound) if table.kind is RelationKind.TABLE else None
        if sequence is not None:
            return definitions.SetDefault(change.column, None, sequence)
    return definitions.SetDefault(change.column, text)


def _set_type(
    env: Environment, table: Relation, name: nodes.TableName, change: nodes_alter.SetType
) -> definitions.SetType:
    _not_system(change.column, "alter")
    column = column_of(table, change.column)
    domain = env.domain(change.type)
    type_ = ddl.storable(env.type(change.type), column.name) if domain is None else domain.columns[0].type
    if domain is not None and column.expression is not None:
        raise unsupported("a generated column of a domain type", position=change.at + 1)
    if column.expression is not None and change.using is not None:
        message = "cannot specify USING when altering type of generated column"
        raise SqlError("42601", message, f'Column "{column.name}" is a generated column.')
    for user in generated_from(table, column.name):
        detail = f'Column "{column.name}" is used by generated column "{user}".'
        raise SqlError("0A000", "cannot alter type of a column used by a generated column", detail)
    _, namespace = stored(env, table, nodes.TableName(name.schema_name, name.name, name.at), None)
    binder = ExpressionBinder(env, NameScope(namespace, clause="transform expressions"), "transform expressions")
    using = nodes.Name((column.name,), change.at) if change.using is None else change.using
    bound = binder.bind(using)
    if has_subquery(bound):
        raise SqlError("0A000", "cannot use subquery in transform expression", position=using.at + 1)
    value = _converted(env, bound, type_, column.name, change.using is not None)
    if domain is not None:
        value = domain_value(env, replace(type_, domain=domain), value)
    return definitions.SetType(column.name, type_, value, _converted_default(env, column, type_), domain)


def _converted(env: Environment, expr: Scalar, type_: SqlType, name: str, explicit: bool) -> Scalar:
    """A column's value as its new type; ``explicit``: it was given with USING. Raises 42804."""
    try:
        return assign(env, expr, type_, name, 0)
    except SqlError as error:
        if error.sqlstate != "42804":
            raise
    shown = format_type(type_, True)
    if explicit:
        message = f'result of USING clause for column "{name}" cannot be cast automatically to type {shown}'
        raise SqlError("42804", message, hint="You might need to add an explicit cast.")
    message = f'column "{name}" cannot be cast automatically to type {shown}'
    raise SqlError("42804", message, hint=f'You might need to specify "USING {name}::{shown}".')


def _converted_default(env: Environment, column: TableColumn, type_: SqlType) -> str | None:
    """The DEFAULT of a column whose type changes, as text. Raises 42804 where the new type does not take its value."""
    if column.default is None:
        return None
    try:
        assign(env, column_default(env, column), type_, column.name, 0)
    except SqlError as error:
        if error.sqlstate != "42804":
            raise
        message = f'default for column "{column.name}" cannot be cast automatically to type {format_type(type_, True)}'
        raise SqlError("42804", message) from None
    same = bind_default(env, parse_expression(column.default)).type == column.type
    return column.default if same else f"({column.default})::{format_type(column.type, True)}"
