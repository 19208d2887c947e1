"""What a table for files looks like, and what EXPLAIN says of a load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ivm.errors import SqlError
from sql.catalog.catalog import TableColumn
from sql.session.load_source import COLUMNAR, load_columns, location_of, source_of, text_format
from sql.statements.statements import CopyFormat, CopyFrom, CopyOptions, CreateTableFrom
from storage.load.columnar import ColumnarSource
from storage.load.engine import choose_engine, shown_bytes
from storage.load.infer import FoundColumn, columns_of_arrow, columns_of_text
from storage.load.paths import LocalFiles, Location
from storage.text_style import TextStyle
from storage.type_names import format_type


def found_columns(options: CopyOptions, location: Location, style: TextStyle) -> list[FoundColumn]:
    """The columns of the files, all of them, by the files' own names. Raises what reading them raises, and 0A000."""
    if not isinstance(location, LocalFiles):
        hint = "Create the table, and COPY into it."
        raise SqlError("0A000", f'the columns of "{location.uri}" are not known here', hint=hint)
    if options.format in COLUMNAR:
        return columns_of_arrow(location, COLUMNAR[options.format], style)
    return columns_of_text(location, text_format(options, (), (), style), style)


def table_columns(statement: CreateTableFrom, folders: tuple[Path, ...], style: TextStyle) -> tuple[TableColumn, ...]:
    """The columns of a new table: those of the files, or those that MAPPING names. 42703: a file has no such column."""
    options = statement.options
    found = found_columns(options, location_of(statement.path, options.format, folders), style)
    if not options.mapping:
        return tuple(TableColumn(c.name, c.type, c.nullable) for c in found)
    numbered = options.format in (CopyFormat.CSV, CopyFormat.TEXT) and not options.header
    by_name = {str(i + 1) if numbered and c.what == "text" else c.name: c for i, c in enumerate(found)}
    for name, _ in options.mapping:
        if name not in by_name:
            detail = f"Their columns are {', '.join(by_name)}."
            raise SqlError("42703", f'the files have no column "{name}"', detail)
    pairs = ((column, by_name[name]) for name, column in options.mapping)
    return tuple(TableColumn(column, found_.type, found_.nullable) for column, found_ in pairs)


def explain_load(statement: CopyFrom, folders: tuple[Path, ...], style: TextStyle) -> list[str]:
    """The engine and why, what there is to read, and where each column comes from. Raises what the load would."""
    assert statement.path is not None
    location = location_of(statement.path, statement.options.format, folders)
    choice = choose_engine(statement.options.engine, location)
    lines = [f"Load into {statement.table.name}", f"  engine: {'spark' if choice.spark else 'local'} ({choice.reason})"]
    if isinstance(location, LocalFiles):
        count = len(location.files)
        files = f"{count} file{'s' * (count != 1)} of {statement.options.format.value}"
        source = source_of(statement, location, style)
        rows = source.check() if isinstance(source, ColumnarSource) else None
        known = "rows unknown before they are read" if rows is None else f"{rows} rows"
        lines.append(f"  input: {files}, {shown_bytes(location.size)}, {known}")
        lines += _columns(statement, found_columns(statement.options, location, style))
    return lines


def _columns(statement: CopyFrom, found: list[FoundColumn]) -> Iterator[str]:
    """A line for each column of the table: its type, and what fills it."""
    options, columns = statement.options, load_columns(statement)
    of_lines = options.format in (CopyFormat.CSV, CopyFormat.TEXT)
    of_file = {c.name: c for c in found}
    fields = [c for c in columns if of_file.get(c.source, FoundColumn("", c.type, True, "")).what != "folder"]
    filled = {c.name: c for c in columns}
    for column in statement.table.columns:
        given = filled.get(column.name)
        line = f"  {column.name} {format_type(column.type)} <- "
        if given is None:
            yield line + ("NULL" if column.default is None and column.generated is None else "its default")
        elif (there := of_file.get(given.source)) is not None and (there.what == "folder" or not of_lines):
            yield line + f"{given.source} ({there.what})"
        elif of_lines and not (options.mapping and options.header):
            yield line + f"field {given.found or fields.index(given) + 1}"
        else:
            yield line + given.source
