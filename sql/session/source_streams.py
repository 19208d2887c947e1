"""Turns a source's definition into what Spark reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ivm.errors import SqlError
from sql.catalog.connection import Connection
from sql.pgwire.file_formats import CsvFormat
from sql.session.ingest import IngestTarget
from sql.session.load_source import COLUMNAR
from sql.statements.statements import CopyFormat, CopyOptions
from storage.load.columnar import ColumnarFormat
from storage.load.jdbc import check_url
from storage.load.jdbc_url import check_driver
from storage.load.json_rows import JsonFormat
from storage.load.paths import resolve_path
from storage.load.text import TextFormat
from storage.outbound import Reach, places
from storage.streams.files import FilesDecoder
from storage.streams.jdbc import JdbcPoll
from storage.streams.json_rows import JsonRows
from storage.streams.kafka_properties import KAFKA_PORT, check_property
from storage.streams.query import Stream
from storage.streams.systems import FilesStream, KafkaStream, RateStream, kafka_options

MOST_FILES: Final = 1000


def stream_of(target: IngestTarget, reach: Reach) -> Stream:
    """The stream that a source reads. Raises 42501, 58P01, 42809."""
    connection, folders = target.connection, reach.folders
    match connection.system:
        case "files":
            folder = source_folder(connection, folders)
            name = _text(connection, "format").lower()
            allowed = tuple(path.resolve() for path in folders)
            decoder = FilesDecoder(file_format(connection, target.rows), target.table.name, allowed, target.rows)
            return FilesStream(folder, f".{name}", decoder, _number(connection, "max_files") or MOST_FILES)
        case "kafka":
            check_kafka(connection, reach)
            given = {name: value for name, value in connection.options if isinstance(value, str)}
            return KafkaStream(kafka_options(given, _number(connection, "max_offsets")), target.rows)
        case _:
            return RateStream(target.rows, _number(connection, "rows_per_second") or 1)


def file_format(connection: Connection, rows: JsonRows) -> ColumnarFormat | TextFormat:
    """The format in which COPY reads such files; csv with a header, columns by name."""
    format_ = CopyFormat(_text(connection, "format").lower())
    if format_ in COLUMNAR:
        return COLUMNAR[format_]
    if format_ is CopyFormat.JSON:
        return JsonFormat(ignore_extra=rows.listed)
    header, delimiter = connection.option("header") is True, str(connection.option("delimiter") or ",")
    options = CopyOptions(format_, delimiter, "", header)
    return CsvFormat(options, tuple(c.name for c in rows.columns), header, exact=not rows.listed)


def poll_of(target: IngestTarget, reach: Reach) -> JdbcPoll:
    """The query that a source FROM JDBC polls. Raises the errors of ``check_url``."""
    connection = target.connection
    url = check_database(connection, reach)
    options = {"url": url, "dbtable": _text(connection, "table"), "preferTimestampNTZ": "true"}
    for name in ("driver", "user", "password"):
        value = connection.option(name)
        if isinstance(value, str):
            options[name] = value
    by = connection.option("poll")
    return JdbcPoll(tuple(options.items()), target.rows, by if isinstance(by, str) else connection.key[0])


def check_database(connection: Connection, reach: Reach) -> str:
    """The URL of a source FROM JDBC. Raises what ``check_url`` does, and 42501 for its driver."""
    driver = connection.option("driver")
    check_driver(driver if isinstance(driver, str) else None)
    return check_url(_text(connection, "url"), reach)


def check_kafka(connection: Connection, reach: Reach) -> None:
    """Raises 42501 for a broker that may not be reached, and for a property that Kafka's client may not have."""
    brokers = _text(connection, "brokers")
    reach.hosts.check(places(brokers, KAFKA_PORT), brokers)
    for name, value in connection.options:
        if name.startswith("kafka."):
            check_property(name.removeprefix("kafka."), value if isinstance(value, str) else "")


def source_folder(connection: Connection, folders: Sequence[Path]) -> Path:
    """The folder that a source FROM FILES watches. Raises 42501, 58P01, 42809."""
    path = resolve_path(_text(connection, "path"), folders)
    if not path.is_dir():
        raise SqlError("42809", f'"{path}" is not a folder', hint="A source takes every new file in a folder.")
    return path


def _text(connection: Connection, name: str) -> str:
    value = connection.option(name)
    assert isinstance(value, str), "checked when the source was made"
    return value


def _number(connection: Connection, name: str) -> int | None:
    value = connection.option(name)
    return int(value) if isinstance(value, str) else None
