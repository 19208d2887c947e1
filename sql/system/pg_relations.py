"""Rows of the catalogs about relations: pg_class, pg_attribute, pg_attrdef, pg_index, pg_constraint and their views."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from ivm.words import Kind, SqlType
from planner.identifiers import quoted
from sql.catalog import Relation, RelationKind, TableColumn
from sql.keys import INDEX_BASE
from sql.system.definitions import Datums, definition, definitions
from sql.system.state import (
    CONSTRAINT_BASE,
    OWNER,
    SystemState,
    all_relations,
    defaults_of,
    primary_key_name,
    relkind,
    user_relations,
    with_keys,
)
from sql.types import type_length, type_oid, typmod

HEAP: Final = 2
BTREE: Final = 403
DEFAULT_COLLATION: Final = 100
C_COLLATION: Final = 950

_PLAIN_TYPES: Final = frozenset({Kind.NAME, Kind.CHAR1, Kind.INTERVAL, Kind.UUID})
_ALIGNMENT: Final = {1: "c", 2: "s", 8: "d", 16: "d", 64: "c"}


def pg_class(state: SystemState) -> Iterator[Datums]:
    row = definition("pg_catalog", "pg_class").row
    schemas = state.schemas()
    for relation, kind in all_relations(state):
        stored = kind in "rm"
        yield row(
            oid=relation.oid, relname=relation.name, relnamespace=schemas[relation.schema_name], relowner=OWNER,
            relam=HEAP if stored else 0, relfilenode=relation.id if stored else 0, reltuples=-1.0,
            relhasindex=bool(relation.primary_key), relpersistence=_persistence(relation),
            relkind=kind, relnatts=len(relation.columns),
            relispopulated=True, relreplident="d" if stored else "n",
        )  # fmt: skip
    for relation in with_keys(state):
        yield row(
            oid=INDEX_BASE + relation.oid, relname=primary_key_name(relation),
            relnamespace=schemas[relation.schema_name], relowner=OWNER, relam=BTREE,
            relfilenode=INDEX_BASE + relation.oid, relpersistence=_persistence(relation), relkind="i",
            relnatts=len(relation.primary_key), relispopulated=True, relreplident="n",
        )  # fmt: skip


def _persistence(relation: Relation) -> str:
    """relpersistence: temporary or permanent."""
    return "t" if relation.temporary else "p"


def collation_of(type_: SqlType) -> int:
    """attcollation and typcollation; all collations compare by code point."""
    if type_.element is not None:
        return collation_of(type_.element)
    if type_.kind is Kind.NAME:
        return C_COLLATION
    return DEFAULT_COLLATION if type_.kind in (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR) else 0


def _attribute(
    relation: int, number: int, column: TableColumn, *, not_null: bool, has_default: bool, identity: str = ""
) -> Datums:
    type_ = column.type
    length = type_length(type_)
    plain = length > 0 or type_.kind in _PLAIN_TYPES
    return definition("pg_catalog", "pg_attribute").row(
        attrelid=relation, attname=column.name, atttypid=type_oid(type_), attstattarget=-1, attlen=length,
        attnum=number, attndims=int(type_.kind is Kind.ARRAY), attcacheoff=-1, atttypmod=typmod(type_),
        attbyval=length in (1, 2, 4, 8), attalign=_ALIGNMENT.get(length, "i"),
        attstorage="p" if plain else "m" if type_.kind is Kind.NUMERIC else "x", attnotnull=not_null,
        atthasdef=has_default, attidentity=identity, attislocal=True, attcollation=collation_of(type_),
    )  # fmt: skip


def _identity(column: TableColumn) -> str:
    """attidentity."""
    kinds = {"always": "a", "by default": "d"}
    return "" if column.generated is None else kinds.get(column.generated.kind, "")


def _attributes(relation: Relation) -> Iterator[Datums]:
    constrained = relkind(relation) == "r"
    for i, column in enumerate(relation.columns):
        yield _attribute(
            relation.oid, i + 1, column,
            not_null=constrained and (not column.nullable or i in relation.primary_key),
            has_default=column.default is not None or (column.generated is not None and not column.generated.identity),
            identity=_identity(column),
        )  # fmt: skip


@cache
def _system_attributes() -> tuple[Datums, ...]:
    return tuple(row for d in definitions().values() for row in _attributes(d.relation))


def pg_attribute(state: SystemState) -> Iterator[Datums]:
    system = definitions()
    for relation in state.relations():
        if relation.oid not in system:
            yield from _attributes(relation)
    yield from _system_attributes()
    for relation in with_keys(state):
        for number, i in enumerate(relation.primary_key):
            index = INDEX_BASE + relation.oid
            yield _attribute(index, number + 1, relation.columns[i], not_null=False, has_default=False)


def pg_attrdef(state: SystemState) -> Iterator[Datums]:
    row = definition("pg_catalog", "pg_attrdef").row
    for oid, relation, number, text in defaults_of(state):
        yield row(oid=oid, adrelid=relation.oid, adnum=number, adbin=text)


def pg_index(state: SystemState) -> Iterator[Datums]:
    row = definition("pg_catalog", "pg_index").row
    for relation in with_keys(state):
        key = relation.primary_key
        yield row(
            indexrelid=INDEX_BASE + relation.oid, indrelid=relation.oid, indnatts=len(key), indnkeyatts=len(key),
            indisunique=True, indisprimary=True, indimmediate=True, indisvalid=True, indisready=True,
            indislive=True, indkey=tuple(i + 1 for i in key),
            indcollation=tuple(collation_of(relation.columns[i].type) for i in key), indclass=(0,) * len(key),
            indoption=(0,) * len(key),
        )  # fmt: skip


def pg_constraint(state: SystemState) -> Iterator[Datums]:
    row = definition("pg_catalog", "pg_constraint").row
    schemas = state.schemas()
    for relation in with_keys(state):
        yield row(
            oid=CONSTRAINT_BASE + relation.oid, conname=primary_key_name(relation),
            connamespace=schemas[relation.schema_name], contype="p", convalidated=True, conrelid=relation.oid,
            conindid=INDEX_BASE + relation.oid, confupdtype=" ", confdeltype=" ", confmatchtype=" ", conislocal=True,
            connoinherit=True, conkey=tuple(i + 1 for i in relation.primary_key),
        )  # fmt: skip


def index_definition(relation: Relation) -> str:
    """CREATE INDEX's text for a primary key, as pg_get_indexdef gives it."""
    keys = ", ".join(quoted(relation.columns[i].name) for i in relation.primary_key)
    table = f"{quoted(relation.schema_name)}.{quoted(relation.name)}"
    return f"CREATE UNIQUE INDEX {quoted(primary_key_name(relation))} ON {table} USING btree ({keys})"


