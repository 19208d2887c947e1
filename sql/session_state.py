"""What functions and system relations ask of the session: names, settings, other sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Words, pack
from ivm.words import TEXT, Kind, SqlType
from planner.row_errors import decode_error
from sql.catalog import Catalog, Relation, RelationKind, TableColumn
from sql.snapshot import Published
from sql.system import relations as system
from sql.system.pg_relations import constraint_definition, index_definition
from sql.system.pg_types import function_oids, functions
from sql.system.state import CONSTRAINT_BASE, INDEX_BASE, OWNER, SCHEMAS, SessionInfo
from sql.types import format_type, parse_type, type_from_oid, type_oid
from storage.codec import encode
from storage.dictionary import Dictionary

if TYPE_CHECKING:
    from sql.session import Session

VIEW_ERRORS: Final = Relation(
    13990, "freshet", "view_errors", RelationKind.SYSTEM,
    (TableColumn("view", TEXT, False), TableColumn("sqlstate", TEXT, False), TableColumn("message", TEXT, False),
     TableColumn("row", TEXT)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SessionState:
    """``planner.context.SessionFunctions`` and ``sql.system.state.SystemState``, over one catalog."""

    session: Session
    catalog: Catalog

    # For system relations.

    @property
    def user(self) -> str:
        return self.session.user

    @property
    def database(self) -> str:
        return self.session.database

    def relations(self) -> Iterable[Relation]:
        return (VIEW_ERRORS, *self.catalog.relations.values())

    def settings(self) -> Sequence[tuple[str, str]]:
        return self.session.settings.all()

    def sessions(self) -> Sequence[SessionInfo]:
        return [s.info() for s in self.session.coordinator.sessions]

    # For functions.

    def current_user(self) -> str:
        return self.session.user

    def session_user(self) -> str:
        return self.session.user

    def current_database(self) -> str:
        return self.session.database

    def current_schema(self) -> str | None:
        return "public"

    def current_schemas(self, implicit: bool) -> tuple[str, ...]:
        return ("pg_catalog", "public") if implicit else ("public",)

    def setting(self, name: str) -> str | None:
        return self.session.settings.find(name)

    def format_type(self, oid: int, typmod: int | None) -> str | None:
        type_ = type_from_oid(oid, -1 if typmod is None else typmod)
        return "???" if type_ is None else format_type(type_, typmod is not None)

    def reg_out(self, type: SqlType, oid: int) -> str:
        name: str | None = None
        if oid == 0:
            return "-"
        if type.kind is Kind.REGCLASS:
            relation = self.catalog.by_id(oid)
            name = None if relation is None else self._relation_name(relation)
        elif type.kind is Kind.REGTYPE:
            name = self.format_type(oid, None)
        elif type.kind is Kind.REGNAMESPACE:
            name = next((n for n, o in SCHEMAS.items() if o == oid), None)
        elif type.kind is Kind.REGPROC:
            name = functions().get(oid)
        return str(oid) if name is None else name

    def reg_in(self, type: SqlType, text: str) -> int:
        if text.isdigit():
            return int(text)
        if text == "-":
            return 0
        if type.kind is Kind.REGCLASS:
            return self._class_oid(text)
        if type.kind is Kind.REGTYPE:
            return type_oid(parse_type(text))
        if type.kind is Kind.REGNAMESPACE:
            if text in SCHEMAS:
                return SCHEMAS[text]
            raise SqlError("3F000", f'schema "{text}" does not exist')
        found = function_oids().get(text)
        if found is None:
            raise SqlError("42883", f'function "{text}" does not exist')
        return found

    def table_is_visible(self, oid: int) -> bool | None:
        relation = self.catalog.by_id(oid)
        return None if relation is None else relation.schema_name in ("public", "pg_catalog")

    def view_definition(self, oid: int) -> str | None:
        relation = self.catalog.by_id(oid)
        return None if relation is None else relation.definition

    def index_definition(self, oid: int, column: int) -> str | None:
        relation = self.catalog.by_id(oid - INDEX_BASE)
        if relation is None or not relation.primary_key:
            return None
        if column == 0:
            return index_definition(relation)
        return relation.columns[relation.primary_key[column - 1]].name if column <= len(relation.primary_key) else ""

    def constraint_definition(self, oid: int) -> str | None:
        relation = self.catalog.by_id(oid - CONSTRAINT_BASE)
        return None if relation is None else constraint_definition(relation)

    def backend_pid(self) -> int:
        return self.session.backend_id

    def role_name(self, oid: int) -> str:
        return self.session.user if oid == OWNER else f"unknown (OID={oid})"

    def _relation_name(self, relation: Relation) -> str:
        name = _quoted(relation.name)
        visible = relation.schema_name in ("public", "pg_catalog")
        return name if visible else f"{_quoted(relation.schema_name)}.{name}"

    def _class_oid(self, text: str) -> int:
        parts = [part.strip() for part in text.split(".")]
        names = [p[1:-1].replace('""', '"') if p.startswith('"') else p.lower() for p in parts]
        relation = self.catalog.resolve(names[-2] if len(names) > 1 else None, names[-1])
        if relation is None:
            raise SqlError("42P01", f'relation "{text}" does not exist')
        return relation.id


def system_words(relation: int, state: SessionState, published: Published, dictionary: Dictionary) -> Words:
    """A system relation's rows as words of the query's dictionary."""
    known = published.catalog.by_id(relation)
    assert known is not None, "a system relation"
    if relation == VIEW_ERRORS.id:
        datums = list(view_errors(published, dictionary))
    else:
        datums = system.rows(relation, state)
    vectors = [encode(c.type, [row[i] for row in datums], dictionary) for i, c in enumerate(known.columns)]
    return pack(vectors, known.schema, len(datums))


def view_errors(published: Published, dictionary: Dictionary) -> Iterable[tuple[object, ...]]:
    """freshet.view_errors: each error row of each materialized view, and the views that are taken down."""
    for relation in sorted(published.catalog.relations.values(), key=lambda r: r.name):
        failure = published.failures.get(relation.id)
        if failure is not None:
            yield relation.name, failure.sqlstate, failure.message, None
        version = published.errors(relation.id)
        if version is None:
            continue
        rows, _ = version.rows_at(published.ordinal)
        for data in sorted(dictionary.lookup(np.ascontiguousarray(rows[:, 0]))):
            error, row = decode_error(data)
            yield relation.name, error.sqlstate, error.message, row


def _quoted(name: str) -> str:
    plain = name.replace("_", "a").isalnum() and name == name.lower() and not name[0].isdigit()
    return name if plain else '"' + name.replace('"', '""') + '"'
