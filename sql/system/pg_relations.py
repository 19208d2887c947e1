"""Rows of the catalogs about relations: pg_class, pg_attribute, pg_attrdef, pg_index, pg_constraint and their views."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from ivm.words import Kind, SqlType
from planner.identifiers import quoted
from planner.memo import LIMIT, entries
from sql.bind.exclusion import operand_name
from sql.bind.index_keys import exclusion_of, expression_name, index_parts
from sql.bind.partitions import bound_text
from sql.catalog.access import RoleNames
from sql.catalog.catalog import FIRST_USER_ID, ROWED, Relation, RelationKind, TableColumn
from sql.catalog.composite import domain_oid
from sql.catalog.keys import ForeignKey, Index, constraint_oid
from sql.catalog.links import key_index
from sql.catalog.partitioning import Partitioning
from sql.catalog.securables import securable
from sql.catalog.system.definitions import Datums, Row, definition, definitions
from sql.system.acls import own_acl
from sql.system.operator_classes import default_class
from sql.system.operators import operator_oid
from sql.system.state import (
    SystemState,
    all_relations,
    composite_types,
    defaults_of,
    indexed,
    owner_name,
    owner_of,
    relkind,
    user_relations,
)
from sql.system.texts import default_text, index_part, index_predicate, view_definition
from storage.types.type_names import type_length, type_oid, typmod

HEAP: Final = 2
ACTIONS: Final = {"no action": "a", "restrict": "r", "cascade": "c", "set null": "n", "set default": "d"}
METHODS: Final = {"btree": 403, "hash": 405, "gist": 783, "gin": 2742, "spgist": 4000, "brin": 3580}
DEFAULT_COLLATION: Final = 100
C_COLLATION: Final = 950

_ATTRIBUTES: Final[dict[int, tuple[Relation, tuple[Datums, ...]]]] = entries()
"""The rows of ``_known_attributes`` by the relations' oids, and the relations that they were made of."""
_PLAIN_TYPES: Final = frozenset({Kind.NAME, Kind.CHAR1, Kind.INTERVAL, Kind.UUID})
_MAIN: Final = frozenset({Kind.NUMERIC, Kind.INET, Kind.CIDR})
"""Types of varying length that a row keeps in its own place if it can."""
_ALIGNMENT: Final = {1: "c", 2: "s", 8: "d", 16: "d", 64: "c"}


def pg_class(state: SystemState, row: Row) -> Iterator[Datums]:
    schemas = state.schemas()
    referred = {k.parent for r in user_relations(state, RelationKind.TABLE) for k in r.foreign_keys}
    tables = {r.oid: r for r in user_relations(state, RelationKind.TABLE)}
    for relation, kind in all_relations(state):
        stored = kind in "rm"
        bound = relation.bound
        yield row(
            oid=relation.oid, relname=relation.name, relnamespace=schemas[relation.schema_name],
            relowner=owner_of(state, relation), relacl=own_acl(securable(relation), state.roles),
            reltype=type_oid(relation.own_type) if relation.kind in ROWED else 0,
            relam=HEAP if stored else 0, relfilenode=relation.id if stored else 0, reltuples=-1.0,
            relhasrules=kind in "vm" and relation.oid >= FIRST_USER_ID,
            relhasindex=bool(relation.all_indexes), relpersistence=_persistence(relation),
            relkind=kind, relnatts=len(relation.columns), relchecks=len(relation.checks),
            relhassubclass=bool(relation.children),
            relhastriggers=relation.oid in referred or bool(relation.foreign_keys or relation.triggers),
            relrowsecurity=relation.security.enabled, relforcerowsecurity=relation.security.forced,
            relispopulated=True, relreplident="d" if kind in "rmp" else "n", relispartition=bound is not None,
            reloptions=list(relation.options) or None,
            relpartbound=None if bound is None else bound_text(tables[relation.parents[0]], bound),
        )  # fmt: skip
    for type_ in composite_types(state):
        yield row(
            oid=type_.oid, relname=type_.name, relnamespace=schemas[type_.schema_name],
            relowner=owner_of(state, type_),
            reltype=type_oid(type_.own_type), relpersistence="p", relkind="c", relnatts=len(type_.columns),
            relispopulated=True, relreplident="n",
        )  # fmt: skip
    for relation, index in indexed(state):
        yield row(
            oid=index.id, relname=index.name, relnamespace=schemas[relation.schema_name],
            relowner=owner_of(state, relation), relam=METHODS[index.method], relfilenode=index.id,
            relpersistence=_persistence(relation), relkind="i", relnatts=index.width + len(index.included),
            relispopulated=True, relreplident="n",
        )  # fmt: skip