def constraint_definition(relation: Relation) -> str:
    """A primary key as pg_get_constraintdef gives it."""
    return "PRIMARY KEY (" + ", ".join(quoted(relation.columns[i].name) for i in relation.primary_key) + ")"


def view_definition(relation: Relation, state: SystemState) -> str:
    """A view's query as pg_get_viewdef gives it: the user's own text, ended by a semicolon, with the schemas of
    relations whose names alone would mean something else to this session."""
    return " " + _qualified(relation, state).strip().removesuffix(";") + ";"


def _qualified(view: Relation, state: SystemState) -> str:
    text = view.definition or ""
    bare = [r for r in view.references if r.schema_name is None]
    if not bare:
        return text
    relations = [r for r, _ in all_relations(state)]
    by_id = {r.id: r for r in relations}
    by_name = {(r.schema_name, r.name): r.id for r in relations}
    inserts: dict[int, str] = {}
    for reference in bare:
        meant = by_id.get(reference.relation)
        found = (by_name.get((place, reference.name)) for place in state.path.places)
        if meant is not None and next(filter(None, found), None) != meant.id:
            inserts.update((at, f"{quoted(meant.schema_name)}.") for at in reference.places)
    for at in sorted(inserts, reverse=True):
        text = text[:at] + inserts[at] + text[at:]
    return text


def pg_tables(state: SystemState) -> Iterator[Datums]:
    row = definition("pg_catalog", "pg_tables").row
    for relation, kind in all_relations(state):
        if kind == "r":
            yield row(
                schemaname=relation.schema_name, tablename=relation.name, tableowner=state.user,
                hasindexes=bool(relation.primary_key), hasrules=False, hastriggers=False, rowsecurity=False,
            )  # fmt: skip


def pg_views(state: SystemState) -> Iterator[Datums]:
    row = definition("pg_catalog", "pg_views").row
    for relation, kind in all_relations(state):
        if kind == "v":
            text = view_definition(relation, state) if relation.definition else None
            yield row(
                schemaname=relation.schema_name, viewname=relation.name, viewowner=state.user, definition=text
            )  # fmt: skip


def pg_matviews(state: SystemState) -> Iterator[Datums]:
    row = definition("pg_catalog", "pg_matviews").row
    for relation in user_relations(state, RelationKind.MATERIALIZED_VIEW):
        yield row(
            schemaname=relation.schema_name, matviewname=relation.name, matviewowner=state.user,
            hasindexes=bool(relation.primary_key), ispopulated=True, definition=view_definition(relation, state),
        )  # fmt: skip


def pg_indexes(state: SystemState) -> Iterator[Datums]:
    row = definition("pg_catalog", "pg_indexes").row
    for relation in with_keys(state):
        yield row(
            schemaname=relation.schema_name, tablename=relation.name, indexname=primary_key_name(relation),
            indexdef=index_definition(relation),
        )  # fmt: skip
