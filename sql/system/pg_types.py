"""Rows of pg_type, and of pg_proc for the functions that pg_type names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import MappingProxyType
from typing import Final

from sql.catalog.catalog import INTERNAL_SCHEMAS
from sql.catalog.system.definitions import Datums, Row, definition
from sql.system import pg_routines
from sql.system.state import OWNER, SystemState
from sql.system.type_data import FUNCTIONS, TYPES

_PG_CATALOG: Final = INTERNAL_SCHEMAS["pg_catalog"]
_SUBSCRIPTS: Final = {"name": "raw_array_subscript_handler", "jsonb": "jsonb_subscript_handler"}
_INTERNAL: Final = 12


@cache
def functions() -> MappingProxyType[int, str]:
    """The names of functions that a regproc column can refer to, by oid."""
    pairs = (part.split(":") for part in FUNCTIONS.split())
    return MappingProxyType({int(oid): name for oid, name in pairs})


@cache
def function_oids() -> MappingProxyType[str, int]:
    """The inverse of ``functions``."""
    return MappingProxyType({name: oid for oid, name in functions().items()})


@cache
def type_names() -> MappingProxyType[int, str]:
    """pg_type.typname by oid."""
    return MappingProxyType({int(line.split()[0]): line.split()[1] for line in TYPES.strip().splitlines()})


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
    for type_ in sorted(state.types(), key=lambda r: r.id):
        enum, namespace = type_.own_type.enum, schemas.get(type_.schema_name, 0)
        assert enum is not None, "types are enums"
        yield row(
            oid=enum.oid, typname=enum.name, typnamespace=namespace, typowner=OWNER, typlen=4, typbyval=True,
            typtype="e", typcategory="E", typisdefined=True, typdelim=",", typarray=enum.array_oid,
            typinput=oids.get("enum_in", 0), typoutput=oids.get("enum_out", 0), typreceive=oids.get("enum_recv", 0),
            typsend=oids.get("enum_send", 0), typalign="i", typstorage="p", typtypmod=-1,
        )  # fmt: skip
        yield row(
            oid=enum.array_oid, typname=f"_{enum.name}"[:63], typnamespace=namespace, typowner=OWNER, typlen=-1,
            typbyval=False, typtype="b", typcategory="A", typisdefined=True, typdelim=",",
            typsubscript=oids.get("array_subscript_handler", 0), typelem=enum.oid, typinput=oids.get("array_in", 0),
            typoutput=oids.get("array_out", 0), typreceive=oids.get("array_recv", 0),
            typsend=oids.get("array_send", 0), typalign="i", typstorage="x", typtypmod=-1,
        )  # fmt: skip


def pg_enum(state: SystemState, row: Row) -> Iterator[Datums]:
    for type_ in sorted(state.types(), key=lambda r: r.id):
        for i, label in enumerate(type_.enum.labels if type_.enum is not None else ()):
            yield row(oid=label.oid, enumtypid=type_.id, enumsortorder=float(i + 1), enumlabel=label.text)


def pg_proc(state: SystemState, row: Row) -> Iterator[Datums]:
    for oid, name in functions().items():
        yield row(
            oid=oid, proname=name, pronamespace=_PG_CATALOG, proowner=OWNER, prolang=_INTERNAL, procost=1.0,
            prokind="f", proisstrict=True, provolatile="i", proparallel="s", prosrc=name,
        )  # fmt: skip
    yield from pg_routines.rows(state, row)


def pg_aggregate(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from pg_routines.aggregates(state, row)
