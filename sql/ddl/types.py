"""CREATE, ALTER and DROP TYPE, as changes of a writer's catalog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import assert_never

from ivm.errors import SqlError, unsupported
from planner.identifiers import quoted
from sql.catalog.catalog import LABELS, Relation, RelationKind, TableColumn, is_temporary
from sql.catalog.enumeration import Enumeration, added, check_label, declared, renamed
from sql.catalog.search_path import SearchPathReader, check_creatable, no_schema
from sql.ddl.dependents import dependents_error, tell_cascade
from sql.engine.writer import Writer
from sql.statements.definitions import AlterTable, DropColumn
from sql.statements.results import Notice, Notify
from sql.statements.types import AddLabel, CreateEnum, DropType, RenameLabel, RenameType, TypeStatement


@dataclass(frozen=True, slots=True)
class TypeDefiner:
    """Runs DDL of types for one writer. ``alone``: the statement is a transaction by itself. ``alter``: runs an ALTER
    TABLE."""

    writer: Writer
    notify: Notify
    names: SearchPathReader
    alone: bool
    alter: Callable[[AlterTable], object]

    def run(self, statement: TypeStatement) -> str:
        """Run the statement; the command tag."""
        match statement:
            case CreateEnum():
                self._create(statement)
                return "CREATE TYPE"
            case AddLabel():
                self._add(statement)
                return "ALTER TYPE"
            case RenameLabel():
                self._rename(statement)
                return "ALTER TYPE"
            case RenameType():
                self._rename_type(statement)
                return "ALTER TYPE"
            case DropType():
                self._drop(statement)
                return "DROP TYPE"
            case _:
                assert_never(statement)

    def _create(self, statement: CreateEnum) -> None:
        catalog, engine = self.writer.catalog, self.writer.engine
        schema_name, name = self.names.home(statement.schema_name, temporary=False), statement.name
        check_creatable(schema_name, name)
        if is_temporary(schema_name):
            raise unsupported("a temporary type")
        if not catalog.has_schema(schema_name):
            raise no_schema(schema_name)
        self._check_free(schema_name, name)
        oid = engine.next_id(catalog)
        created = engine.timeline.epoch(engine.timeline.last) + 1
        enum = declared(oid, name, statement.labels)
        self.writer.create(Relation(oid, schema_name, name, RelationKind.TYPE, (), created=created, enum=enum), None)

    def _check_free(self, schema_name: str, name: str) -> None:
        catalog = self.writer.catalog
        if (schema_name, name) in catalog.types or (schema_name, name) in catalog.names:
            raise SqlError("42710", f'type "{name}" already exists')

    def _find(self, schema_name: str | None, name: str) -> tuple[Relation, Enumeration]:
        found = self.names.type(schema_name, name)
        if found is None or found.enum is None:
            raise self._missing(schema_name, name)
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
        found, enum = self._find(statement.schema_name, statement.name)
        self._check_free(found.schema_name, statement.new)
        catalog = self.writer.catalog
        texts = {r.id: [c.default or "" for c in r.columns] + [c.text for c in r.checks] for r in catalog.stored()}
        naming = [catalog.relations[i] for i, each in texts.items() if any(found.name in text for text in each)]
        for other in [*catalog.dependents([found.id]), *naming]:
            what = f"{LABELS[other.kind]} {other.name}"
            raise unsupported(f"renaming a type that {what} may name", f"Drop {what} first and create it again.")
        self._redefine(replace(found, name=statement.new), replace(enum, name=statement.new))

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
            elif type_ not in found:
                found.append(type_)
        columns = [(type_, *each) for type_ in found for each in self.writer.catalog.using(type_)]
        dependents = self.writer.catalog.dependents([t.id for t in found])
        if (columns or dependents) and not statement.cascade:
            raise self._needed(found, columns, dependents)
        told = [self._column(table, column) for _, table, column in columns]
        tell_cascade(self.notify, [*told, *map(self._described, dependents)])
        self.writer.drop([r.id for r in dependents])
        for table in {t.id: t for _, t, _ in columns}.values():
            gone = tuple(DropColumn(c.name, cascade=True) for _, t, c in columns if t.id == table.id)
            self.alter(AlterTable(self.writer.catalog.relations[table.id], table.name, gone))
        self.writer.drop([t.id for t in found])

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
        return f"column {quoted(column.name)} of {self._described(table)}"

    def _described(self, relation: Relation) -> str:
        if relation.kind is RelationKind.TYPE:
            found = self.names.type(None, relation.name)
            name = quoted(relation.name)
            visible = found is not None and found.id == relation.id
            return f"type {name if visible else f'{quoted(relation.schema_name)}.{name}'}"
        if relation.routine is not None:
            return f"function {relation.name}"
        return f"{LABELS[relation.kind]} {self.names.shown(relation)}"
