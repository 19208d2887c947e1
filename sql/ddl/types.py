"""CREATE, ALTER and DROP TYPE, as changes of a writer's catalog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

from ivm.errors import SqlError, unsupported
from planner.expr.context import Context
from planner.identifiers import quoted
from sql.catalog.catalog import LABELS, Relation, RelationKind, TableColumn, is_temporary
from sql.catalog.column_types import is_type_name
from sql.catalog.enumeration import Enumeration, added, check_label, declared, renamed
from sql.catalog.search_path import SearchPathReader, check_creatable, no_schema
from sql.ddl.composite_types import CompositeAlterer, create_composite, create_range, multirange_name
from sql.ddl.dependents import dependents_error, tell_cascade
from sql.ddl.domains import DomainAlterer, create_domain
from sql.engine.writer import Writer
from sql.statements.definitions import AlterTable, DropColumn
from sql.statements.results import Notice, Notify
from sql.statements.types import (
    AddLabel,
    AlterComposite,
    AlterDomain,
    CreateComposite,
    CreateDomain,
    CreateEnum,
    CreateRange,
    DropAttribute,
    DropType,
    RenameLabel,
    RenameType,
    TypeStatement,
)


@dataclass(frozen=True, slots=True)
class TypeDefiner:
    """Runs DDL of types for one writer. ``alone``: the statement is a transaction by itself. ``alter``: runs an ALTER
    TABLE; ``contexts``: as in ``DomainAlterer``."""

    writer: Writer
    notify: Notify
    names: SearchPathReader
    alone: bool
    alter: Callable[[AlterTable], object]
    contexts: Callable[[], Context]

    def run(self, statement: TypeStatement) -> str:
        """Run the statement; the command tag."""
        match statement:
            case CreateEnum():
                self._create(statement)
                return "CREATE TYPE"
            case CreateComposite():
                create_composite(self.writer, self._place(statement.schema_name, statement.name), statement)
                return "CREATE TYPE"
            case CreateRange():
                place = self._place(statement.schema_name, statement.name)
                many = statement.multirange or multirange_name(statement.name)
                self._check_multirange(place, many, statement)
                create_range(self.writer, place, statement, many)
                return "CREATE TYPE"
            case AlterComposite():
                say = partial(self._say, code="00000")
                found = self._composite(statement.schema_name, statement.name)
                CompositeAlterer(self.writer, self.alter, say).run(found, statement)
                return "ALTER TYPE"
            case CreateDomain():
                create_domain(self.writer, self._place(statement.schema_name, statement.name), statement)
                return "CREATE DOMAIN"
            case AlterDomain():
                domain = self._domain(statement.schema_name, statement.name)
                say = partial(self._say, code="00000")
                DomainAlterer(self.writer, self.contexts, say).run(domain, statement.change)
                return "ALTER DOMAIN"
            case AddLabel():
                self._add(statement)
                return "ALTER TYPE"
            case RenameLabel():
                self._rename(statement)
                return "ALTER TYPE"
            case RenameType():
                self._rename_type(statement)
                return "ALTER DOMAIN" if statement.domain else "ALTER TYPE"
            case DropType():
                self._drop(statement)
                return "DROP DOMAIN" if statement.domains else "DROP TYPE"
            case _:
                assert_never(statement)

    def _create(self, statement: CreateEnum) -> None:
        engine, name = self.writer.engine, statement.name
        schema_name = self._place(statement.schema_name, name)
        oid = engine.next_id(self.writer.catalog)
        created = engine.timeline.epoch(engine.timeline.last) + 1
        enum = declared(oid, name, statement.labels)
        self.writer.create(Relation(oid, schema_name, name, RelationKind.TYPE, (), created=created, enum=enum), None)

    def _place(self, schema_name: str | None, name: str) -> str:
        """The schema of a new type. Raises 42710, 42501, 3F000, 0A000."""
        place = self.names.home(schema_name, temporary=False)
        check_creatable(place, name)
        if is_temporary(place):
            raise unsupported("a temporary type")
        if not self.writer.catalog.has_schema(place):
            raise no_schema(place)
        self._check_free(place, name)
        return place

    def _check_multirange(self, schema_name: str, name: str, statement: CreateRange) -> None:
        if is_type_name(name):
            raise SqlError("42710", f'type "{name}" already exists')
        try:
            self._check_free(schema_name, name)
        except SqlError as error:
            if statement.multirange is not None:
                raise
            named = f'type "{statement.name}"'
            raise SqlError(
                "42710", error.message, f"Failed while creating a multirange type for {named}.",
                'You can manually specify a multirange type name using the "multirange_type_name" attribute.',
            ) from None  # fmt: skip

    def _say(self, message: str, code: str) -> None:
        self.notify(Notice("NOTICE", code, message))

    def _composite(self, schema_name: str | None, name: str) -> Relation:
        """The composite type of this name. Raises 42704, 42809."""
        found = self.names.type(schema_name, name)
        if found is None:
            raise self._missing(schema_name, name)
        if found.kind is RelationKind.TYPE and not found.composite:
            raise SqlError("42809", f'"{name}" is not a composite type')
        if found.kind is not RelationKind.TYPE:
            raise SqlError("42809", f"{found.name} is a table's row type", hint="Use ALTER TABLE instead.")
        return found

    def _domain(self, schema_name: str | None, name: str) -> Relation:
        """The domain of this name. Raises 42704, 42809."""
        found = self.names.type(schema_name, name)
        if found is None:
            raise self._missing(schema_name, name)
        if not found.domain:
            raise SqlError("42809", f"{found.name} is not a domain")
        return found

    def _check_free(self, schema_name: str, name: str) -> None:
        catalog = self.writer.catalog
        if (schema_name, name) in catalog.types or (schema_name, name) in catalog.names:
            raise SqlError("42710", f'type "{name}" already exists')

    def _find(self, schema_name: str | None, name: str) -> tuple[Relation, Enumeration]:
        found = self.names.type(schema_name, name)
        if found is None:
            raise self._missing(schema_name, name)
        if found.enum is None:
            raise SqlError("42809", f"{found.name} is not an enum")
        return found, found.enum

    def _missing(self, schema_name: str | None, name: str) -> SqlError:
        if schema_name is not None and not self.names.catalog.has_schema(self.names.schema(schema_name)):
            return no_schema(schema_name)
        shown = name if schema_name is None else f"{schema_name}.{name}"
        return SqlError("42704", f'type "{shown}" does not exist')

    def _add(self, statement: AddLabel) -> None:
        found, enum = self._find(statement.schema_name, statement.name)
        check_label(statement.label)
        if enum.find(statement.label) is not None:
            message = f'enum label "{statement.label}" already exists'
            if not statement.if_not_exists:
                raise SqlError("42710", message)
            self.notify(Notice("NOTICE", "42710", f"{message}, skipping"))
            return
        oid = self.writer.engine.next_id(self.writer.catalog)
        self._redefine(found, added(enum, statement.label, oid, statement.neighbor))

    def _rename(self, statement: RenameLabel) -> None:
        found, enum = self._find(statement.schema_name, statement.name)
        changed = renamed(enum, statement.old, statement.new)
        if not self.alone:
            raise unsupported("ALTER TYPE RENAME VALUE in a transaction block")
        for other in self._mentioning(found):
            what = f"{LABELS[other.kind]} {other.name}"
            raise unsupported(f"renaming a label that {what} may mention", f"Drop {what} first and create it again.")
        self._redefine(found, changed)

    def _rename_type(self, statement: RenameType) -> None:
        """Raises 0A000 if a definition's text may contain the name: it would then mean another type, or none."""
        found = self.names.type(statement.schema_name, statement.name)
        if statement.domain:
            found = self._domain(statement.schema_name, statement.name)
        elif found is None or (found.enum is None and found.multirange is None and not found.domain):
            found = self._composite(statement.schema_name, statement.name)
        self._check_free(found.schema_name, statement.new)
        catalog = self.writer.catalog
        texts = {r.id: [c.default or "" for c in r.columns] + [c.text for c in r.checks] for r in catalog.stored()}
        naming = [catalog.relations[i] for i, each in texts.items() if any(found.name in text for text in each)]
        for other in [*catalog.dependents([found.id]), *naming]:
            what = f"{LABELS[other.kind]} {other.name}"
            raise unsupported(f"renaming a type that {what} may name", f"Drop {what} first and create it again.")
        renamed = replace(found, name=statement.new)
        if found.enum is None:
            self.writer.redefine(renamed)
        else:
            self._redefine(renamed, replace(found.enum, name=statement.new))

    def _redefine(self, type_: Relation, enum: Enumeration) -> None:
        self.writer.redefine(replace(type_, enum=enum))
        enum.publish()

    def _mentioning(self, type_: Relation) -> list[Relation]:
        """Definitions whose text may contain a label, and views that may have converted one to text."""
        catalog = self.writer.catalog
        tables = {t.id: t for t, _ in catalog.using(type_)}
        over = [r for r in catalog.dependents(tables) if r.kind is RelationKind.MATERIALIZED_VIEW]
        defaults = {t.id: t for t, c in catalog.using(type_) if c.default is not None or t.checks}
        return [*catalog.dependents([type_.id]), *over, *defaults.values()]

    def _drop(self, statement: DropType) -> None:
        found: list[Relation] = []
        for schema_name, name in statement.names:
            type_ = self.names.type(schema_name, name)
            if type_ is None:
                missing = self._missing(schema_name, name)
                if not statement.if_exists:
                    raise missing
                self.notify(Notice("NOTICE", "00000", f"{missing.message}, skipping"))
            elif statement.domains and not type_.domain:
                raise SqlError("42809", f'"{name}" is not a domain')
            elif type_.kind is not RelationKind.TYPE:
                raise self._of_rows(type_)
            elif type_ not in found:
                found.append(type_)
        ranges = self._ranges(found)
        if statement.cascade:
            found += ranges
        elif ranges:
            lines = [f"{self._described(r)} depends on {self._described(found[0])}" for r in ranges]
            raise dependents_error(self._described(found[0]), lines)
        ids = {t.id for t in found}
        columns = [
            (type_, *each) for type_ in found for each in self.writer.catalog.using(type_, directly=True)
            if each[0].id not in ids and (type_.domain or each[1].domain is None)
        ]  # fmt: skip
        dependents = self.writer.catalog.dependents([t.id for t in found])
        if (columns or dependents) and not statement.cascade:
            raise self._needed(found, columns, dependents)
        told = [*map(self._described, ranges)]
        told += dict.fromkeys(self._column(table, column) for _, table, column in columns)
        tell_cascade(self.notify, [*told, *map(self._described, dependents)])
        self.writer.drop([r.id for r in dependents])
        gone = {t.id for t in found}
        for user in {t.id: t for _, t, _ in columns}.values():
            if user.id not in gone:
                self._drop_columns(user, tuple({c.name: c for _, t, c in columns if t.id == user.id}))
        self.writer.drop(list(gone))

    def _ranges(self, types: list[Relation]) -> list[Relation]:
        """The range types and domains over these, and over those, that are not among them."""
        found: list[Relation] = []
        for type_ in types:
            users = (r for r, _ in self.writer.catalog.using(type_, directly=True))
            over = [r for r in users if r.multirange is not None or r.domain]
            found += [r for each in over for r in (each, *self._ranges([each])) if r not in (*types, *found)]
        return found

    def _drop_columns(self, user: Relation, names: tuple[str, ...]) -> None:
        """Drop a table's columns, or a composite type's attributes."""
        if user.kind is RelationKind.TYPE:
            changes = tuple(DropAttribute(name) for name in names)
            statement = AlterComposite(user.schema_name, user.name, changes)
            CompositeAlterer(self.writer, self.alter, partial(self._say, code="00000")).run(user, statement)
            return
        # dropping an attribute may have given the table another id; an inherited column went with the parent's
        table = next(r for r in self.writer.catalog.relations.values() if r.oid == user.oid)
        left = {c.name for c in table.columns}
        gone = tuple(DropColumn(name, cascade=True) for name in names if name in left)
        if not gone:
            return
        self.alter(AlterTable(table, user.name, gone))

    def _of_rows(self, relation: Relation) -> SqlError:
        """The error of DROP TYPE for the type of a relation's rows."""
        what, name = LABELS[relation.kind], self.names.shown(relation)
        message = f"cannot drop type {name} because {what} {name} requires it"
        return SqlError("2BP01", message, hint=f"You can drop {what} {name} instead.")

    def _needed(
        self, found: list[Relation], columns: list[tuple[Relation, Relation, TableColumn]], dependents: list[Relation]
    ) -> SqlError:
        lines = [f"{self._column(t, c)} depends on {self._described(type_)}" for type_, t, c in columns]
        for dependent in dependents:
            known = [t for t in found if t.id in dependent.dependencies]
            lines.append(f"{self._described(dependent)} depends on {self._described((known or found)[0])}")
        what = self._described(found[0]) if len(found) == 1 else "desired object(s)"
        return dependents_error(what, lines, len(found) > 1)

    def _column(self, table: Relation, column: TableColumn) -> str:
        of = "composite " if table.kind is RelationKind.TYPE else ""
        return f"column {quoted(column.name)} of {of}{self._described(table)}"

    def _described(self, relation: Relation) -> str:
        if relation.kind is RelationKind.TYPE:
            found = self.names.type(None, relation.name)
            name = quoted(relation.name)
            visible = found is not None and found.id == relation.id
            return f"type {name if visible else f'{quoted(relation.schema_name)}.{name}'}"
        return self.names.described(relation)
