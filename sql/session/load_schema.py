"""The columns of a new table for files, and EXPLAIN of a load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ivm.errors import SqlError
from sql.catalog.catalog import TableColumn
from sql.session.load_source import COLUMNAR, costs_of, load_columns, location_of, source_of, text_format
from sql.statements.statements import CopyFormat, CopyFrom, CopyOptions, CreateTableFrom
from storage.load.columnar import ColumnarSource
from storage.load.columns import alike
from storage.load.engine import choose_engine, shown_bytes
from storage.load.infer import FoundColumn, columns_of_arrow, columns_of_text
from storage.load.paths import LocalFiles
from storage.outbound import Reach
from storage.passwords import hide_passwords
from storage.types.text_style import TextStyle
from storage.types.type_names import format_type


def local_columns(options: CopyOptions, location: LocalFiles, style: TextStyle) -> list[FoundColumn]:
    """All columns of the files, by the files' own names. Raises the errors of reading them."""
    if options.format in COLUMNAR:
        return columns_of_arrow(location, COLUMNAR[options.format], style)
    return columns_of_text(location, text_format(options, (), (), style), style)


def table_columns(statement: CreateTableFrom, found: Sequence[FoundColumn]) -> tuple[TableColumn, ...]:
    """The columns of a new table: those of the files, or those that MAPPING names. Raises 42703, and 0A000 for a type
    without a counterpart."""
    options = statement.options
    if not options.mapping:
        names = [c.name for c in found]
        if options.format is CopyFormat.JDBC and all(name == name.upper() for name in names):
            names = [name.lower() for name in names]  # Spark folds names this way; ours are folded so
        return tuple(_table_column(name, c) for name, c in zip(names, found, strict=True))
    numbered = options.format in (CopyFormat.CSV, CopyFormat.TEXT) and not options.header
    by_name = {str(i + 1) if numbered and c.what == "text" else c.name: c for i, c in enumerate(found)}
    chosen: list[TableColumn] = []
    for name, column in options.mapping:
        known = alike(list(by_name), name) if options.format is CopyFormat.JDBC else name
        if known not in by_name:
            detail, shown = f"The columns are {', '.join(by_name)}.", hide_passwords(statement.path)
            raise SqlError("42703", f'there is no column "{name}" in "{shown}"', detail)
        chosen.append(_table_column(column, by_name[known]))
    return tuple(chosen)


def _table_column(name: str, found: FoundColumn) -> TableColumn:
    if found.type is None:
        message = f'column "{found.name}" is of type {found.what}, for which there is no type here'
        raise SqlError("0A000", message, hint="Leave it out: CREATE TABLE ... WITH (MAPPING (other AS other, ...)).")
    return TableColumn(name, found.type, found.nullable)


def explain_load(statement: CopyFrom, reach: Reach, style: TextStyle, cores: int) -> list[str]:
    """The lines of EXPLAIN: which engine and why, what is read, and where each column comes from. ``cores``: Spark's.
    Raises the errors of the load."""
    assert statement.path is not None
    location = location_of(statement.path, statement.options.format, reach)
    choice = choose_engine(statement.options.engine, location, costs_of(statement.options.format), cores)
    lines = [f"Load into {statement.table.name}", f"  engine: {'spark' if choice.spark else 'local'} ({choice.reason})"]
    if isinstance(location, LocalFiles):
        count = len(location.files)
        files = f"{count} file{'s' * (count != 1)} of {statement.options.format.value}"
        source = source_of(statement, location, style)
        rows = source.check() if isinstance(source, ColumnarSource) else None
        known = "rows unknown before they are read" if rows is None else f"{rows} rows"
        lines.append(f"  input: {files}, {shown_bytes(location.size)}, {known}")
        lines += _columns(statement, local_columns(statement.options, location, style))
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
            yield line + ("its default" if column.defaulted else "NULL")
        elif (there := of_file.get(given.source)) is not None and (there.what == "folder" or not of_lines):
            yield line + f"{given.source} ({there.what})"
        elif of_lines and not (options.mapping and options.header):
            yield line + f"field {given.found or fields.index(given) + 1}"
        else:
            yield line + given.source
