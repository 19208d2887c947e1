"""ALTER TABLE … ATTACH PARTITION, DETACH PARTITION, INHERIT and NO INHERIT."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ivm.errors import SqlError, unsupported
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.search_path import SearchPathReader
from sql.ddl.alter_views import rebuild_views
from sql.ddl.foreign_keys import with_copies
from sql.ddl.partitions import leaves, new_bound
from sql.dml.row_changes import RowChanger
from sql.statements.partitions import Attach, Detach


def attach(changer: RowChanger, names: SearchPathReader, statement: Attach) -> None:
    """ATTACH PARTITION or INHERIT."""
    writer = changer.writer
    parent, child = _named(names, statement.parent), _named(names, statement.child)
    catalog = writer.catalog
    if statement.bound is not None:
        writer.hold_still(parent)
        writer.hold_still(child)
    _check_attachable(parent, child, statement.bound is not None)
    if parent.id in (child.id, *(r.id for r in catalog.below(child))):
        detail = f'"{parent.name}" is already a child of "{child.name}".'
        raise SqlError("42P07", "circular inheritance not allowed", detail)
    if parent.oid in child.parents:
        raise SqlError("42P07", f'relation "{parent.name}" would be inherited from more than once')
    bound = None
    prevented = next((t for t in child.triggers if t.row and (t.old_table or t.new_table)), None)
    if prevented is not None:
        partition = statement.bound is not None
        what = "a partition" if partition else "an inheritance child"
        message = f'trigger "{prevented.name}" prevents table "{child.name}" from becoming {what}'
        where = "on partitions" if partition else "in inheritance hierarchies"
        detail = f"ROW triggers with transition tables are not supported {where}."
        raise SqlError("55000", message, detail)
    if statement.bound is not None:
        _check_no_others(parent, child)
        bound = new_bound(changer, parent, child, statement.bound)
    _check_columns(parent, child)
    _check_has_keys(parent, child)
    joined = replace(child, parents=(*child.parents, parent.oid), bound=bound)
    writer.redefine(joined if bound is None else _owning(joined, [parent], local=False))
    child = writer.catalog.relations[child.id]
    if bound is not None:
        router = changer.router()
        for table, rows in leaves(writer, child):
            if not router.taken(child, router.converted(table, child, rows)).all():
                message = f'partition constraint of relation "{child.name}" is violated by some row'
                raise SqlError("23514", message)
        _give_keys(changer, child)
        child = writer.catalog.relations[child.id]
    if not child.temporary:
        rebuild_views(writer, writer.catalog.above(child))


def _give_keys(changer: RowChanger, table: Relation) -> None:
    """Give a new partition and its own the foreign keys of the tables above. 23503 for rows that refer to nothing."""
    writer = changer.writer
    above = next(r for r in writer.catalog.relations.values() if r.oid in table.parents)
    given = with_copies(writer, table, above, above.foreign_keys)
    if given.foreign_keys != table.foreign_keys:
        writer.alter(given)
        ((_, rows), *_) = leaves(writer, given)
        links = changer.keys.links(writer.catalog).outgoing.get(given.id, ())
        for link in links:
            if given.partitioning is None and link.key not in table.foreign_keys:
                changer.references().check_present(link, rows)
    for below in table.children:
        _give_keys(changer, writer.catalog.relations[below])


def _check_unreferenced(changer: RowChanger, table: Relation) -> None:
    """23503 if rows of a partition that is detached are referred to as rows of a table above."""
    links = changer.keys.links(changer.writer.catalog)
    found = leaves(changer.writer, table)
    inside = {leaf.id for leaf, _ in found}
    for leaf, rows in found:
        for link in links.incoming.get(leaf.id, ()) if leaf.partitioning is None else ():
            if link.declared.id not in inside and link.child.partitioning is None:
                changer.references().check_unreferenced(link, rows, table.name)


def _owning(table: Relation, parents: Sequence[Relation], *, local: bool, still: Collection[str] = ()) -> Relation:
    """The table with ``local`` set for what it shares with the parents, but not for what others ``still`` share."""
    shared = {c.name for p in parents for c in p.columns} | {c.name for p in parents for c in p.checks}
    names = shared - set(still)
    return replace(
        table, columns=tuple(replace(c, local=local) if c.name in names else c for c in table.columns),
        checks=tuple(replace(c, local=local) if c.name in names else c for c in table.checks),
    )  # fmt: skip


def _check_attachable(parent: Relation, child: Relation, partition: bool) -> None:
    if partition and parent.partitioning is None:
        raise SqlError("42P17", f'table "{parent.name}" is not partitioned')
    if child.bound is not None and partition:
        raise SqlError("42809", f'"{child.name}" is already a partition')
    if child.bound is not None:
        raise SqlError("42809", "cannot change inheritance of a partition")
    if not partition and child.partitioning is not None:
        raise SqlError("42809", "cannot change inheritance of partitioned table")
    if not partition and parent.partitioning is not None:
        raise SqlError("42809", f'cannot inherit from partitioned table "{parent.name}"')
    if not partition and parent.bound is not None:
        raise SqlError("42809", "cannot inherit from a partition")
    if partition and child.parents:
        raise SqlError("42809", "cannot attach inheritance child as partition")
    if partition and child.children and child.partitioning is None:
        raise SqlError("42809", "cannot attach inheritance parent as partition")
    if partition and child.temporary != parent.temporary:
        kinds = ("temporary", "permanent") if child.temporary else ("permanent", "temporary")
        message = f'cannot attach a {kinds[0]} relation as partition of {kinds[1]} relation "{parent.name}"'
        raise SqlError("42809", message)
    if not partition and parent.temporary and not child.temporary:
        raise SqlError("42809", f'cannot inherit from temporary relation "{parent.name}"')


def _check_no_others(parent: Relation, child: Relation) -> None:
    """42804 if a partition has a column that its parent does not have."""
    known = {c.name for c in parent.columns}
    for name in (c.name for c in child.columns if c.name not in known):
        raise SqlError(
            "42804", f'table "{child.name}" contains column "{name}" not found in parent "{parent.name}"',
            "The new partition may contain only the columns present in parent.",
        )  # fmt: skip


def _check_columns(parent: Relation, child: Relation) -> None:
    """42804 if a table lacks a column or a constraint that it would inherit."""
    own = {c.name: c for c in child.columns}
    for column in parent.columns:
        found = own.get(column.name)
        if found is None:
            raise SqlError("42804", f'child table is missing column "{column.name}"')
        if (found.type, found.domain) != (column.type, column.domain):
            message = f'child table "{child.name}" has different type for column "{column.name}"'
            raise SqlError("42804", message)
        if found.nullable and not column.nullable:
            raise SqlError("42804", f'column "{column.name}" in child table must be marked NOT NULL')
        if column.expression is not None and found.expression is None:
            raise SqlError("42804", f'column "{column.name}" in child table must be a generated column')
        if column.expression is not None and found.expression != column.expression:
            message = f'column "{column.name}" in child table has a conflicting generation expression'
            raise SqlError("42804", message)
    checks = {c.name: c.text for c in child.checks}
    for check in (c for c in parent.checks if not c.no_inherit):
        if check.name not in checks:
            raise SqlError("42804", f'child table is missing constraint "{check.name}"')
        if checks[check.name] != check.text:
            message = f'child table "{child.name}" has different definition for check constraint "{check.name}"'
            raise SqlError("42804", message)


def _check_has_keys(parent: Relation, child: Relation) -> None:
    """0A000 if a partition lacks one of its parent's keys."""
    if parent.partitioning is None:
        return
    own = [{child.columns[i].name for i in index.columns} for index in child.keys]
    for index in parent.keys:
        if {parent.columns[i].name for i in index.columns} not in own:
            hint = f"Add one like {index.name} to {child.name} first."
            raise unsupported("attaching a partition without the keys of its table", hint=hint)


