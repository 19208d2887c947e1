"""The functions that information_schema's views are made of in PostgreSQL; clients call them over pg_attribute.

A type's modifier is that of pg_attribute, -1 for none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import INT4, OID, TEXT, Kind, SqlType
from planner.expr.functions.table import CallSite, per_value
from storage.types.type_names import format_type, type_from_oid, type_oid

_RECORD: Final = SqlType(Kind.RECORD)
_ANY_LENGTH: Final = 1 << 30
_UTF8_LENGTH: Final = 4


def _oids(*kinds: Kind) -> frozenset[int]:
    return frozenset(type_oid(SqlType(kind)) for kind in kinds)


_STRINGS: Final = _oids(Kind.BPCHAR, Kind.VARCHAR)
_BITS: Final = _oids(Kind.BIT, Kind.VARBIT)
_TEXT: Final = _oids(Kind.TEXT)
_NUMERIC: Final = _oids(Kind.NUMERIC)
_INTEGERS: Final = _oids(Kind.INT2, Kind.INT4, Kind.INT8)
_BINARY: Final = {**dict(zip((21, 23, 20), (16, 32, 64), strict=True)), 700: 24, 701: 53}
_DATE: Final = _oids(Kind.DATE)
_TIMES: Final = _oids(Kind.TIME, Kind.TIMETZ, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_INTERVAL: Final = _oids(Kind.INTERVAL)
_NO_PRECISION: Final = 0xFFFF


def _of_type(name: str, result: SqlType = INT4) -> Callable[[Callable[[int, int], Any]], Callable[[int, int], Any]]:
    return per_value(name, (OID, INT4), result)


@_of_type("_pg_char_max_length")
def char_max_length(oid: int, modifier: int) -> int | None:
    if modifier == -1:
        return None
    return modifier - 4 if oid in _STRINGS else modifier if oid in _BITS else None


@_of_type("_pg_char_octet_length")
def char_octet_length(oid: int, modifier: int) -> int | None:
    if oid not in _STRINGS | _TEXT:
        return None
    length = char_max_length(oid, modifier)
    return _ANY_LENGTH if modifier == -1 else None if length is None else length * _UTF8_LENGTH


@_of_type("_pg_numeric_precision")
def numeric_precision(oid: int, modifier: int) -> int | None:
    if oid in _NUMERIC:
        return None if modifier == -1 else (modifier - 4) >> 16 & 0xFFFF
    return _BINARY.get(oid)


@_of_type("_pg_numeric_precision_radix")
def numeric_precision_radix(oid: int, modifier: int) -> int | None:
    return 2 if oid in _BINARY else 10 if oid in _NUMERIC else None


@_of_type("_pg_numeric_scale")
def numeric_scale(oid: int, modifier: int) -> int | None:
    if oid in _NUMERIC:
        return None if modifier == -1 else (modifier - 4) & 0xFFFF
    return 0 if oid in _INTEGERS else None


@_of_type("_pg_datetime_precision")
def datetime_precision(oid: int, modifier: int) -> int | None:
    if oid in _DATE:
        return 0
    if oid in _TIMES:
        return 6 if modifier < 0 else modifier
    if oid in _INTERVAL:
        return 6 if modifier < 0 or modifier & 0xFFFF == _NO_PRECISION else modifier & 0xFFFF
    return None


@_of_type("_pg_interval_type", TEXT)
def interval_type(oid: int, modifier: int) -> str | None:
    """The fields that an interval is restricted to: ``YEAR TO MONTH``."""
    type_ = type_from_oid(oid, modifier) if oid in _INTERVAL else None
    shown = "" if type_ is None else format_type(type_, True).removeprefix("interval").strip("()0123456789 ")
    return shown.upper() or None


def _field(type_: SqlType, value: tuple[Any, ...], name: str) -> Any:
    names = [field for field, _ in type_.fields]
    if name not in names:
        raise SqlError("42703", f'column "{name}" not found in data type {format_type(type_)}')
    return value[names.index(name)]


def _true(name: str, result: SqlType, of_domain: str, of_column: str) -> None:
    """What a column's type is, or that of its domain: over rows of pg_attribute and of pg_type."""

    def found(site: CallSite, column: tuple[Any, ...], type_: tuple[Any, ...]) -> int:
        domain = _field(site.args[1], type_, "typtype") == "d"
        value: int = (
            _field(site.args[1], type_, of_domain) if domain else _field(site.args[0], column, of_column)
        )  # fmt: skip
        return value

    per_value(name, (_RECORD, _RECORD), result, needs_site=True)(found)


_true("_pg_truetypid", OID, "typbasetype", "atttypid")
_true("_pg_truetypmod", INT4, "typtypmod", "atttypmod")
