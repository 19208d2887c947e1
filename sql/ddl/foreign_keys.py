"""Creating foreign keys, and the drops that they block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import Kind, SqlType
from planner.identifiers import quoted
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.keys import ForeignKey
from sql.catalog.links import Link, key_index
from sql.ddl.dependents import dependents_error
from sql.ddl.names import constraint_name
from sql.dml.foreign_keys import check_emptied
from sql.engine.writer import Writer
from sql.statements.definitions import NewForeignKey
from storage.types.type_names import format_type

_ALIKE: Final = ({Kind.INT2, Kind.INT4, Kind.INT8}, {Kind.TEXT, Kind.VARCHAR})
"""Kinds of types whose equal values are encoded as equal words."""
_COMPARABLE: Final = (
    {Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.FLOAT4, Kind.FLOAT8},
    {Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME}, {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ},
)  # fmt: skip


def _check_emptied(writer: Writer, table: Relation, parent: Relation) -> None:
    if writer.catalog.by_id(table.id) is not None and writer.catalog.by_id(parent.id) is not None:
        check_emptied(table, parent)


def with_foreign_key(writer: Writer, table: Relation, new: NewForeignKey) -> Relation:
    """Add a foreign key to the table. 42809, 42704, 42703, 42830, 42804, 42710; 0A000 if the keys' types encode equal
    values differently."""
    parent = new.parent or table
    if new.inherited:
        above = next(r for r in writer.catalog.relations.values() if r.oid in table.parents)
        return with_copies(writer, table, above, above.foreign_keys[-1:])
    if table.partitioning is not None and not new.valid:
        raise SqlError(
            "42809", f'cannot add NOT VALID foreign key on partitioned table "{table.name}" referencing relation '
            f'"{parent.name}"', "This feature is not yet supported on partitioned tables.",
        )  # fmt: skip
    if parent.id in writer.catalog.relations:
        writer.hold_still(parent)
    if parent.kind is not RelationKind.TABLE:
        raise SqlError("42809", f'referenced relation "{parent.name}" is not a table')
    if parent.temporary != table.temporary:
        kinds = ("temporary", "temporary") if table.temporary else ("permanent", "permanent")
        raise SqlError("42P16", f"constraints on {kinds[0]} tables may reference only {kinds[1]} tables")
    if parent.empties and not table.empties:
        writer.finishing[-table.id] = lambda: _check_emptied(writer, table, parent)
    keys = new.keys or tuple(parent.columns[i].name for i in parent.primary_key)
    if not keys:
        raise SqlError("42704", f'there is no primary key for referenced table "{parent.name}"')
    columns = [_place(table, name) for name in new.columns]
    for name in keys:
        _place(parent, name)
    if len(set(keys)) < len(keys):
        raise SqlError("42830", "foreign key referenced-columns list must not contain duplicates")
    if len(keys) != len(columns):
        raise SqlError("42830", "number of referencing and referenced columns for foreign key disagree")
    if any(table.columns[i].expression is not None for i in columns):
        _check_actions(new)
    index = key_index(parent, keys)
    if index is None:
        message = f'there is no unique constraint matching given keys for referenced table "{parent.name}"'
        raise SqlError("42830", message)
    if index.deferrable:
        message = f'cannot use a deferrable unique constraint for referenced table "{parent.name}"'
        raise SqlError("55000", message)
    name = constraint_name(table, new.name, tuple(columns), "fkey")
    ordered = tuple(parent.columns[i].name for i in index.columns)
    places = tuple(columns[keys.index(k)] for k in ordered)
    for column, wanted in zip(columns, keys, strict=True):
        _check_types(name, table, column, parent, wanted)
    key = ForeignKey(
        writer.engine.next_id(writer.catalog), name, places, parent.oid, ordered, new.on_delete, new.on_update,
        tuple(_place(table, c) for c in new.changed), new.valid, new.deferrable, new.deferred,
        new.full,
    )  # fmt: skip
    return replace(table, foreign_keys=(*table.foreign_keys, key))


def with_copies(writer: Writer, table: Relation, above: Relation, keys: Sequence[ForeignKey]) -> Relation:
    """A partition with these foreign keys of its table, as copies. One of its own that is the same becomes the copy."""
    names = [c.name for c in table.columns]
    found = list(table.foreign_keys)
    for key in keys:
        columns, changed = (
            tuple(names.index(above.columns[i].name) for i in places) for places in (key.columns, key.changed)
        )
        copy = replace(key, columns=columns, changed=changed, origin=key.id)
        if any(k.origin == key.id for k in found):
            continue
        same = next((i for i, k in enumerate(found) if not k.origin and _alike(k, copy)), None)
        if same is not None:
            found[same] = replace(found[same], origin=key.id)
            continue
        taken = {k.name for k in found} | {c.name for c in table.checks} | {i.name for i in table.all_indexes}
        name = constraint_name(table, None, columns, "fkey") if key.name in taken else key.name
        found.append(replace(copy, id=writer.engine.next_id(writer.catalog), name=name))
    return replace(table, foreign_keys=tuple(found))


def _alike(one: ForeignKey, other: ForeignKey) -> bool:
    return replace(one, id=0, name="", origin=0, valid=True) == replace(other, id=0, name="", origin=0, valid=True)


def _check_actions(new: NewForeignKey) -> None:
    """Raises 42601 for actions that would change a generated column."""
    for event, action, wrong in (
        ("UPDATE", new.on_update, ("set null", "set default", "cascade")),
        ("DELETE", new.on_delete, ("set null", "set default")),
    ):
        if action in wrong:
            message = f"invalid ON {event} action for foreign key constraint containing generated column"
            raise SqlError("42601", message)


def _place(table: Relation, name: str) -> int:
    for i, column in enumerate(table.columns):
        if column.name == name:
            return i
    raise SqlError("42703", f'column "{name}" referenced in foreign key constraint does not exist')


def _check_types(name: str, table: Relation, column: int, parent: Relation, key: str) -> None:
    one, two = table.columns[column].type, parent.columns[_place(parent, key)].type
    if one == two or any(one.kind in kinds and two.kind in kinds for kinds in _ALIKE):
        return
    alike = one.kind is two.kind and one.enum is two.enum
    if alike or any(one.kind in kinds and two.kind in kinds for kinds in _COMPARABLE):
        raise unsupported(f"a foreign key from {_shown(one)} to {_shown(two)}")
    raise SqlError(
        "42804", f'foreign key constraint "{name}" cannot be implemented',
        f'Key columns "{table.columns[column].name}" and "{key}" are of incompatible types: '
        f"{format_type(one, False)} and {format_type(two, False)}.",
    )  # fmt: skip


def _shown(type_: SqlType) -> str:
    return f"type {format_type(type_, True)}"


def needed_by(links: Sequence[Link], what: str, dependency: str) -> SqlError:
    """The error 2BP01 for an object that foreign keys depend on. ``dependency``: the part of it that they need."""
    return dependents_error(what, [f"{link_text(link)} depends on {dependency}" for link in links])


def link_text(link: Link) -> str:
    return f"constraint {quoted(link.key.name)} on table {quoted(link.child.name)}"


def check_keys_stay(links: Sequence[Link], old: Relation, new: Relation) -> None:
    """2BP01 if a table that foreign keys refer to loses a key that they need."""
    names = [c.name for c in new.columns]
    for link in links:
        for key in link.key.keys:
            if key not in names:
                what = f"column {quoted(key)} of table {quoted(old.name)}"
                raise needed_by([link], what, what)
            if new.columns[names.index(key)].type != old.columns[_place(old, key)].type:
                raise unsupported(f"changing the type of column {key}, which {link_text(link)} refers to")
        if key_index(new, link.key.keys) is None:
            index = key_index(old, link.key.keys)
            assert index is not None, "a foreign key has its index"
            kind = "constraint" if index.constraint else "index"
            what = f"constraint {quoted(index.name)} on table {quoted(old.name)}"
            what = what if index.constraint else f"{kind} {quoted(index.name)}"
            raise needed_by([link], what, f"index {quoted(index.name)}")