def detach(changer: RowChanger, names: SearchPathReader, statement: Detach) -> None:
    """DETACH PARTITION or NO INHERIT."""
    writer = changer.writer
    parent, child = _named(names, statement.parent), _named(names, statement.child)
    if parent.oid not in child.parents:
        if statement.partition:
            raise SqlError("42P01", f'relation "{child.name}" is not a partition of relation "{parent.name}"')
        raise SqlError("42P01", f'relation "{parent.name}" is not a parent of relation "{child.name}"')
    if not statement.partition and child.bound is not None:
        raise SqlError("42809", "cannot change inheritance of a partition")
    above = writer.catalog.above(child)
    writer.hold_still(child)
    rest = tuple(p for p in child.parents if p != parent.oid)
    if child.bound is not None:
        _check_unreferenced(changer, child)
    own = tuple(replace(k, origin=0) for k in child.foreign_keys)
    left = replace(child, parents=rest, bound=None, foreign_keys=own)
    others = [r for r in writer.catalog.relations.values() if r.oid in rest]
    still = {c.name for r in others for c in r.columns} | {c.name for r in others for c in r.checks}
    writer.redefine(_owning(left, [parent], local=True, still=still))
    if not child.temporary:
        rebuild_views(writer, above)


def _named(names: SearchPathReader, name: tuple[str | None, str]) -> Relation:
    found = names.resolve(*name)
    if found is None:
        raise SqlError("42P01", f'relation "{".".join(n for n in name if n is not None)}" does not exist')
    if found.kind is not RelationKind.TABLE:
        raise SqlError("42809", f'"{found.name}" is not a table')
    return found
