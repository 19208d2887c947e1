"""Postgres's type names → ``SqlType``; OIDs and typmods are in ``storage/types/type_names.py``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import NAMED_OIDS, Kind, SqlType, simple_type
from storage.types.definitions import DEFINITIONS, FAMILIES
from storage.types.interval_fields import ALL_DIGITS, FIELDS

_ALIASES: Final[dict[str, Kind]] = {
    "bool": Kind.BOOL, "boolean": Kind.BOOL,
    "int2": Kind.INT2, "smallint": Kind.INT2,
    "int": Kind.INT4, "int4": Kind.INT4, "integer": Kind.INT4,
    "int8": Kind.INT8, "bigint": Kind.INT8,
    "float4": Kind.FLOAT4, "real": Kind.FLOAT4,
    "float8": Kind.FLOAT8, "float": Kind.FLOAT8, "double precision": Kind.FLOAT8,
    "numeric": Kind.NUMERIC, "decimal": Kind.NUMERIC, "dec": Kind.NUMERIC,
    "text": Kind.TEXT,
    "varchar": Kind.VARCHAR, "character varying": Kind.VARCHAR, "char varying": Kind.VARCHAR,
    "bpchar": Kind.BPCHAR, "char": Kind.BPCHAR, "character": Kind.BPCHAR,
    "name": Kind.NAME, "refcursor": Kind.TEXT, '"char"': Kind.CHAR1,
    "bytea": Kind.BYTEA, "date": Kind.DATE,
    "time": Kind.TIME, "time without time zone": Kind.TIME,
    "timestamp": Kind.TIMESTAMP, "timestamp without time zone": Kind.TIMESTAMP,
    "timestamptz": Kind.TIMESTAMPTZ, "timestamp with time zone": Kind.TIMESTAMPTZ,
    "interval": Kind.INTERVAL, "json": Kind.JSON, "jsonb": Kind.JSONB, "oid": Kind.OID,
    **{kind.value: kind for kind in NAMED_OIDS},
    "unknown": Kind.UNKNOWN, "record": Kind.RECORD, "void": Kind.VOID,
    **{name: own.kind for own in DEFINITIONS.values() if not own.family for name in (own.label, *own.names)},
}  # fmt: skip
_FAMILIES: Final = {type_.named.name: type_ for type_ in FAMILIES if type_.named is not None}

_VECTORS: Final = ("int2vector", "oidvector")
_KNOWN_UNSUPPORTED: Final = frozenset(
    {
        "xml", "money", "line", "lseg", "box", "path", "polygon", "circle",
        "nchar", "national character",
        "hstore", "pg_lsn", "xid", "cid", "tid", "xid8", "txid_snapshot", "regdictionary",
    }
)  # fmt: skip

_NAME: Final = re.compile(
    r"""^\s*(?P<name>"[^"]+"|[A-Za-z_][\w.]*(?:\s+(?:precision|varying))?)
        \s*(?:\(\s*(?P<args>[-\d\s,]+)\))?
        (?P<tail>\s+(?:with|without)\s+time\s+zone)?
        (?P<array>(?:\s*\[\s*\d*\s*\])+|\s+array(?:\s*\[\s*\d+\s*\])?)?\s*$""",
    re.VERBOSE | re.IGNORECASE,
)


def array_of(element: SqlType) -> SqlType:
    """The array type of an element. An array's is itself, since Postgres's arrays have no declared dimensions."""
    return element if element.kind is Kind.ARRAY else SqlType(Kind.ARRAY, element=element)


@lru_cache(maxsize=1024)
def is_type_name(name: str) -> bool:
    """Whether a (folded) name is one of Postgres's own types."""
    if name.startswith("interval "):
        return name[9:] in FIELDS
    bare = name.removeprefix("_")
    return any(n in known for n in (name, bare) for known in (_ALIASES, _FAMILIES)) or name in _VECTORS


def parse_type(text: str, position: int | None = None) -> SqlType:
    """Parses a type as written in SQL: ``character varying(10)[]``, ``timestamp(3) with time zone``, ``_int4``, …

    Raises 42601 if it is not a type name at all, 42704 if no such type exists, 0A000 if we do not support it.
    """
    match = _NAME.match(text)
    if match is None:
        raise SqlError("42601", f'syntax error at or near "{text.strip()}"', position=position)
    name = " ".join((match["name"] + (match["tail"] or "")).lower().split())
    args = [int(part) for part in match["args"].split(",")] if match["args"] else []
    type_ = type_from_name(name, args, position)
    return array_of(type_) if match["array"] else type_


