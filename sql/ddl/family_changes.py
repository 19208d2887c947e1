"""ALTER TABLE through inheritance: what a change of a table means for the tables below it (PostgreSQL's ATPrepCmd)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ivm.errors import SqlError, unsupported
from planner.logical.traversal import renumber
from sql.catalog.catalog import Catalog, Relation, TableColumn
from sql.statements import definitions
from sql.statements.results import Notice, Notify

Changes = tuple[definitions.Change, ...]


def family_changes(
    table: Relation, changes: Changes, catalog: Catalog, notify: Notify, *, only: bool
) -> list[tuple[Relation, Changes]]:
    """The changes of a table and of each table below it, parents first. Raises 42P16, 42804, 42710."""
    family = _Family(catalog, notify, {table.id: (table, [])})
    family.add(table, changes, alone=only)
    return [(relation, tuple(own)) for relation, own in family.found.values()]


@dataclass(frozen=True, slots=True)
class _Family:
    catalog: Catalog
    notify: Notify
    found: dict[int, tuple[Relation, list[definitions.Change]]]

    def add(self, current: Relation, wanted: Changes, *, alone: bool) -> None:
        """Add the changes of a table and of those below it."""
        own = self.found.setdefault(current.id, (current, []))[1]
        fresh = tuple(c for c in wanted if c not in own)
        own += fresh
        for child in (self.catalog.relations[i] for i in current.children):
            shared: list[definitions.Change] = []
            for change in fresh:
                gone = {c.name for c in shared if isinstance(c, definitions.DropColumn)}
                left = replace(child, columns=tuple(c for c in child.columns if c.name not in gone))
                now = left if isinstance(change, definitions.AddColumn) else child
                shared += _inherited(change, current, now, self.catalog, self.notify, only=alone)
            if shared:
                self.add(child, tuple(shared), alone=False)


def _inherited(
    change: definitions.Change, table: Relation, child: Relation, catalog: Catalog, notify: Notify, *, only: bool
) -> Changes:
    """What a change of ``table`` changes in its ``child``."""
    match change:
        case definitions.AddColumn():
            return _added(change, child, notify, only=only)
        case definitions.DropColumn():
            return _dropped(change, table, child, catalog, only=only)
        case definitions.SetType():
            if only:
                message = f'type of inherited column "{change.column}" must be changed in child tables too'
                raise SqlError("42P16", message)
            return (replace(change, value=renumber(change.value, _places(table, child).__getitem__)),)
        case definitions.SetDefault():
            return () if only else (change,)
        case definitions.DropExpression():
            if only:
                raise SqlError("42P16", "ALTER TABLE / DROP EXPRESSION must be applied to child tables too")
            return (replace(change, if_exists=True),)
        case definitions.SetNotNull():
            return _not_null(change, table, only=only)
        case definitions.AddCheck():
            return _checked(change, child, notify, only=only)
        case definitions.DropConstraint():
            return _unconstrained(change, table, child, only=only)
        case definitions.Validate():
            return (change,) if not only and any(c.name == change.name for c in child.checks) else ()
        case definitions.AddPrimaryKey() if table.partitioning is not None:
            return () if child.primary_key else (definitions.AddPrimaryKey(change.columns),)
        case definitions.NewForeignKey() if table.partitioning is not None:
            if only:
                parent = change.parent or table
                message = f'cannot use ONLY for foreign key on partitioned table "{table.name}" referencing relation'
                raise SqlError("42809", f'{message} "{parent.name}"')
            return (replace(change, parent=change.parent or table, inherited=True),)
        case definitions.AlterConstraint() if table.partitioning is not None:
            return tuple(replace(change, name=name) for name in _copies(table, child, change.name))
        case definitions.AddUnique() if table.partitioning is not None:
            return (replace(change, name=None),)
        case _:
            return ()


def _added(change: definitions.AddColumn, child: Relation, notify: Notify, *, only: bool) -> Changes:
    if only:
        raise SqlError("42P16", "column must be added to child tables too")
    if change.sequence is not None and change.sequence[0] != "default":
        raise SqlError("42P16", "cannot recursively add identity column to table that has child tables")
    if change.sequence is not None:
        raise unsupported("ADD COLUMN of a serial column to a table that others inherit from")
    column = change.column
    known = _find(child, column.name)
    if known is None:
        return (definitions.AddColumn(replace(column, local=False), change.value),)
    if (known.type, known.domain) != (column.type, column.domain):
        message = f'child table "{child.name}" has different type for column "{column.name}"'
        raise SqlError("42804", message)
    message = f'merging definition of column "{column.name}" for child "{child.name}"'
    notify(Notice("NOTICE", "00000", message))
    return () if column.nullable else (definitions.SetNotNull(column.name, True),)


def _dropped(
    change: definitions.DropColumn, table: Relation, child: Relation, catalog: Catalog, *, only: bool
) -> Changes:
    known = _find(child, change.name)
    if known is None:
        return ()
    if only and table.partitioning is not None:
        message = "cannot drop column from only the partitioned table when partitions exist"
        raise SqlError("42P16", message, hint="Do not specify the ONLY keyword.")
    others = [r for r in catalog.relations.values() if r.oid in child.parents and r.oid != table.oid]
    if any(_find(other, change.name) is not None for other in others):
        return ()
    if only or known.local:
        return (definitions.SetLocal(change.name),)
    return (definitions.DropColumn(change.name, cascade=change.cascade),)


def _not_null(change: definitions.SetNotNull, table: Relation, *, only: bool) -> Changes:
    if only and change.not_null and table.partitioning is not None:
        raise SqlError("42P16", "constraint must be added to child tables too", hint="Do not specify the ONLY keyword.")
    return () if only else (change,)


def _checked(change: definitions.AddCheck, child: Relation, notify: Notify, *, only: bool) -> Changes:
    if change.no_inherit:
        return ()
    if only:
        raise SqlError("42P16", "constraint must be added to child tables too")
    known = next((c for c in child.checks if c.name == change.name), None)
    if known is None:
        return (replace(change, local=False),)
    if known.text != change.text:
        raise SqlError("42710", f'constraint "{known.name}" for relation "{child.name}" already exists')
    if known.no_inherit:
        message = f'constraint "{known.name}" conflicts with non-inherited constraint on relation "{child.name}"'
        raise SqlError("42P16", message)
    notify(Notice("NOTICE", "00000", f'merging constraint "{known.name}" with inherited definition'))
    return ()


def _unconstrained(change: definitions.DropConstraint, table: Relation, child: Relation, *, only: bool) -> Changes:
    index = next((i for i in table.all_indexes if i.constraint and i.name == change.name), None)
    if index is not None and table.partitioning is not None:
        names = {table.columns[i].name for i in index.columns}
        own = next((i for i in child.keys if {child.columns[n].name for n in i.columns} == names), None)
        return () if own is None else (definitions.DropConstraint(own.name),)
    if copies := _copies(table, child, change.name):
        return tuple(definitions.DropConstraint(name) for name in copies)
    parent = next((c for c in table.checks if c.name == change.name), None)
    known = next((c for c in child.checks if c.name == change.name), None)
    if parent is None or parent.no_inherit or known is None:
        return ()
    return (definitions.SetLocal(change.name),) if only or known.local else (definitions.DropConstraint(change.name),)


def _copies(table: Relation, child: Relation, name: str) -> list[str]:
    """The names of a partition's copies of a foreign key."""
    ids = [k.id for k in table.foreign_keys if k.name == name]
    return [k.name for k in child.foreign_keys if k.origin in ids]


def _find(table: Relation, name: str) -> TableColumn | None:
    return next((c for c in table.columns if c.name == name), None)


def _places(table: Relation, child: Relation) -> list[int]:
    """For each of the table's columns its position in the child."""
    names = [c.name for c in child.columns]
    return [names.index(c.name) for c in table.columns]
