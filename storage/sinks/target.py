"""Where a sink writes: a folder on this machine (``folder``), or any storage that Spark can write (``spark``)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

from ivm.errors import SqlError
from storage.dictionary import Dictionary
from storage.sinks.envelope import SinkField, SinkFields, SinkLayout
from storage.sinks.manifest import Entry, SinkFile
from storage.stored import History

PART_ROWS: Final = 1 << 16
FILE_ROWS: Final = 1 << 20


class SinkFormat(Enum):
    """The format of a sink's files."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    CSV = "csv"


class SinkTarget(Protocol):
    """A sink's folder. Every method may raise SqlError. What was written counts only after ``commit``."""

    def open(self, owner: str) -> Entry | None:
        """The last entry, None if there is none; deletes what a crash has left behind. 55006: it belongs to another
        sink."""
        ...

    def write(self, stem: str, layout: SinkLayout, parts: Iterator[OutputBlock]) -> tuple[SinkFile, ...]:
        """Writes files of all the parts, named after ``stem``; none if there are no rows."""
        ...

    def commit(self, entry: Entry) -> None:
        """Makes an entry and its files count, atomically and once. 55006: another entry has this number."""
        ...


class OutputBlock:
    """Some changes, in order, and their output."""

    def __init__(self, changes: History, fields: SinkFields, dictionary: Dictionary) -> None:
        self.changes, self.fields, self.dictionary = changes, fields, dictionary

    @property
    def rows(self) -> int:
        """The number of rows written."""
        first = self.fields[0]
        return len(first.vector.words) if isinstance(first, SinkField) else len(first.nulls)


def stem_of(generation: int, after: int | None, upto: int) -> str:
    """The stem of file names for a range of epochs. ``after`` None: for the rows at ``upto``."""
    return f"g{generation}-{'snapshot' if after is None else after}-{upto}"


def scheme_of(uri: str) -> str:
    """The URI's scheme (s3a, hdfs, …); empty for a path."""
    scheme = urlsplit(uri).scheme.lower()
    return scheme if "://" in uri else ""


def local_path(uri: str) -> str:
    """The path of a file: URI, or the path itself. 22023: a file URI of another machine."""
    if scheme_of(uri) != "file":
        return uri
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        raise SqlError("22023", f'"{uri}" is no file of this machine', hint="Write file:///path.")
    return unquote(parts.path)


def writable_path(uri: str, allowed: Sequence[str]) -> Path:
    """The real path, after following links, of a folder or file that a statement may write. A relative path is resolved
    in the first folder. It need not exist. 42501 outside ``allowed``."""
    folders = [os.path.realpath(a) for a in allowed if not scheme_of(a)]
    given = local_path(uri)
    if "\0" in given or not given:
        raise SqlError("22023", f"{given!r} is no path")
    base = folders[0] if folders else "/"
    real = Path(os.path.realpath(given if os.path.isabs(given) else os.path.join(base, given)))
    if not any(Path(folder) in real.parents or str(real) == folder for folder in folders):
        raise denied(uri)
    return real


def writable_uri(uri: str, allowed: Sequence[str]) -> str:
    """An object store's URI that a statement may write. 42501: outside ``allowed``; 22023: not a plain URI."""
    parts = urlsplit(uri)
    segments = unquote(parts.path).split("/")
    if parts.query or parts.fragment or "@" in parts.netloc or any(s in ("..", ".") for s in segments):
        raise SqlError("22023", f'"{uri}" is no plain URI', hint="Write scheme://place/path, without .. in it.")
    if any(c in uri for c in "*?[]{}\\\0"):
        raise SqlError("22023", f'"{uri}" has characters that stand for several files')
    wanted = uri.rstrip("/") + "/"
    if not any(scheme_of(a) and wanted.startswith(a.rstrip("/") + "/") for a in allowed):
        raise denied(uri)
    return uri.rstrip("/")


def denied(uri: str) -> SqlError:
    """The error for a path outside what the server may write."""
    return SqlError(
        "42501", f'permission denied to write "{uri}"',
        detail="The server writes only where it was started to.",
        hint="Start the server with --sinks DIR, or --sinks URI for an object store.",
    )  # fmt: skip
