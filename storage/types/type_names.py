"""Postgres's metadata of our types: OIDs, names, aliases, lengths and categories, and the text of ``format_type``.

It is in this low layer because error messages of text input and ``pg_typeof`` need it. ``column_types.py`` in
``sql/catalog/`` adds the parser of type names. The numbers are those of PostgreSQL's ``pg_type.dat``.
"""

from __future__ import annotations

from typing import Final

from ivm.words import Kind, SqlType
from storage.types.definition import TypeInfo
from storage.types.definitions import DEFINITIONS, FAMILIES
from storage.types.interval_fields import ALL_DIGITS, NAMES

TYPE_INFOS: Final[tuple[TypeInfo, ...]] = (
    TypeInfo(Kind.BOOL, 16, 1000, 1, "B", "boolean", True, "c"),
    TypeInfo(Kind.BYTEA, 17, 1001, -1, "U", "bytea"),
    TypeInfo(Kind.CHAR1, 18, 1002, 1, "Z", '"char"', False, "c"),
    TypeInfo(Kind.NAME, 19, 1003, 64, "S", "name", False, "c"),
    TypeInfo(Kind.INT8, 20, 1016, 8, "N", "bigint", False, "d"),
    TypeInfo(Kind.INT2, 21, 1005, 2, "N", "smallint", False, "s"),
    TypeInfo(Kind.INT4, 23, 1007, 4, "N", "integer"),
    TypeInfo(Kind.REGPROC, 24, 1008, 4, "N", "regproc"),
    TypeInfo(Kind.TEXT, 25, 1009, -1, "S", "text", True),
    TypeInfo(Kind.OID, 26, 1028, 4, "N", "oid", True),
    TypeInfo(Kind.JSON, 114, 199, -1, "U", "json"),
    TypeInfo(Kind.FLOAT4, 700, 1021, 4, "N", "real"),
    TypeInfo(Kind.FLOAT8, 701, 1022, 8, "N", "double precision", True, "d"),
    TypeInfo(Kind.UNKNOWN, 705, 0, -2, "X", "unknown", False, "c"),
    TypeInfo(Kind.BPCHAR, 1042, 1014, -1, "S", "character"),
    TypeInfo(Kind.VARCHAR, 1043, 1015, -1, "S", "character varying"),
    TypeInfo(Kind.DATE, 1082, 1182, 4, "D", "date"),
    TypeInfo(Kind.TIME, 1083, 1183, 8, "D", "time without time zone", False, "d"),
    TypeInfo(Kind.TIMESTAMP, 1114, 1115, 8, "D", "timestamp without time zone", False, "d"),
    TypeInfo(Kind.TIMESTAMPTZ, 1184, 1185, 8, "D", "timestamp with time zone", True, "d"),
    TypeInfo(Kind.INTERVAL, 1186, 1187, 16, "T", "interval", True, "d"),
    TypeInfo(Kind.NUMERIC, 1700, 1231, -1, "N", "numeric"),
    TypeInfo(Kind.REGCLASS, 2205, 2210, 4, "N", "regclass", True),
    TypeInfo(Kind.REGTYPE, 2206, 2211, 4, "N", "regtype", True),
    TypeInfo(Kind.RECORD, 2249, 2287, -1, "P", "record", False, "d"),
    TypeInfo(Kind.VOID, 2278, 0, 4, "P", "void"),
    TypeInfo(Kind.JSONB, 3802, 3807, -1, "U", "jsonb"),
    TypeInfo(Kind.REGNAMESPACE, 4089, 4090, 4, "N", "regnamespace", True),
    TypeInfo(Kind.REGPROCEDURE, 2202, 2207, 4, "N", "regprocedure", True),
    TypeInfo(Kind.REGOPER, 2203, 2208, 4, "N", "regoper", True),
    TypeInfo(Kind.REGOPERATOR, 2204, 2209, 4, "N", "regoperator", True),
    TypeInfo(Kind.REGROLE, 4096, 4097, 4, "N", "regrole", True),
    TypeInfo(Kind.REGCOLLATION, 4191, 4192, 4, "N", "regcollation", True),
)

