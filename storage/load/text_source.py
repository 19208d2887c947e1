"""The ``storage.load.source.LoadSource`` of line-based files, read in this process or by Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from storage.dictionary import Dictionary
from storage.load.compression import chunks
from storage.load.rejects import Rejects
from storage.load.source import ColumnBlock, SourceDecode
from storage.load.text import TextColumns, TextFiles, TextStart, last_newline
from storage.load.text_spark import frames


class TextSource(TextFiles):
    """Line-based files as a source of rows."""

    __slots__ = ()

    def check(self) -> None:
        """A no-op: opens no file. The number of rows is unknown until the end."""

    def blocks(self, dictionary: Dictionary, rejects: Rejects | None = None) -> Iterator[ColumnBlock]:
        if self.remote is not None:
            raise self.remote.not_here()
        filled = TextColumns(self.columns, self.partitions)
        for path in self.files:
            first, pieces = _opened(path)
            if first is None:
                continue
            fields = self.format.fields(first, filled.of_file, path.name)
            if rejects is not None:
                rejects.file = str(path)
            parser = self.format.parser(TextStart(self.label(path.name), fields), dictionary, rejects)
            yield from filled.blocks(parser, fields, pieces, str(path), dictionary)

    def frames(self, session: Any, rejecting: bool = False) -> Sequence[tuple[Any, SourceDecode]]:
        return frames(session, self)


def _opened(path: Path) -> tuple[bytes | None, Iterator[bytes]]:
    """A file's first line, as far as the first chunk has it, and its chunks. None if the file is empty."""
    pieces = without_last_newline(chunks(path))
    first = next(pieces, None)
    return (None, pieces) if first is None else (first.partition(b"\n")[0], chain([first], pieces))


def without_last_newline(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A file's bytes with the last newline as ``last_newline`` has it, since Spark's lines do not tell whether it was
    there."""
    held = end = b""
    newlines = returns = False
    for piece in pieces:
        if held:
            yield held
            newlines, returns, end = newlines or b"\n" in held, returns or b"\r" in held, held[-1:]
        held = piece
    if held:
        body = held.removesuffix(b"\n")
        only = not newlines and b"\n" not in body
        line = (end + body).rpartition(b"\n")[2]
        yield body + last_newline(line, only and (returns or b"\r" in body[:-1]))