def _persistence(relation: Relation) -> str:
    return "t" if relation.temporary else "p"


def collation_of(type_: SqlType) -> int:
    """attcollation and typcollation; all collations compare by code point."""
    if type_.element is not None:
        return collation_of(type_.element)
    if type_.kind is Kind.NAME:
        return C_COLLATION
    return DEFAULT_COLLATION if type_.kind in (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR) else 0


def _attribute(
    relation: int,
    number: int,
    column: TableColumn,
    *,
    not_null: bool,
    has_default: bool,
    identity: str = "",
    acl: tuple[str, ...] | None = None,
) -> Datums:
    type_ = column.type
    length = type_length(type_)
    plain = length > 0 or type_.kind in _PLAIN_TYPES
    oid, modifier = type_oid(type_), typmod(type_)
    if column.domain is not None:
        oid, modifier = column.domain.oid, -1
    elif (inside := domain_oid(type_)) is not None:
        oid, modifier = inside, -1
    return definition("pg_catalog", "pg_attribute").row(
        attrelid=relation, attname=column.name, atttypid=oid, attstattarget=-1, attlen=length,
        attnum=number, attndims=int(type_.kind is Kind.ARRAY), attcacheoff=-1, atttypmod=modifier,
        attbyval=length in (1, 2, 4, 8), attalign=_ALIGNMENT.get(length, "i"),
        attstorage="p" if plain else "m" if type_.kind in _MAIN else "x", attnotnull=not_null,
        atthasdef=has_default, attidentity=identity, attgenerated="s" if column.expression is not None else "",
        attislocal=column.local, attinhcount=int(not column.local), attcollation=collation_of(type_), attacl=acl,
    )  # fmt: skip


def _identity(column: TableColumn) -> str:
    kinds = {"always": "a", "by default": "d"}
    return "" if column.generated is None else kinds.get(column.generated.kind, "")


def _attributes(relation: Relation, names: RoleNames | None = None) -> Iterator[Datums]:
    """A relation's columns, with what has been granted on them if the roles' names are given."""
    constrained = relkind(relation) in "rp"
    for i, column in enumerate(relation.columns):
        yield _attribute(
            relation.oid, i + 1, column,
            not_null=constrained and (not column.nullable or i in relation.primary_key),
            has_default=column.default is not None or column.expression is not None
            or (column.generated is not None and not column.generated.identity),
            identity=_identity(column),
            acl=None if names is None else own_acl(securable(relation).at(i + 1), names),
        )  # fmt: skip


def _known_attributes(relation: Relation) -> tuple[Datums, ...]:
    """The columns of a relation on none of which anything has been granted. Cost: once for each change of it."""
    known = _ATTRIBUTES.get(relation.oid)
    if known is not None and known[0] is relation:
        return known[1]
    if len(_ATTRIBUTES) >= LIMIT:
        _ATTRIBUTES.clear()
    rows = tuple(_attributes(relation))
    _ATTRIBUTES[relation.oid] = relation, rows
    return rows


@cache
def _system_attributes() -> tuple[Datums, ...]:
    return tuple(row for d in definitions().values() for row in _attributes(d.relation))