_DEFINED: Final = tuple(d.info for d in DEFINITIONS.values() if not d.family)
INFO: Final[dict[Kind, TypeInfo]] = {info.kind: info for info in (*TYPE_INFOS, *_DEFINED)}
_BY_OID: Final = {info.oid: SqlType(info.kind) for info in INFO.values()} | {
    t.named.oid: t for t in FAMILIES if t.named
}
_ARRAY_BY_OID: Final = {info.array_oid: SqlType(info.kind) for info in INFO.values() if info.array_oid} | {
    t.named.array_oid: t for t in FAMILIES if t.named
}
_FAMILY_CATEGORIES: Final = {Kind.RANGE: "R", Kind.MULTIRANGE: "R", Kind.RECORD: "C"}
_TIMES: Final = (Kind.TIME, Kind.TIMETZ, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_COUNTED: Final = (Kind.BIT, Kind.VARBIT)
VECTOR_OIDS: Final = {Kind.INT2: 22, Kind.OID: 30}
"""int2vector and oidvector, by the type of their elements."""
_FULL_RANGE: Final = 0x7FFF


def info(type_: SqlType) -> TypeInfo:
    """The metadata of a type that is not an array."""
    enum, named = type_.enum, type_.named
    if enum is not None:
        return TypeInfo(Kind.ENUM, enum.oid, enum.array_oid, 4, "E", enum.shown)
    if named is not None:
        return TypeInfo(type_.kind, named.oid, named.array_oid, -1, _FAMILY_CATEGORIES[type_.kind], named.shown)
    return INFO[type_.kind]


def type_oid(type_: SqlType) -> int:
    """The OID of a type; 0 for an array whose element has no array type."""
    if type_.zero_based and type_.element is not None:
        return VECTOR_OIDS[type_.element.kind]
    if type_.kind is Kind.ARRAY:
        return info(type_.element).array_oid if type_.element is not None else 0
    return info(type_).oid


def type_from_oid(oid: int, typmod: int = -1) -> SqlType | None:
    """The type of an OID and typmod, None if it is not one of ours. int2vector and oidvector read as arrays."""
    for kind, own in VECTOR_OIDS.items():
        if own == oid:
            return SqlType(Kind.ARRAY, element=SqlType(kind), zero_based=True)
    if (plain := _BY_OID.get(oid)) is not None:
        return with_typmod(plain, typmod)
    element = _ARRAY_BY_OID.get(oid)
    return None if element is None else SqlType(Kind.ARRAY, element=with_typmod(element, typmod))


def typmod(type_: SqlType) -> int:
    """Postgres's encoding of a type's modifiers, -1 without any. An array has its element's."""
    if type_.kind is Kind.ARRAY:
        return typmod(type_.element) if type_.element is not None else -1
    if type_.precision is None:
        return -1
    if type_.kind is Kind.NUMERIC:
        return ((type_.precision << 16) | ((type_.scale or 0) & 0x7FF)) + 4
    if type_.kind in (Kind.VARCHAR, Kind.BPCHAR):
        return type_.precision + 4
    if type_.kind is Kind.INTERVAL:
        return (_FULL_RANGE if type_.scale is None else type_.scale) << 16 | type_.precision
    return type_.precision if type_.kind in _TIMES or type_.kind in _COUNTED else -1


def with_typmod(type_: SqlType, modifier: int) -> SqlType:
    """The inverse of ``typmod``: applies it to a type without modifiers."""
    if modifier < 0:
        return type_
    if type_.kind is Kind.ARRAY and type_.element is not None:
        return SqlType(Kind.ARRAY, element=with_typmod(type_.element, modifier))
    if type_.kind is Kind.NUMERIC and modifier >= 4:
        packed = modifier - 4
        scale = packed & 0x7FF
        return SqlType(Kind.NUMERIC, packed >> 16, scale - 0x800 if scale & 0x400 else scale)
    if type_.kind in (Kind.VARCHAR, Kind.BPCHAR) and modifier > 4:
        return SqlType(type_.kind, modifier - 4)
    if type_.kind in _TIMES or type_.kind in _COUNTED:
        return SqlType(type_.kind, modifier)
    if type_.kind is Kind.INTERVAL and (modifier >> 16 in NAMES or modifier & ALL_DIGITS <= 6):
        return SqlType(type_.kind, modifier & ALL_DIGITS, modifier >> 16 if modifier >> 16 in NAMES else None)
    return type_


def type_length(type_: SqlType) -> int:
    """pg_type.typlen, what RowDescription sends."""
    return -1 if type_.kind is Kind.ARRAY else info(type_).length


def type_category(type_: SqlType) -> str:
    """pg_type.typcategory."""
    return "A" if type_.kind is Kind.ARRAY else info(type_).category


def is_preferred(type_: SqlType) -> bool:
    """pg_type.typispreferred: whether the type is preferred within its category."""
    return type_.kind is not Kind.ARRAY and info(type_).preferred


def internal_name(type_: SqlType) -> str:
    """pg_type.typname: int4, _text, …"""
    if type_.kind is Kind.ARRAY:
        return "_" + (internal_name(type_.element) if type_.element is not None else "")
    named = type_.enum or type_.named
    return str(type_.kind.value) if named is None else named.name


def format_type(type_: SqlType, modifier: bool = True) -> str:
    """The SQL name of a type as Postgres's ``format_type`` prints it, with its modifiers unless ``modifier`` is
    false."""
    if type_.kind is Kind.ARRAY:
        return (format_type(type_.element, modifier) if type_.element is not None else "anyarray") + "[]"
    label = info(type_).label
    if not modifier:
        return label
    if type_.precision is None:
        return "bpchar" if type_.kind is Kind.BPCHAR else label
    if type_.kind is Kind.NUMERIC:
        return f"numeric({type_.precision},{type_.scale or 0})"
    if type_.kind in _TIMES:
        head, _, tail = label.partition(" ")
        return f"{head}({type_.precision}) {tail}"
    if type_.kind in (Kind.VARCHAR, Kind.BPCHAR, Kind.INTERVAL) or type_.kind in _COUNTED:
        fields = "" if type_.scale is None else f" {NAMES[type_.scale]}"
        return f"{label}{fields}" + ("" if type_.precision == ALL_DIGITS else f"({type_.precision})")
    return label
