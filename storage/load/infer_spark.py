"""Infers the columns of sources that only Spark reads: from its reader's schema, or for lines from a sample of
values."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any, Final

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
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
)  # fmt: skip
from storage.cancel import Cancel
from storage.load.columnar import ColumnarSource
from storage.load.infer import SAMPLE_BYTES, SAMPLE_FILES, FoundColumn, array_of, columns_of_samples, with_partitions
from storage.load.jdbc import JdbcSource
from storage.load.paths import RemoteFiles, local_path, spark_uri
from storage.load.source import LoadSource
from storage.load.text_source import TextSource
from storage.spark.errors import spark_error
from storage.spark.session import SparkSession, tagged
from storage.types.text_style import TextStyle

SAMPLE_LINES: Final = 10_000
"""How many lines of a file are sampled."""
_TYPES: Final = {
    "boolean": BOOL, "tinyint": INT2, "smallint": INT2, "int": INT4, "bigint": INT8, "float": FLOAT4,
    "double": FLOAT8, "string": TEXT, "binary": BYTEA, "date": DATE, "timestamp": TIMESTAMPTZ,
    "timestamp_ntz": TIMESTAMP, "void": TEXT,
}  # fmt: skip


def columns_by_spark(spark: SparkSession, source: LoadSource, style: TextStyle, cancel: Cancel) -> list[FoundColumn]:
    """All columns of a remote source. Raises 22P04 if there are none, 57014, 58000."""
    with spark as session, tagged(session, f"freshet-{secrets.token_hex(8)}", cancel):
        try:
            match source:
                case JdbcSource():
                    return _columns_of_frame(source.frame(session))
                case ColumnarSource(remote=RemoteFiles() as remote):
                    frame = source.frame(session, [remote.uri])
                    paths = [remote.below(local_path(path)) for path in frame.inputFiles()]
                    return with_partitions(_columns_of_frame(frame), paths, style)
                case TextSource(remote=RemoteFiles() as remote):
                    files = sorted(session.read.text(remote.uri).inputFiles())
                    samples = (_start_of(session, file) for file in files[:SAMPLE_FILES])
                    paths = [remote.below(local_path(path)) for path in files]
                    return columns_of_samples(samples, source.format, remote.shown, paths, style)
                case _:
                    raise AssertionError("what is here is inferred here")
        except SqlError:
            raise
        except Exception as error:
            raise spark_error(error) from error


def _columns_of_frame(frame: Any) -> list[FoundColumn]:
    fields = [(field.name, field.dataType.simpleString(), field.nullable) for field in frame.schema]
    return [FoundColumn(name, sql_type(type_), nullable, type_) for name, type_, nullable in fields]


def sql_type(found: str) -> SqlType | None:
    """The SQL type for a Spark type, given as Spark prints it; None if there is none."""
    if found.startswith(("array<array<", "array<struct<", "array<map<", "struct<", "map<")):
        return SqlType(Kind.JSONB)
    if found.startswith("array<"):
        return array_of(sql_type(found.removeprefix("array<").removesuffix(">")))
    if found.startswith("interval day"):
        return INTERVAL
    plain, _, size = found.partition("(")
    if plain == "decimal":
        precision, scale = map(int, size.removesuffix(")").split(","))
        return SqlType(Kind.NUMERIC, precision, scale)
    return TEXT if plain in ("char", "varchar") else _TYPES.get(found)


def _start_of(session: Any, file: str) -> tuple[bytes, bool]:
    """A file's first lines, and whether they are the whole file."""
    text = session.read.option("lineSep", "\n").text(spark_uri(file))
    lines = [bytes(row[0]) for row in text.select(text["value"].cast("binary")).limit(SAMPLE_LINES + 1).collect()]
    kept = list(_first(lines[:SAMPLE_LINES]))
    return b"".join(line + b"\n" for line in kept), len(kept) == len(lines)


def _first(lines: list[bytes]) -> Iterator[bytes]:
    size = 0
    for line in lines:
        yield line
        size += len(line) + 1
        if size >= SAMPLE_BYTES:
            return