def pg_attribute(state: SystemState, row: Row) -> Iterator[Datums]:
    system = definitions()
    granted = {what.oid for what in state.roles.access.acls if what.column}
    for relation in state.relations():
        if relation.oid in granted:
            yield from _attributes(relation, state.roles)
        elif relation.oid not in system:
            yield from _known_attributes(relation)
    for type_ in composite_types(state):
        yield from _attributes(type_)
    yield from _system_attributes()
    for relation, index in indexed(state):
        columns = [*_key_columns(relation, index), *(relation.columns[i] for i in index.included)]
        for number, column in enumerate(columns):
            yield _attribute(index.id, number + 1, column, not_null=False, has_default=False)


def _key_columns(relation: Relation, index: Index) -> list[TableColumn]:
    """The parts of an index's key as columns."""
    if not index.expressions:
        return [relation.columns[i] for i in index.columns]
    types = [part.type for part in index_parts(relation, index)]
    names = [relation.columns[p].name if isinstance(p, int) else expression_name(p) for p in index.parts]
    return [TableColumn(name, type_) for name, type_ in zip(names, types, strict=True)]


def pg_attrdef(state: SystemState, row: Row) -> Iterator[Datums]:
    for oid, relation, number in defaults_of(state):
        text = default_text(state, relation, relation.columns[number - 1])
        yield row(oid=oid, adrelid=relation.oid, adnum=number, adbin=text)


