"""Rows of pg_type, and of pg_proc for the functions that pg_type names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import MappingProxyType
from typing import Final

from ivm.words import Kind
from sql.catalog.catalog import INTERNAL_SCHEMAS, Relation, RelationKind
from sql.catalog.composite import ROW_ARRAY_BASE
from sql.catalog.securables import securable
from sql.catalog.system.definitions import Datums, Row, definition
from sql.catalog.user_types import typed, types_of
from sql.system import pg_routines
from sql.system.acls import own_acl
from sql.system.builtin import builtin_rows, by_oid
from sql.system.operator_classes import BTREE, default_class
from sql.system.pg_relations import collation_of
from sql.system.state import OWNER, SystemState, owner_of
from sql.system.texts import domain_default
from sql.system.type_data import TYPES
from storage.types.range_values import multirange_of
from storage.types.type_names import info, internal_name, type_category, type_length, type_oid, typmod

_PG_CATALOG: Final = INTERNAL_SCHEMAS["pg_catalog"]
_SUBSCRIPTS: Final = {"name": "raw_array_subscript_handler", "jsonb": "jsonb_subscript_handler"}


@cache
def functions() -> MappingProxyType[int, str]:
    """The names of the built-in functions, by oid."""
    return MappingProxyType({oid: row["proname"] or "" for oid, row in by_oid("pg_proc").items()})


@cache
def function_oids() -> MappingProxyType[str, int]:
    """The inverse of ``functions``; the first of several with one name."""
    return MappingProxyType({name: oid for oid, name in reversed([*functions().items()])})


@cache
def type_names() -> MappingProxyType[int, str]:
    """pg_type.typname by oid."""
    return MappingProxyType({int(line.split()[0]): line.split()[1] for line in TYPES.strip().splitlines()})


@cache
def pseudo_types() -> MappingProxyType[str, int]:
    """The oids of the types of functions' arguments alone, by name."""
    lines = (line.split() for line in TYPES.strip().splitlines())
    return MappingProxyType({name: int(oid) for oid, name, _, _, kind, *_ in lines if kind == "p"})


@cache
def _types() -> tuple[Datums, ...]:
    row, oids = definition("pg_catalog", "pg_type").row, function_oids()
    rows = []
    for line in TYPES.strip().splitlines():
        (oid, name, length, by_value, kind, category, preferred, element, array, inout, modifier, align, storage,
         collation) = line.split()  # fmt: skip
        subscript = "array_subscript_handler" if inout == "array_" else _SUBSCRIPTS.get(name, "")
        rows.append(
            row(
                oid=int(oid), typname=name, typnamespace=_PG_CATALOG, typowner=OWNER, typlen=int(length),
                typbyval=by_value == "t", typtype=kind, typcategory=category, typispreferred=preferred == "t",
                typisdefined=True, typdelim=",", typsubscript=oids.get(subscript, 0), typelem=int(element),
                typarray=int(array), typinput=oids.get(inout + "in", 0), typoutput=oids.get(inout + "out", 0),
                typreceive=oids.get(inout + "recv", 0), typsend=oids.get(inout + "send", 0),
                typmodin=oids.get(modifier + "in", 0), typmodout=oids.get(modifier + "out", 0), typalign=align,
                typstorage=storage, typtypmod=-1, typcollation=int(collation),
            )
        )  # fmt: skip
    return tuple(rows)


