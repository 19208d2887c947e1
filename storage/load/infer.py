"""Infers a table's columns from files: types from the file's schema, or from the form of its text.

Text is read by our own input functions, but only if its form is unambiguous: 2024-02-29 is a date, 20240229 a bigint,
007 is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from ivm.errors import SqlError
from ivm.words import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Kind,
    SqlType,
)  # fmt: skip
from storage.load.columnar import ColumnarFormat, opened, schema_of
from storage.load.compression import chunks
from storage.load.nested import is_document, is_list
from storage.load.partitions import partition_keys, partition_values
from storage.load.paths import LocalFiles
from storage.load.text import SampledValue, TextFormat
from storage.types.text import parse_datum
from storage.types.text_style import TextStyle

SAMPLE_BYTES: Final = 1 << 20
"""How many bytes of a file are sampled; ``SAMPLE_FILES`` limits how many files."""
SAMPLE_FILES: Final = 16
_JSONB: Final = SqlType(Kind.JSONB)
_DAY: Final = r"\d{4,}-\d\d-\d\d"
_MOMENT: Final = _DAY + r"[ T]\d\d:\d\d(:\d\d(\.\d+)?)?"
_FORMS: Final = tuple(
    (type_, re.compile(form, re.IGNORECASE | re.ASCII))
    for type_, form in (
        (BOOL, r"t|f|true|false"),
        (INT8, r"-?(0|[1-9]\d*)"),
        (NUMERIC, r"-?(0|[1-9]\d*)?\.?\d+"),
        (FLOAT8, r"-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|-?infinity|nan"),
        (DATE, _DAY),
        (TIMESTAMP, _MOMENT),
        (TIMESTAMPTZ, _MOMENT + r" ?(z|[+-]\d\d(:?\d\d)?)"),
        (UUID, r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    )
)
_LEADING_ZERO: Final = re.compile(r"-?0\d")
_NUMBERS: Final = (INT8, NUMERIC, FLOAT8)


@dataclass(frozen=True, slots=True)
class FoundColumn:
    """A column found in files. ``type``: None if we have none for it. ``nullable``: false only if the files declare it
    never NULL. ``what``: its type in the file, as messages and EXPLAIN show it; "text" in text files, "folder" for a
    partition column."""

    name: str
    type: SqlType | None
    nullable: bool
    what: str


def columns_of_text(location: LocalFiles, format_: TextFormat, style: TextStyle) -> list[FoundColumn]:
    """The columns of text files, inferred from a sample of their values. Raises 22P04 for files without columns, and
    what reading raises."""
    starts = (_start_of(path) for path in location.files[:SAMPLE_FILES])
    return columns_of_samples(starts, format_, location.files[0].name, location.relative(), style)


def columns_of_samples(
    starts: Iterable[tuple[bytes, bool]], format_: TextFormat, name: str, paths: Sequence[str], style: TextStyle
) -> list[FoundColumn]:
    """Infers columns from samples. ``starts``: the first bytes of files, each with whether they are the whole file.
    ``name``: what messages call the files. ``paths``: of all files, relative to the root. Raises 22P04."""
    samples: dict[str, list[SampledValue | None]] = {}
    for data, whole in starts:
        for column, values in format_.sample(data, whole).items():
            samples.setdefault(column, []).extend(values)
    if not samples:
        raise SqlError("22P04", f'"{name}" has no columns', hint="Its first row is empty.")
    found = [FoundColumn(column, type_of(values, style), True, "text") for column, values in samples.items()]
    return with_partitions(found, paths, style)


def columns_of_arrow(location: LocalFiles, format_: ColumnarFormat, style: TextStyle) -> list[FoundColumn]:
    """The columns of Parquet or ORC files, by the first file's schema."""
    with opened(format_, location.files[0]) as file:
        fields = list(schema_of(file))
    found = [FoundColumn(f.name, sql_type(f.type), f.nullable, str(f.type)) for f in fields]
    return with_partitions(found, location.relative(), style)


def _start_of(path: Path) -> tuple[bytes, bool]:
    """A file's first bytes, and whether they are the whole file."""
    pieces, data = chunks(path), b""
    for piece in pieces:
        data += piece
        if len(data) >= SAMPLE_BYTES:
            return data, next(pieces, None) is None
    return data, True


