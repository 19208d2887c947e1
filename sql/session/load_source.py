"""COPY … FROM 'path': determines what is read, and by which engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sql.pgwire.file_formats import CsvFormat, of_listed
from sql.statements.statements import CopyFormat, CopyFrom, CopyOptions
from storage.load.columnar import ColumnarFormat, ColumnarSource
from storage.load.columns import LoadColumn
from storage.load.compression import COMPRESSED
from storage.load.engine import COLUMNAR as COLUMNAR_COSTS
from storage.load.engine import LINES, Costs
from storage.load.jdbc import JdbcSource, check_url
from storage.load.jdbc_url import check_driver
from storage.load.json_rows import JsonFormat
from storage.load.partitions import Partitions, partition_keys
from storage.load.paths import LocalFiles, Location, RemoteFiles, locate
from storage.load.source import LoadSource
from storage.load.text import TextFormat
from storage.load.text_source import TextSource
from storage.outbound import Reach
from storage.types.text_style import TextStyle

_SUFFIXES: Final = {
    CopyFormat.TEXT: (".txt", ".tsv"),
    CopyFormat.CSV: (".csv",),
    CopyFormat.JSON: (".json", ".jsonl", ".ndjson"),
    CopyFormat.PARQUET: (".parquet",),
    CopyFormat.ORC: (".orc",),
}
COLUMNAR: Final = {CopyFormat.PARQUET: ColumnarFormat.PARQUET, CopyFormat.ORC: ColumnarFormat.ORC}


def location_of(path: str, format_: CopyFormat, reach: Reach) -> Location:
    """The files that a statement names. 42501: outside of --files and --allow-host; 58P01: they do not exist."""
    if format_ is CopyFormat.JDBC:
        return RemoteFiles(check_url(path, reach))
    plain = _SUFFIXES[format_]
    packed = () if format_ in COLUMNAR else tuple(name + end for name in plain for end in COMPRESSED)
    found = locate(path, reach.folders, plain + packed)
    if isinstance(found, RemoteFiles):
        reach.hosts.check_uri(found.uri, found.shown)
    return found


def costs_of(format_: CopyFormat) -> Costs:
    """The engines' costs for files of a format."""
    return COLUMNAR_COSTS if format_ in COLUMNAR else LINES


def load_columns(statement: CopyFrom) -> tuple[LoadColumn, ...]:
    """The columns to fill, with their names in the files."""
    found = {column: name for name, column in statement.options.mapping}
    columns = (statement.table.columns[i] for i in statement.columns)
    return tuple(LoadColumn(c.name, c.type, c.nullable, found.get(c.name)) for c in columns)


def source_of(statement: CopyFrom, location: Location, style: TextStyle) -> LoadSource:
    """The source that the statement reads. 22023: the files' partition columns differ."""
    options, columns = statement.options, load_columns(statement)
    listed = statement.listed or bool(options.mapping)
    if options.format is CopyFormat.JDBC:
        assert isinstance(location, RemoteFiles), "a database's URL"
        check_driver(dict(options.jdbc).get("driver"))
        return JdbcSource(location.uri, dict(options.jdbc), columns, listed)
    remote = location if isinstance(location, RemoteFiles) else None
    files = location.files if isinstance(location, LocalFiles) else ()
    keys = partition_keys(location.relative()) if isinstance(location, LocalFiles) else ()
    partitions = Partitions(keys, style)
    if options.format in COLUMNAR:
        return ColumnarSource(COLUMNAR[options.format], files, columns, listed, partitions, remote=remote)
    names = tuple(column.name for column in columns)
    format_ = text_format(options, statement.columns, names, style, listed)
    return TextSource(statement.table.name, files, columns, format_, partitions, remote)


def text_format(
    options: CopyOptions, positions: tuple[int, ...], names: tuple[str, ...], style: TextStyle, listed: bool = False
) -> TextFormat:
    """A line-based text format. ``positions``: in the table; ``names``: of the load's columns; ``listed``: the
    statement lists its columns, all others are ignored."""
    if options.format is CopyFormat.JSON:
        return JsonFormat(options.array, listed, style)
    return CsvFormat(of_listed(options, positions), names, bool(options.mapping), style)


def for_executors(style: TextStyle) -> TextStyle:
    """The style without the catalog, which executors do not have: they read reg* types as numbers."""
    return replace(style, reg=None)