def pg_type(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from _types()
    oids, schemas = function_oids(), state.schemas()

    def of(name: str) -> dict[str, object]:
        functions = ("typinput", "in"), ("typoutput", "out"), ("typreceive", "recv"), ("typsend", "send")
        return {column: oids.get(f"{name}_{suffix}", 0) for column, suffix in functions}

    for relation in typed(sorted((*state.types(), *state.relations()), key=lambda r: r.oid)):
        namespace = schemas.get(relation.schema_name, 0)
        shared = {
            "typnamespace": namespace, "typowner": owner_of(state, relation), "typacl": _acl(state, relation),
            "typisdefined": True, "typdelim": ",", "typtypmod": -1,
        }  # fmt: skip
        if relation.domain:
            yield row(**_domain(state, relation), **shared | {"typtypmod": typmod(relation.columns[0].type)})
            yield row(
                **_array(ROW_ARRAY_BASE + relation.oid, relation.name, relation.oid, "i"), **shared, **of("array")
            )
        for type_ in types_of(relation):
            own, name, kind = info(type_), internal_name(type_), _FORMS[type_.kind]
            if type_.kind is Kind.RECORD:
                kind = {**kind, "typrelid": relation.oid}
            yield row(
                oid=own.oid, typname=name, typcategory=own.category, typarray=own.array_oid, **shared, **kind,
                **of(type_.kind.value),
            )  # fmt: skip
            yield row(**_array(own.array_oid, name, own.oid, kind["typalign"]), **shared, **of("array"))


def _array(oid: int, name: str, element: int, align: object) -> dict[str, object]:
    """The columns of pg_type that the array type of a user's type has of its own."""
    return {
        "oid": oid, "typname": f"_{name}"[:63], "typlen": -1, "typbyval": False, "typtype": "b", "typcategory": "A",
        "typsubscript": function_oids().get("array_subscript_handler", 0), "typelem": element, "typalign": align,
        "typstorage": "x",
    }  # fmt: skip


def _acl(state: SystemState, relation: Relation) -> tuple[str, ...] | None:
    return own_acl(securable(relation), state.roles) if relation.kind is RelationKind.TYPE else None


def _domain(state: SystemState, domain: Relation) -> dict[str, object]:
    """The columns of pg_type that a domain has of its own."""
    (value,) = domain.columns
    default = domain_default(state, domain)
    length = type_length(value.type)
    return {
        "oid": domain.oid, "typname": domain.name, "typarray": ROW_ARRAY_BASE + domain.oid, "typtype": "d",
        "typlen": length, "typbyval": length in (1, 2, 4, 8), "typalign": "i",
        "typcategory": type_category(value.type),
        "typstorage": "p" if length > 0 else "x", "typnotnull": not value.nullable, "typdefault": default,
        "typdefaultbin": default,
        "typbasetype": type_oid(value.type) if value.domain is None else value.domain.oid,
        "typcollation": collation_of(value.type),
    }  # fmt: skip


_VARYING: Final = {"typlen": -1, "typbyval": False, "typalign": "d", "typstorage": "x"}
_FORMS: Final[dict[Kind, dict[str, object]]] = {
    Kind.ENUM: {"typtype": "e", "typlen": 4, "typbyval": True, "typalign": "i", "typstorage": "p"},
    Kind.RECORD: {"typtype": "c", **_VARYING},
    Kind.RANGE: {"typtype": "r", **_VARYING},
    Kind.MULTIRANGE: {"typtype": "m", **_VARYING},
}


def pg_enum(state: SystemState, row: Row) -> Iterator[Datums]:
    for type_ in sorted(state.types(), key=lambda r: r.id):
        for i, label in enumerate(type_.enum.labels if type_.enum is not None else ()):
            yield row(oid=label.oid, enumtypid=type_.id, enumsortorder=float(i + 1), enumlabel=label.text)


def pg_range(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from builtin_rows("pg_range")
    for relation in sorted((t for t in state.types() if t.multirange is not None), key=lambda r: r.oid):
        own = relation.own_type
        inside = relation.columns[0].type
        yield row(
            rngtypid=type_oid(own), rngsubtype=type_oid(inside), rngmultitypid=type_oid(multirange_of(own)),
            rngcollation=collation_of(inside), rngsubopc=default_class(BTREE, inside),
        )  # fmt: skip


def pg_proc(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from builtin_rows("pg_proc")
    yield from pg_routines.rows(state, row)


def pg_aggregate(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from builtin_rows("pg_aggregate")
    yield from pg_routines.aggregates(state, row, function_oids())


def pg_cast(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from builtin_rows("pg_cast")