def with_partitions(found: Sequence[FoundColumn], paths: Sequence[str], style: TextStyle) -> list[FoundColumn]:
    """The columns, followed by the partition columns found in the files' paths."""
    keys = partition_keys(paths)
    values = [partition_values(path) for path in paths] if keys else []
    of_folders = [
        FoundColumn(key, type_of(map(_sampled, (v[key] for v in values)), style), True, "folder") for key in keys
    ]
    return [column for column in found if column.name not in keys] + of_folders


def _sampled(text: str | None) -> SampledValue | None:
    return None if text is None else SampledValue(text)


def type_of(values: Iterable[SampledValue | None], style: TextStyle) -> SqlType:
    """The narrowest type whose form matches all values and whose input function accepts them; text if there are no
    values."""
    present = [value for value in values if value is not None]
    if not present:
        return TEXT
    if any(value.json is not None for value in present):
        return _of_json({value.json for value in present}, present, style)
    return _of_texts([value.text for value in present], style, [type_ for type_, _ in _FORMS])


def _of_json(kinds: set[str | None], values: Sequence[SampledValue], style: TextStyle) -> SqlType:
    """The type of JSON values. JSON itself tells numbers and booleans from strings, so a string is neither, whatever it
    contains."""
    texts = [value.text for value in values]
    match kinds:
        case _ if kinds == {"boolean"}:
            return BOOL
        case _ if kinds == {"number"}:
            return _of_texts(texts, style, _NUMBERS)
        case _ if kinds == {"string"}:
            return _of_texts(texts, style, (DATE, TIMESTAMP, TIMESTAMPTZ, UUID))
        case _ if "nested" in kinds:
            return _JSONB
    return TEXT


def _of_texts(texts: Sequence[str], style: TextStyle, candidates: Sequence[SqlType]) -> SqlType:
    distinct = set(texts)
    for type_, form in _FORMS:
        if type_ in candidates and all(form.fullmatch(text) and _reads(type_, text, style) for text in distinct):
            return type_
    return TEXT


def _reads(type_: SqlType, text: str, style: TextStyle) -> bool:
    if type_ in _NUMBERS and _LEADING_ZERO.match(text):
        return False
    try:
        parse_datum(type_, text, style)
    except SqlError:
        return False
    return True


_PLAIN: Final[dict[pa.DataType, SqlType]] = {
    pa.bool_(): BOOL, pa.int8(): INT2, pa.uint8(): INT2, pa.int16(): INT2, pa.uint16(): INT4, pa.int32(): INT4,
    pa.uint32(): INT8, pa.int64(): INT8, pa.uint64(): SqlType(Kind.NUMERIC, 20, 0), pa.float16(): FLOAT4,
    pa.float32(): FLOAT4, pa.float64(): FLOAT8, pa.string(): TEXT, pa.large_string(): TEXT, pa.string_view(): TEXT,
    pa.binary(): BYTEA, pa.large_binary(): BYTEA, pa.date32(): DATE, pa.date64(): DATE, pa.null(): TEXT,
}  # fmt: skip


def sql_type(found: pa.DataType) -> SqlType | None:
    """The SQL type for an Arrow type: arrays for lists of plain values, jsonb for other nested types. None if there is
    none."""
    types = pa.types
    if types.is_dictionary(found):
        return sql_type(found.value_type)
    if isinstance(found, pa.BaseExtensionType):
        return UUID if found.extension_name == "arrow.uuid" else sql_type(found.storage_type)
    if found in _PLAIN:
        return _PLAIN[found]
    if types.is_decimal(found):
        return SqlType(Kind.NUMERIC, found.precision, found.scale)
    if types.is_timestamp(found):
        return TIMESTAMP if found.tz is None else TIMESTAMPTZ
    if types.is_time(found):
        return TIME
    if types.is_duration(found):
        return INTERVAL
    if is_list(found) and not is_document(found.value_type):
        return array_of(sql_type(found.value_type))
    if is_document(found):
        return _JSONB
    return BYTEA if types.is_fixed_size_binary(found) else None


def array_of(element: SqlType | None) -> SqlType | None:
    """The type of arrays of this element, None if there is none."""
    return None if element is None else SqlType(Kind.ARRAY, element=element)
