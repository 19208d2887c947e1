"""The system relations: names, oids and columns, and rows built from named values with defaults for the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

from ivm.words import Kind, SqlType, simple_type
from sql.catalog.catalog import Relation, RelationKind, TableColumn
from sql.catalog.system import tables_pg_catalog, views_information_schema, views_pg_catalog

Datums = tuple[object, ...]
Row = Callable[..., Datums]
"""``Definition.row`` of one relation."""

_SOURCES: Final = (
    ("pg_catalog", tables_pg_catalog.TABLES),
    ("pg_catalog", views_pg_catalog.VIEWS),
    ("information_schema", views_information_schema.VIEWS),
)


VECTORS: Final = {"int2vector": "int2", "oidvector": "oid"}
"""Array types whose text has spaces between elements and no braces, with their element types."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A system relation. ``relkind``: as in pg_class, r or v. ``defaults``: a value for each column, not NULL if the
    column is NOT NULL. ``vectors``: the 1-based positions of the columns that are int2vector or oidvector in
    Postgres."""

    relation: Relation
    relkind: str
    defaults: MappingProxyType[str, object]
    vectors: frozenset[int]

    def row(self, **values: object) -> Datums:
        """A row with these values. Other columns are NULL; if NOT NULL they are false, 0 or empty."""
        row = {**self.defaults, **values}
        assert len(row) == len(self.defaults), f"{self.relation.name} has no such column: {values.keys()}"
        return tuple(row.values())


def _type(text: str) -> SqlType:
    if text in VECTORS:
        return SqlType(Kind.ARRAY, element=_type(VECTORS[text]), zero_based=True)
    if text.endswith("[]"):
        return SqlType(Kind.ARRAY, element=_type(text[:-2]))
    return simple_type(Kind(text))


def _default(type_: SqlType) -> object:
    """The default of a NOT NULL column."""
    match type_.kind:
        case Kind.BOOL:
            return False
        case Kind.TEXT | Kind.NAME | Kind.CHAR1 | Kind.VARCHAR:
            return ""
        case Kind.ARRAY:
            return ()
        case Kind.FLOAT4 | Kind.FLOAT8:
            return 0.0
        case _:
            return 0


def _paragraphs(text: str) -> Iterator[str]:
    """The definitions in a text, one per line; a line that begins with a space continues the previous one."""
    current = ""
    for line in text.strip().splitlines():
        if line.startswith(" "):
            current += " " + line.strip()
            continue
        if current:
            yield current
        current = line
    yield current


def _parsed(schema: str, text: str) -> Definition:
    head, _, tail = text.partition(": ")
    oid, name, relkind = head.split()
    columns: list[TableColumn] = []
    vectors = set()
    for part in tail.split(", "):
        column, type_ = part.split()
        if type_.rstrip("!") in VECTORS:
            vectors.add(len(columns) + 1)
        columns.append(TableColumn(column, _type(type_.rstrip("!")), nullable=not type_.endswith("!")))
    relation = Relation(int(oid), schema, name, RelationKind.SYSTEM, tuple(columns))
    defaults = {c.name: None if c.nullable else _default(c.type) for c in columns}
    return Definition(relation, relkind, MappingProxyType(defaults), frozenset(vectors))


def defined(schema: str, source: str) -> Iterator[Definition]:
    """The relations of a text, one per paragraph: ``oid name relkind: column type, …``; ``!`` marks NOT NULL."""
    return (_parsed(schema, text) for text in _paragraphs(source))


@cache
def definitions() -> MappingProxyType[int, Definition]:
    """The relations of pg_catalog and information_schema by oid."""
    return MappingProxyType({d.relation.id: d for source in _SOURCES for d in defined(*source)})


def is_vector(table: int, attribute: int) -> bool:
    """Whether a result's column is an int2vector or oidvector. The arguments are as in ``OutputColumn``."""
    known = definitions().get(table)
    return known is not None and attribute in known.vectors


@cache
def system_oid(name: str) -> int:
    """The oid of a relation of pg_catalog; 0 if there is none."""
    found = (d.relation for d in definitions().values() if d.relation.schema_name == "pg_catalog")
    return next((r.id for r in found if r.name == name), 0)


@cache
def definition(schema: str, name: str) -> Definition:
    """A system relation by name."""
    return next(d for d in definitions().values() if (d.relation.schema_name, d.relation.name) == (schema, name))
