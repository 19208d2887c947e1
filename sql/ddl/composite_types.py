"""CREATE TYPE and ALTER TYPE of composite types, as changes of a writer's catalog and of the stored rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import assert_never

from ivm.errors import SqlError, unsupported
from planner.expr.scalar import Call, Column
from sql.catalog.catalog import LABELS, Relation, RelationKind, TableColumn
from sql.catalog.composite import mentions, renewed
from sql.engine.writer import Writer
from sql.statements.definitions import AlterTable, SetType
from sql.statements.types import (
    AddAttribute,
    AlterComposite,
    AttributeChange,
    CreateComposite,
    CreateRange,
    DropAttribute,
    RenameAttribute,
    SetAttributeType,
)
from storage.types.type_names import type_oid


def create_composite(writer: Writer, schema_name: str, statement: CreateComposite) -> Relation:
    """The new type. Raises 0A000 for an attribute of a temporary table's row type."""
    engine = writer.engine
    oid = engine.next_id(writer.catalog)
    created = engine.timeline.epoch(engine.timeline.last) + 1
    kind = RelationKind.TYPE
    made = Relation(oid, schema_name, statement.name, kind, statement.attributes, created=created)
    writer.create(made, None)
    return made


def create_range(writer: Writer, schema_name: str, statement: CreateRange, multirange: str) -> Relation:
    """The new range type with its multirange type."""
    bounds = (TableColumn("subtype", statement.subtype),)
    engine = writer.engine
    oid = engine.next_id(writer.catalog)
    created = engine.timeline.epoch(engine.timeline.last) + 1
    made = Relation(
        oid, schema_name, statement.name, RelationKind.TYPE, bounds, created=created, multirange=multirange
    )  # fmt: skip
    writer.create(made, None)
    return made


def multirange_name(name: str) -> str:
    """The name of a range type's multirange type where none is given (makeMultirangeTypeName)."""
    found = name.replace("range", "multirange", 1) if "range" in name else f"{name[:52]}_multirange"
    return found[:63]


@dataclass(frozen=True, slots=True)
class CompositeAlterer:
    """Runs ALTER TYPE … ATTRIBUTE. ``alter``: runs an ALTER TABLE; ``say``: sends a notice."""

    writer: Writer
    alter: Callable[[AlterTable], object]
    say: Callable[[str], None]

    def run(self, type_: Relation, statement: AlterComposite) -> None:
        """Raises 42703, 42701, 0A000."""
        changed = type_
        for change in statement.changes:
            changed = self._changed(changed, change)
        if all(isinstance(c, RenameAttribute) for c in statement.changes):
            self._check_unread(type_)
            self.writer.redefine(changed)
            return
        if any(isinstance(c, SetAttributeType) for c in statement.changes):
            for user, column in self.writer.catalog.using(type_):
                if user.kind is RelationKind.TABLE:
                    shown = f"{user.name}.{column.name}"
                    message = f'cannot alter type "{type_.name}" because column "{shown}" uses it'
                    raise SqlError("0A000", message)
        self._check_unread(type_)
        self._reshape(type_, changed)
        self.writer.redefine(changed)

    def _changed(self, type_: Relation, change: AttributeChange) -> Relation:
        columns, names = list(type_.columns), [c.name for c in type_.columns]
        match change:
            case AddAttribute():
                self._check_new(type_, change.attribute.name)
                if mentions(change.attribute.type, type_oid(type_.own_type)):
                    message = f"composite type {type_.name} cannot be made a member of itself"
                    raise SqlError("42P16", message)
                return replace(type_, columns=(*columns, change.attribute))
            case DropAttribute() if change.if_exists and change.name not in names:
                self.say(f'column "{change.name}" of relation "{type_.name}" does not exist, skipping')
                return type_
            case DropAttribute():
                del columns[self._place(type_, change.name)]
            case RenameAttribute():
                i = self._place(type_, change.name, whole=False)
                self._check_new(type_, change.new)
                columns[i] = replace(columns[i], name=change.new)
            case SetAttributeType():
                i = self._place(type_, change.name)
                columns[i] = replace(columns[i], type=change.type)
            case _:
                assert_never(change)
        return replace(type_, columns=tuple(columns))

    def _place(self, type_: Relation, name: str, *, whole: bool = True) -> int:
        for i, column in enumerate(type_.columns):
            if column.name == name:
                return i
        of = f' of relation "{type_.name}"' if whole else ""
        raise SqlError("42703", f'column "{name}"{of} does not exist')

    def _check_new(self, type_: Relation, name: str) -> None:
        if any(c.name == name for c in type_.columns):
            raise SqlError("42701", f'column "{name}" of relation "{type_.name}" already exists')

    def _check_unread(self, type_: Relation) -> None:
        """Raises 0A000 if a view may read the attributes."""
        catalog = self.writer.catalog
        tables = [user.id for user, _ in catalog.using(type_)]
        for other in catalog.dependents([type_.id, *tables]):
            if other.kind in (RelationKind.VIEW, RelationKind.MATERIALIZED_VIEW):
                what = f"{LABELS[other.kind]} {other.name}"
                raise unsupported(f"changing a type that {what} may read", f"Drop {what} first and create it again.")

    def _reshape(self, old: Relation, new: Relation) -> None:
        reshape_users(self.writer, self.alter, old, new)


def reshape_users(writer: Writer, alter: Callable[[AlterTable], object], old: Relation, new: Relation) -> None:
    """Gives the stored values of a row type that changes its fields their new form, wherever tables hold them."""
    rest = {user.id: user for user, _ in writer.catalog.using(old) if user.kind is RelationKind.TABLE}
    oid = type_oid(new.own_type)
    while rest:
        # a table whose rows are themselves inside another's columns comes after that one
        first = next(i for i, table in rest.items() if not _inside(table, rest))
        table = rest.pop(first)
        changes = []
        for i, column in enumerate(table.columns):
            if mentions(column.type, oid):
                type_ = renewed(column.type, new.own_type)
                value = Call("reshaped", (Column(i, column.type, column.nullable),), type_, column.nullable)
                changes.append(SetType(column.name, type_, value, column.default, column.domain))
        alter(AlterTable(table, table.name, tuple(changes)))


def _inside(table: Relation, others: dict[int, Relation]) -> bool:
    oid = type_oid(table.own_type)
    return any(mentions(c.type, oid) for other in others.values() if other.id != table.id for c in other.columns)