def type_from_name(name: str, args: Sequence[int] = (), position: int | None = None) -> SqlType:
    """The type for a name (lower-case and unquoted; an alias or internal name) and its modifiers.

    ``char`` is character(1); the one-byte type is written ``"char"``, with quotes. Raises 42704, 0A000, 22023 as
    Postgres.
    """
    if not args and (known := _WITHOUT_MODIFIERS.get(name)) is not None:
        return known
    type_ = _type_from_name(name, args, position)
    if not args and len(_WITHOUT_MODIFIERS) < _MOST_NAMES:
        _WITHOUT_MODIFIERS[name] = type_
    return type_


_WITHOUT_MODIFIERS: Final[dict[str, SqlType]] = {}
"""Names that have been looked up."""
_MOST_NAMES: Final = 1024


def _type_from_name(name: str, args: Sequence[int], position: int | None) -> SqlType:
    name = name.removeprefix("pg_catalog.")
    if name.endswith("[]"):
        return array_of(type_from_name(name[:-2].rstrip(), args, position))
    if name in _VECTORS:
        return SqlType(Kind.ARRAY, element=SqlType(Kind.INT2 if name == "int2vector" else Kind.OID), zero_based=True)
    if name.startswith("_") and (name[1:] in _ALIASES or name[1:] in _FAMILIES):
        return array_of(type_from_name("bpchar" if name == "_bpchar" else name[1:], args, position))
    if name == '"bit"':
        return SqlType(Kind.BIT)
    if len(name) > 2 and name[0] == name[-1] == '"' and name != '"char"':
        name = name[1:-1]
    if name.startswith("interval ") and name[9:] in FIELDS:
        digits = _modified(Kind.INTERVAL, "interval", args, position).precision
        return SqlType(Kind.INTERVAL, ALL_DIGITS if digits is None else digits, FIELDS[name[9:]])
    kind = _ALIASES.get(name)
    if kind is None and (found := _FAMILIES.get(name)) is not None:
        if args:
            raise SqlError("42601", f'type modifier is not allowed for type "{name}"', position=position)
        return found
    if kind is None:
        if name in _KNOWN_UNSUPPORTED:
            raise unsupported(f"type {name}", position=position)
        raise SqlError("42704", f'type "{name}" does not exist', position=position)
    return _modified(kind, name, args, position)


def _modified(kind: Kind, name: str, args: Sequence[int], position: int | None) -> SqlType:
    if kind is Kind.NUMERIC and args:
        return _numeric(args, position)
    if name == "float" and args:
        if not 1 <= args[0] <= 53:
            raise SqlError("22023", _float_message(args[0]), position=position)
        return SqlType(Kind.FLOAT4 if args[0] <= 24 else Kind.FLOAT8)
    if kind in (Kind.VARCHAR, Kind.BPCHAR):
        return _characters(kind, name, args, position)
    if kind in (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL) and args:
        if args[0] < 0:
            raise SqlError("22023", f"{name}({args[0]}) precision must not be negative", position=position)
        return SqlType(kind, min(args[0], 6))
    own = DEFINITIONS.get(kind)
    if own is not None and own.modified is not None:
        try:
            return own.modified(name, args)
        except SqlError as error:
            error.position = position
            raise
    if args:
        raise SqlError("42601", f'type modifier is not allowed for type "{name}"', position=position)
    return simple_type(kind)


def _float_message(digits: int) -> str:
    return f"precision for type float must be {'at least 1 bit' if digits < 1 else 'less than 54 bits'}"


def _characters(kind: Kind, name: str, args: Sequence[int], position: int | None) -> SqlType:
    if not args:
        return simple_type(kind, 1) if name in ("char", "character") else simple_type(kind)
    label = "char" if kind is Kind.BPCHAR else "varchar"
    if args[0] < 1:
        raise SqlError("22023", f"length for type {label} must be at least 1", position=position)
    if args[0] > 10485760:
        raise SqlError("22023", f"length for type {label} cannot exceed 10485760", position=position)
    return simple_type(kind, args[0])


def _numeric(args: Sequence[int], position: int | None) -> SqlType:
    precision, scale = args[0], args[1] if len(args) > 1 else 0
    if len(args) > 2:
        raise SqlError("22023", "invalid NUMERIC type modifier", position=position)
    if not 1 <= precision <= 1000:
        raise SqlError("22023", f"NUMERIC precision {precision} must be between 1 and 1000", position=position)
    if not -1000 <= scale <= 1000:
        raise SqlError("22023", f"NUMERIC scale {scale} must be between -1000 and 1000", position=position)
    return simple_type(Kind.NUMERIC, precision, scale)
