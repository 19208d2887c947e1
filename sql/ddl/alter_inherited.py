"""Changes that ALTER TABLE refuses on tables with parents or children."""

from __future__ import annotations

from collections.abc import Sequence

from ivm.errors import SqlError, unsupported
from planner.logical.traversal import columns_of
from sql.bind.partitions import key_expressions
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.keys import Index
from sql.statements import definitions


def check_inherited(statement: definitions.AlterTable, catalog: Catalog) -> None:
    """Raises 42P16 for changes of inherited columns or constraints, and of partition keys."""
    table = statement.table
    assert table is not None, "the caller has looked"
    if table.partitioning is not None:
        _check_partitioned(table, statement)
    parents = catalog.above(table)
    keys = {i.name for i in table.keys if table.bound is not None and _is_of(table, i, parents)}
    if table.bound is not None and any(isinstance(c, definitions.AddColumn) for c in statement.changes):
        raise SqlError("42809", "cannot add column to a partition")
    inherited = {c.name: c for p in parents for c in p.columns}
    copied = {k.name: k for k in table.foreign_keys if k.origin}
    checks = {c.name for p in parents for c in p.checks if not c.no_inherit}
    for change in statement.changes:
        name = _column(change)
        if name in inherited:
            if isinstance(change, definitions.DropColumn):
                raise SqlError("42P16", f'cannot drop inherited column "{name}"')
            if isinstance(change, definitions.SetType):
                raise SqlError("42P16", f'cannot alter inherited column "{name}"')
            if isinstance(change, definitions.DropExpression):
                raise SqlError("42P16", "cannot drop generation expression from inherited column")
            if table.bound is not None and not inherited[name].nullable:
                raise SqlError("42P16", f'column "{name}" is marked NOT NULL in parent table')
        if isinstance(change, definitions.DropConstraint) and change.name in checks | keys | copied.keys():
            message = f'cannot drop inherited constraint "{change.name}" of relation "{table.name}"'
            raise SqlError("42P16", message)
        if isinstance(change, definitions.AlterConstraint) and change.name in copied:
            above = next(p for p in parents if any(k.id == copied[change.name].origin for k in p.foreign_keys))
            of = next(k.name for k in above.foreign_keys if k.id == copied[change.name].origin)
            raise SqlError(
                "42809", f'cannot alter constraint "{change.name}" on relation "{table.name}"',
                f'Constraint "{change.name}" is derived from constraint "{of}" of relation "{above.name}".',
                "You may alter the constraint it derives from instead.",
            )  # fmt: skip


def _is_of(table: Relation, index: Index, parents: Sequence[Relation]) -> bool:
    """Whether a partition's key is inherited from one of these parents."""
    own = {table.columns[i].name for i in index.columns}
    return any({p.columns[i].name for i in key.columns} == own for p in parents for key in p.keys)


def _check_partitioned(table: Relation, statement: definitions.AlterTable) -> None:
    key = table.partitioning
    assert key is not None
    for change in statement.changes:
        name = _column(change)
        if name in key.columns and isinstance(change, definitions.DropColumn):
            message = f'cannot drop column "{name}" because it is part of the partition key of relation "{table.name}"'
            raise SqlError("42P16", message)
        if name in key.columns and isinstance(change, definitions.SetType):
            message = f'cannot alter column "{name}" because it is part of the partition key of relation "{table.name}"'
            raise SqlError("42P16", message)
        if not all(key.columns) and isinstance(change, definitions.DropColumn | definitions.SetType):
            _check_expressions(table, change)


def _check_expressions(table: Relation, change: definitions.DropColumn | definitions.SetType) -> None:
    """Raises 0A000 if a partition key's expressions use a column that is dropped or retyped."""
    key = table.partitioning
    assert key is not None
    name = change.name if isinstance(change, definitions.DropColumn) else change.column
    for expr in key_expressions(table.name, table.columns, key):
        if name in {table.columns[i].name for i in columns_of(expr)}:
            raise unsupported(f"changing column {name}, which the partition key of {table.name} needs")


def _column(change: definitions.Change) -> str | None:
    """The column that a change would alter, and that must stay as inherited."""
    match change:
        case definitions.DropColumn():
            return change.name
        case definitions.SetType():
            return change.column
        case definitions.SetNotNull(not_null=False) | definitions.DropExpression():
            return change.column
        case _:
            return None
