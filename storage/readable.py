"""Typed views in the store's file: SQL that decodes words into dates, numbers and text, for people.

They are for reading the file of a stopped server, or a backup, with any DuckDB client; the server never reads them.
``readable.names`` maps a view's generated names to relation and columns. Kinds whose bytes DuckDB cannot easily read
(intervals, arrays, unconstrained numerics) show their raw word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ivm.words import ColumnType, Kind, Schema, Storage, null_words, row_width
from storage.stored import StoredRelation

_EPOCH_2000: Final = 946_684_800_000_000
_INTEGERS: Final = {Kind.INT2: "SMALLINT", Kind.INT4: "INTEGER", Kind.INT8: "BIGINT"}
_TEXTS: Final = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME, Kind.UNKNOWN})


def readable_view(relation: int, schema: Schema) -> str:
    """CREATE VIEW readable.r<relation> with columns c0, c1, …: the rows at the high water, duplicates included."""
    words = [f"w{i}" for i in range(row_width(schema))]
    listed = "".join(f"{word}, " for word in words)
    grouped = f"GROUP BY {', '.join(words)}" if words else ""
    columns = ", ".join(f"{_column(i, column, schema)} AS c{i}" for i, column in enumerate(schema)) or "NULL AS empty"
    joins = " ".join(
        f"LEFT JOIN main.dictionary d{i} ON d{i}.id = w{i}" for i, column in enumerate(schema) if _interned(column)
    )
    return (
        f"CREATE VIEW readable.r{relation} AS SELECT {columns} FROM (SELECT {listed} unnest(range(count)) FROM "
        f"(SELECT {listed} sum(diff)::BIGINT AS count FROM (SELECT * FROM main.base_{relation} UNION ALL "
        f"SELECT {listed} diff FROM main.updates_{relation}) {grouped})) {joins}"
    )


def _interned(column: ColumnType) -> bool:
    return column.type.kind in _TEXTS or column.type.kind is Kind.BYTEA


def _column(i: int, column: ColumnType, schema: Schema) -> str:
    value = _value(i, column)
    if not column.nullable:
        return value
    null_word = f"w{len(schema) + i // 64}"
    assert null_words(schema), "a nullable column has a null bit"
    return f"CASE WHEN ({null_word} >> {i % 64}) & 1 = 1 THEN NULL ELSE {value} END"


def _value(i: int, column: ColumnType) -> str:
    word, type_ = f"w{i}", column.type
    if type_.kind in _INTEGERS:
        return f"{word}::{_INTEGERS[type_.kind]}"
    if _interned(column):
        return f"decode(d{i}.value)" if type_.kind in _TEXTS else f"d{i}.value"
    if type_.kind in (Kind.FLOAT4, Kind.FLOAT8):
        return _float(word)
    if type_.kind is Kind.NUMERIC and type_.storage is Storage.DIRECT:
        scale = type_.scale or 0
        unit = f"1e-{scale}" if scale else "1"
        finite = f"nullif({word}, 9223372036854775807)"  # NaN, which DuckDB's decimals lack, shows as NULL
        return f"{finite}::DECIMAL(18,0) * '{unit}'::DECIMAL({scale + 1},{scale})"
    match type_.kind:
        case Kind.BOOL:
            return f"{word} <> 0"
        case Kind.DATE:
            return _unless_infinite(word, f"DATE '2000-01-01' + {_finite(word)}::INTEGER", "DATE")
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:  # in UTC, as a timestamp: DuckDB's timestamptz needs an extension
            return _unless_infinite(word, f"make_timestamp({_finite(word)} + {_EPOCH_2000})", "TIMESTAMP")
        case Kind.TIME:
            return f"TIME '00:00:00' + to_microseconds({word})"
        case _:
            return word


def _finite(word: str) -> str:
    return f"(CASE WHEN {word} IN (-9223372036854775808, 9223372036854775807) THEN 0 ELSE {word} END)"


def _unless_infinite(word: str, value: str, type_: str) -> str:
    return (
        f"CASE {word} WHEN -9223372036854775808 THEN '-infinity'::{type_} "
        f"WHEN 9223372036854775807 THEN 'infinity'::{type_} ELSE {value} END"
    )


def _float(word: str) -> str:
    """A double from its order-preserving word; negative ones have their other 63 bits flipped."""
    bits = f"(CASE WHEN {word} < 0 THEN xor({word}, 9223372036854775807) ELSE {word} END)"
    exponent = f"(({bits} >> 52) & 2047)"
    mantissa = f"({bits} & 4503599627370495)"
    sign = f"(CASE WHEN {word} < 0 THEN -1.0::DOUBLE ELSE 1.0::DOUBLE END)"
    return (
        f"CASE WHEN {exponent} = 2047 AND {mantissa} <> 0 THEN 'nan'::DOUBLE "
        f"WHEN {exponent} = 2047 THEN {sign} * 'infinity'::DOUBLE "
        f"WHEN {exponent} = 0 THEN {sign} * ({mantissa}::DOUBLE * pow(2.0::DOUBLE, -1074)) "
        f"ELSE {sign} * ((4503599627370496 + {mantissa})::DOUBLE * pow(2.0::DOUBLE, {exponent} - 1075)) END"
    )


def label(execute: Callable[..., object], relation: StoredRelation) -> None:
    """Create a relation's typed view, and note its names. Cost: two statements, however many columns."""
    execute(readable_view(relation.id, relation.schema))
    names = relation.column_names or ("",) * len(relation.schema)
    columns = [f"c{i}" for i in range(len(names))]
    noted = "INSERT INTO readable.names SELECT ?, ?, unnest(?::VARCHAR[]), unnest(?::VARCHAR[])"
    execute(noted, [relation.id, relation.name, columns, list(names)])
