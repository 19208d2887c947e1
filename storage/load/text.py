"""Files of lines: CSV, COPY's text format and JSON, whose values are text that our own input functions read.

A file's bytes come in pieces to a parser (``RowParser``): here from the file, on an executor from the lines that
Spark's text reader found. The same bytes give the same rows or the same error in both.
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
from storage.load.source import Block

Fields = tuple[LoadColumn | None, ...]
"""What the fields of a line are, in order; None is passed over. For JSON: the columns, in any order."""


@dataclass(frozen=True, slots=True)
class TextStart:
    """Where a parser begins. ``label``: the table, and the file where there are several, for messages.

    ``lines``: how many stand before. ``returns``: whether lines end in \\r\\n, None where no line before tells it.
    """

    label: str
    fields: Fields
    lines: int = 0
    returns: bool | None = None


class RowParser(Protocol):
    """Bytes cut anywhere → rows. Raises SqlError with the line and the column in its detail."""

    def feed(self, data: bytes) -> None: ...

    def parse(self) -> None:
        """Parses the whole rows that have come."""

    def take(self) -> Block:
        """The rows parsed since the last call, a vector for each field that is not passed over."""

    def finish(self) -> Block:
        """The end of the data: the rows that are left."""


class SampledValue(NamedTuple):
    """A value's text. ``json``: boolean, number, string or nested, for a value of a JSON object."""

    text: str
    json: str | None = None


class TextFormat(Protocol):
    """A format, with its options. It is pickled for executors."""

    @property
    def quote(self) -> str | None:
        """What stands around text that may have line ends in it, twice for itself. None: no line end is inside of a
        value; the empty string: only the parser knows where a row ends."""

    def fields(self, first: bytes, columns: Sequence[LoadColumn], file: str) -> Fields:
        """What a file's fields are, by its first line. Raises 42703."""

    def parser(self, start: TextStart, dictionary: Dictionary, rejects: Rejects | None = None) -> RowParser:
        """``rejects``: takes the bad rows, those with a NULL that a column does not take too; without it the first one
        is an error."""

    def sample(self, data: bytes, whole: bool) -> dict[str, list[SampledValue | None]]:
        """The values of a file's first bytes by the columns' names, in order. ``whole``: they are all of it."""


@dataclass(frozen=True, slots=True)
class TextFiles:
    """The files to read and their format. ``table``: its name, for messages. ``remote``: what only Spark reads,
    instead of ``files``."""

    table: str
    files: tuple[Path, ...]
    columns: tuple[LoadColumn, ...]
    format: TextFormat
    partitions: Partitions = NO_PARTITIONS
    remote: RemoteFiles | None = None

    def label(self, file: str) -> str:
        """What messages call the rows of a file."""
        return self.table if len(self.files) == 1 else f'{self.table}, file "{file}"'


@dataclass(frozen=True, slots=True)
class TextColumns:
    """The load's columns, from a parser's rows and from the path of the file."""

    columns: tuple[LoadColumn, ...]
    partitions: Partitions

    @property
    def of_file(self) -> tuple[LoadColumn, ...]:
        return self.partitions.rest(self.columns)

    def blocks(
        self, parser: RowParser, fields: Fields, pieces: Iterable[bytes], path: str, dictionary: Dictionary
    ) -> Iterator[Block]:
        """A file's rows, or those of a part of it."""
        for piece in pieces:
            parser.feed(piece)
            parser.parse()
            yield from self._block(parser.take(), fields, path, dictionary)
        yield from self._block(parser.finish(), fields, path, dictionary)

    def _block(self, block: Block, fields: Fields, path: str, dictionary: Dictionary) -> Iterator[Block]:
        if not block.size:
            return
        given = {c.name: v for c, v in zip((f for f in fields if f is not None), block.vectors, strict=True)}
        for column in self.of_file:
            check_nulls(given[column.name], column)
        yield Block(self.partitions.fill(self.columns, given, path, block.size, dictionary), block.size)


def last_newline(line: bytes, returns: bool) -> bytes:
    """The newline after a file's last line, which may or may not be in the file: only where it tells something.

    An empty line is a row of its own. A \\r before it is half of a line end, unless ``returns``: lines end in \\r
    alone, so that the whole file is one line with others of them inside. ``line``: its last bytes do.
    """
    return b"\n" if not line or (line.endswith(b"\r") and not returns) else b""
