"""Databases by Spark's JDBC reader: a table or a query, read whole or partitioned by ranges of a column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ivm.errors import SqlError
from storage.dictionary import Dictionary
from storage.load.columnar import ColumnDecoder, named_columns
from storage.load.columns import LoadColumn, alike, match_names
from storage.load.jdbc_url import server_url
from storage.load.paths import resolve_path
from storage.load.rejects import Rejects
from storage.load.source import ColumnBlock, SourceDecode
from storage.outbound import Reach
from storage.passwords import hide_passwords

_SERVERS: Final = ("postgresql", "mysql", "mariadb", "sqlserver", "oracle", "db2")
_DERBY: Final = re.compile(r"jdbc:derby:(?://[^/;]+/|(?P<folder>[^;:/][^;:]*|/[^/;][^;]*)$)", re.IGNORECASE)


def check_url(url: str, reach: Reach) -> str:
    """Validates the URL of a database server that may be reached, or of a Derby folder, which it makes absolute.

    Raises 22023 for what is not a JDBC URL, 0A000 for other databases (many can be made to read any file), 42501,
    58P01.
    """
    scheme, shown = re.match(r"jdbc:([a-z0-9]+):", url, re.IGNORECASE), hide_passwords(url)
    if scheme is None:
        raise SqlError(
            "22023", f'"{shown}" is no JDBC URL', hint="Write jdbc:postgresql://HOST/DATABASE, for instance."
        )
    if scheme[1].lower() in _SERVERS:
        reach.hosts.check(server_url(url).places, shown)
        return url
    derby = _DERBY.match(url)
    if derby is None:
        known = ", ".join(("derby", *_SERVERS))
        raise SqlError("0A000", f'no database is read by "{shown}"', hint=f"Databases are: {known}; Derby's folder "
                       "is named without attributes.")  # fmt: skip
    if derby["folder"] is None:
        reach.hosts.check(server_url(url).places, shown)
        return url
    return f"jdbc:derby:{resolve_path(derby['folder'], reach.folders)}"


def check_folder(session: Any, url: str) -> None:
    """Raises 0A000 for a Derby folder if executors run in JVMs other than the driver's: only one JVM can open it."""
    derby, master = _DERBY.match(url), str(session.conf.get("spark.master"))
    if derby is not None and derby["folder"] is not None and not master.startswith("local"):
        raise SqlError(
            "0A000", f"a folder of Derby cannot be read by {master}",
            "Only one Java can open it, and the executors are others.",
            "Have Derby's network server open it and write jdbc:derby://HOST/…, or start this server with "
            "--spark local[*].",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class JdbcSource:
    """A table or query. ``options``: named as for Spark's reader. Columns match by name, ignoring case if
    unambiguous."""

    url: str
    options: Mapping[str, str]
    columns: tuple[LoadColumn, ...]
    ignore_extra: bool = False

    def check(self) -> None:
        """A no-op: the database is not queried."""

    def blocks(self, dictionary: Dictionary, rejects: Rejects | None = None) -> Iterator[ColumnBlock]:
        raise SqlError("0A000", "a database is read by Spark only")

    def frames(self, session: Any, rejecting: bool = False) -> Sequence[tuple[Any, SourceDecode]]:
        """One frame, partitioned as the options say. Raises 42703, 0A000."""
        frame = self.frame(session)
        columns = tuple(_named(column, frame.columns) for column in self.columns)
        match_names(columns, frame.columns, "the database's answer", self.ignore_extra)
        return [(named_columns(frame, columns, paths=False), ColumnDecoder(self.columns))]

    def frame(self, session: Any) -> Any:
        """The database's result, with its own columns. Raises 0A000 as ``check_folder``."""
        check_folder(session, self.url)
        reader = session.read.format("jdbc").option("url", self.url).option("preferTimestampNTZ", "true")
        return reader.options(**self.options).load()


def _named(column: LoadColumn, names: Sequence[str]) -> LoadColumn:
    found = alike(names, column.source)
    return column if found in (None, column.source) else replace(column, found=found)