def pg_index(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation, index in indexed(state):
        parts, width = index.parts, index.width
        texts = [index_part(state, relation, index, i) for i, part in enumerate(parts) if not isinstance(part, int)]
        directions = zip(index.descending or (False,) * width, index.nulls_first or (False,) * width, strict=True)
        yield row(
            indexrelid=index.id, indrelid=relation.oid, indnatts=width + len(index.included), indnkeyatts=width,
            indisexclusion=bool(index.operators),
            indisunique=index.unique, indnullsnotdistinct=not index.nulls_distinct, indisprimary=index.primary,
            indimmediate=not index.deferrable, indisvalid=True, indisready=True, indislive=True,
            indkey=tuple(i + 1 if isinstance(i, int) else 0 for i in (*parts, *index.included)),
            indcollation=tuple(collation_of(c.type) for c in _key_columns(relation, index)), indclass=tuple(
                default_class(METHODS[index.method], c.type) for c in _key_columns(relation, index)
            ),
            indexprs=", ".join(texts) or None, indpred=index_predicate(state, relation, index),
            indoption=tuple(int(descending) + 2 * int(first) for descending, first in directions),
        )  # fmt: skip


def pg_constraint(state: SystemState, row: Row) -> Iterator[Datums]:
    schemas = state.schemas()
    for relation, index in indexed(state):
        if index.constraint:
            yield row(
                oid=constraint_oid(index), conname=index.name, connamespace=schemas[relation.schema_name],
                contype="x" if index.operators else "p" if index.primary else "u", convalidated=True,
                condeferrable=index.deferrable, condeferred=index.deferred, conrelid=relation.oid, conindid=index.id,
                confupdtype=" ", confdeltype=" ", confmatchtype=" ", conislocal=True, connoinherit=True,
                conkey=tuple(i + 1 if isinstance(i, int) else 0 for i in index.parts),
                conexclop=_operators(relation, index) if index.operators else None,
            )  # fmt: skip
    yield from _foreign_keys(state, row)
    for relation in user_relations(state, RelationKind.TABLE):
        for check in relation.checks:
            yield row(
                oid=check.id, conname=check.name, connamespace=schemas[relation.schema_name], contype="c",
                convalidated=check.valid, conrelid=relation.oid, confupdtype=" ", confdeltype=" ", confmatchtype=" ",
                conislocal=check.local, connoinherit=check.no_inherit, coninhcount=int(not check.local),
                conkey=tuple(i + 1 for i in check.columns),
            )  # fmt: skip

    for domain in (t for t in state.types() if t.domain):
        for check in domain.checks:
            yield row(
                oid=check.id, conname=check.name, connamespace=schemas[domain.schema_name], contype="c",
                convalidated=check.valid, contypid=domain.oid, confupdtype=" ", confdeltype=" ", confmatchtype=" ",
                conislocal=True,
            )  # fmt: skip


def _operators(relation: Relation, index: Index) -> tuple[int, ...]:
    """The oids of an EXCLUDE constraint's operators."""
    calls = exclusion_of(relation, index).conflict
    return tuple(operator_oid(s, operand_name(call)) for s, call in zip(index.operators, calls, strict=True))


def pg_inherits(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation in user_relations(state, RelationKind.TABLE):
        for number, parent in enumerate(relation.parents):
            yield row(inhrelid=relation.oid, inhparent=parent, inhseqno=number + 1, inhdetachpending=False)


def pg_partitioned_table(state: SystemState, row: Row) -> Iterator[Datums]:
    tables = user_relations(state, RelationKind.TABLE)
    for relation in tables:
        key = relation.partitioning
        if key is None:
            continue
        own = {r.oid for r in tables if r.bound is not None and r.bound.kind == "default" and relation.oid in r.parents}
        names = [c.name for c in relation.columns]
        places = tuple(names.index(column) + 1 if column else 0 for column in key.columns)
        yield row(
            partrelid=relation.oid, partstrat=key.strategy[0], partnatts=len(places), partdefid=next(iter(own), 0),
            partattrs=places, partclass=_partition_classes(relation, key),
            partcollation=(DEFAULT_COLLATION,) * len(places),
        )  # fmt: skip


def _partition_classes(relation: Relation, key: Partitioning) -> tuple[int, ...]:
    """The operator classes of a partition key's columns; 0 for an expression's."""
    columns = {c.name: c.type for c in relation.columns}
    method = METHODS["hash" if key.strategy == "hash" else "btree"]
    return tuple(default_class(method, columns[name]) if name else 0 for name in key.columns)


def _foreign_keys(state: SystemState, row: Row) -> Iterator[Datums]:
    schemas = state.schemas()
    tables = {r.oid: r for r in user_relations(state, RelationKind.TABLE)}
    for relation in tables.values():
        for key in relation.foreign_keys:
            parent = tables[key.parent]
            names = [c.name for c in parent.columns]
            index = key_index(parent, key.keys)
            yield row(
                oid=key.id, conname=key.name, connamespace=schemas[relation.schema_name], contype="f",
                condeferrable=key.deferrable, condeferred=key.deferred,
                convalidated=key.valid, conrelid=relation.oid, conindid=0 if index is None else index.id,
                confrelid=parent.oid, confupdtype=ACTIONS[key.on_update], confdeltype=ACTIONS[key.on_delete],
                confmatchtype="f" if key.full else "s", conislocal=not key.origin, connoinherit=True,
                conparentid=key.origin, coninhcount=int(bool(key.origin)),
                conkey=tuple(i + 1 for i in key.columns),
                confkey=tuple(names.index(name) + 1 for name in key.keys),
            )  # fmt: skip


def foreign_key_definition(relation: Relation, key: ForeignKey, parent: str) -> str:
    """A foreign key in the form of pg_get_constraintdef. ``parent``: the other table's name."""
    columns = ", ".join(quoted(relation.columns[i].name) for i in key.columns)
    text = f"FOREIGN KEY ({columns}) REFERENCES {parent}({', '.join(map(quoted, key.keys))})"
    text += " MATCH FULL" if key.full else ""
    if key.on_update != "no action":
        text += f" ON UPDATE {key.on_update.upper()}"
    if key.on_delete != "no action":
        text += f" ON DELETE {key.on_delete.upper()}"
    changed = ", ".join(quoted(relation.columns[i].name) for i in key.changed)
    return f"{text} ({changed})" if changed else text


def index_definition(state: SystemState, relation: Relation, index: Index, *, pretty: bool = False) -> str:
    """CREATE INDEX, in the form of pg_get_indexdef."""
    unique = "UNIQUE " if index.unique else ""
    parts = (index_column(state, relation, index, i, pretty=pretty) for i in range(index.width))
    keys = ", ".join(part + _direction(index, i) for i, part in enumerate(parts))
    included = ", ".join(quoted(relation.columns[i].name) for i in index.included)
    table = f"{quoted(relation.schema_name)}.{quoted(relation.name)}"
    text = f"CREATE {unique}INDEX {quoted(index.name)} ON {table} USING {index.method} ({keys})"
    text += f" INCLUDE ({included})" if included else ""
    text += "" if index.nulls_distinct else " NULLS NOT DISTINCT"
    where = index_predicate(state, relation, index, pretty=pretty)
    return text if where is None else f"{text} WHERE {where}"


def index_column(state: SystemState, relation: Relation, index: Index, number: int, *, pretty: bool = False) -> str:
    """The index's column at a position (from 0), in the form of pg_get_indexdef."""
    if number < index.width:
        return index_part(state, relation, index, number, pretty=pretty)
    return quoted(relation.columns[index.included[number - index.width]].name)


def _direction(index: Index, number: int) -> str:
    descending = bool(index.descending) and index.descending[number]
    first = bool(index.nulls_first) and index.nulls_first[number]
    if descending:
        return " DESC" if first else " DESC NULLS LAST"
    return " NULLS FIRST" if first else ""


def constraint_definition(state: SystemState, relation: Relation, index: Index, *, pretty: bool) -> str:
    """A primary key, UNIQUE or EXCLUDE constraint in the form of pg_get_constraintdef."""
    included = ", ".join(quoted(relation.columns[i].name) for i in index.included)
    if index.operators:
        keys = [index_part(state, relation, index, i, pretty=pretty) for i in range(len(index.operators))]
        parts = (f"{key} WITH {symbol}" for key, symbol in zip(keys, index.operators, strict=True))
        text = f"EXCLUDE USING {index.method} ({', '.join(parts)}){f' INCLUDE ({included})' if included else ''}"
        where = index_predicate(state, relation, index, pretty=pretty)
        return text if where is None else f"{text} WHERE ({where})"
    kind = "PRIMARY KEY" if index.primary else "UNIQUE" if index.nulls_distinct else "UNIQUE NULLS NOT DISTINCT"
    text = f"{kind} ({', '.join(quoted(relation.columns[i].name) for i in index.columns)})"
    return f"{text} INCLUDE ({included})" if included else text


def timing(constraint: Index | ForeignKey) -> str:
    """What pg_get_constraintdef says of when a constraint is checked."""
    deferred = " INITIALLY DEFERRED" if constraint.deferred else ""
    return f" DEFERRABLE{deferred}" if constraint.deferrable else ""


def pg_tables(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation, kind in all_relations(state):
        if kind in "rp":
            yield row(
                schemaname=relation.schema_name, tablename=relation.name, tableowner=owner_name(state, relation),
                hasindexes=bool(relation.all_indexes), hasrules=False, hastriggers=False,
                rowsecurity=relation.security.enabled,
            )  # fmt: skip


def pg_views(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation, kind in all_relations(state):
        if kind == "v":
            text = view_definition(relation, state) if relation.definition else None
            yield row(
                schemaname=relation.schema_name, viewname=relation.name,
                viewowner=owner_name(state, relation), definition=text,
            )  # fmt: skip


def pg_matviews(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation in user_relations(state, RelationKind.MATERIALIZED_VIEW):
        yield row(
            schemaname=relation.schema_name, matviewname=relation.name, matviewowner=owner_name(state, relation),
            hasindexes=bool(relation.all_indexes), ispopulated=True, definition=view_definition(relation, state),
        )  # fmt: skip


def pg_indexes(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation, index in indexed(state):
        yield row(
            schemaname=relation.schema_name, tablename=relation.name, indexname=index.name,
            indexdef=index_definition(state, relation, index),
        )  # fmt: skip
