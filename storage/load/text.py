"""Line-based formats: CSV, COPY's text format and JSON, whose values are text for our own input functions.

A parser (``RowParser``) is fed a file's bytes in chunks: in this process from the file, on an executor from the lines
that Spark's text reader found. The same bytes give the same rows or the same error in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn, check_nulls
from storage.load.partitions import NO_PARTITIONS, Partitions
from storage.load.paths import RemoteFiles
from storage.load.rejects import Rejects
from storage.load.source import ColumnBlock

Fields = tuple[LoadColumn | None, ...]
"""The fields of a line, in order; None is skipped. For JSON: the columns, in any order."""


@dataclass(frozen=True, slots=True)
class TextStart:
    """Where a parser starts. ``label``: for messages, the table, and the file if there are several.

    ``lines``: the number of preceding lines. ``returns``: whether lines end in \\r\\n, None if no preceding line shows
    it.
    """

    label: str
    fields: Fields
    lines: int = 0
    returns: bool | None = None


class RowParser(Protocol):
    """Bytes, chunked anywhere → rows. Raises SqlError with line and column in its detail."""

    def feed(self, data: bytes) -> None: ...

    def parse(self) -> None:
        """Parses the complete rows received so far."""

    def take(self) -> ColumnBlock:
        """The rows parsed since the last call: one vector per field that is not skipped."""

    def finish(self) -> ColumnBlock:
        """Ends the input and returns the remaining rows."""


class SampledValue(NamedTuple):
    """A value's text. ``json``: for a value of a JSON object, one of boolean, number, string or nested."""

    text: str
    json: str | None = None


class TextFormat(Protocol):
    """A format with its options. It is pickled for executors."""

    @property
    def quote(self) -> str | None:
        """The quote character, inside of which line ends may occur and which is doubled to escape itself. None: values
        contain no line ends. Empty: only the parser can find where a row ends."""

    def fields(self, first: bytes, columns: Sequence[LoadColumn], file: str) -> Fields:
        """A file's fields, given its first line. Raises 42703."""

    def parser(self, start: TextStart, dictionary: Dictionary, rejects: Rejects | None = None) -> RowParser:
        """A parser. ``rejects``: collects bad rows, NULLs in NOT NULL columns included; without it the first bad row is
        an error."""

    def sample(self, data: bytes, whole: bool) -> dict[str, list[SampledValue | None]]:
        """The values in a file's first bytes, by column name, in order. ``whole``: the bytes are the whole file."""


@dataclass(frozen=True, slots=True)
class TextFiles:
    """The files to read and their format. ``table``: its name, for messages. ``remote``: set instead of ``files`` for
    what only Spark reads."""

    table: str
    files: tuple[Path, ...]
    columns: tuple[LoadColumn, ...]
    format: TextFormat
    partitions: Partitions = NO_PARTITIONS
    remote: RemoteFiles | None = None

    def label(self, file: str) -> str:
        """How messages refer to the rows of a file."""
        return self.table if len(self.files) == 1 else f'{self.table}, file "{file}"'


@dataclass(frozen=True, slots=True)
class TextColumns:
    """Combines columns from a parser's rows with those from the file's path."""

    columns: tuple[LoadColumn, ...]
    partitions: Partitions

    @property
    def of_file(self) -> tuple[LoadColumn, ...]:
        return self.partitions.rest(self.columns)

    def blocks(
        self, parser: RowParser, fields: Fields, pieces: Iterable[bytes], path: str, dictionary: Dictionary
    ) -> Iterator[ColumnBlock]:
        """The rows of a file, or of a part of it."""
        for piece in pieces:
            parser.feed(piece)
            parser.parse()
            yield from self._block(parser.take(), fields, path, dictionary)
        yield from self._block(parser.finish(), fields, path, dictionary)

    def _block(self, block: ColumnBlock, fields: Fields, path: str, dictionary: Dictionary) -> Iterator[ColumnBlock]:
        if not block.size:
            return
        given = {c.name: v for c, v in zip((f for f in fields if f is not None), block.vectors, strict=True)}
        for column in self.of_file:
            check_nulls(given[column.name], column)
        yield ColumnBlock(self.partitions.fill(self.columns, given, path, block.size, dictionary), block.size)


def last_newline(line: bytes, returns: bool) -> bytes:
    """The newline to append after a file's last line (Spark does not tell whether the file has it), where it matters.

    It matters after an empty line, which is a row of its own, and after a \\r, which is half of a line end. Not so if
    ``returns``: then rows end in \\r alone, and the whole file is one line. ``line``: the last line, or its last bytes.
    """
    return b"\n" if not line or (line.endswith(b"\r") and not returns) else b""
