"""Where a sink writes: a folder of this machine (``folder``), or whatever Spark can write to (``spark``)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

from ivm.errors import SqlError
from storage.dictionary import Dictionary
from storage.sinks.envelope import Field, Fields, Layout
from storage.sinks.manifest import Entry, SinkFile
from storage.stored import History

PART_ROWS: Final = 1 << 16
FILE_ROWS: Final = 1 << 20


class SinkFormat(Enum):
    """What files hold."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    CSV = "csv"


class Target(Protocol):
    """A sink's folder. Every method may raise SqlError; what was written counts from ``commit`` on."""

    def open(self, owner: str) -> Entry | None:
        """The last entry there, None before the first; what a crash has left behind goes. 55006: another sink's."""
        ...

    def write(self, stem: str, layout: Layout, parts: Iterator[Part]) -> tuple[SinkFile, ...]:
        """Files of all the parts, named by ``stem``; none when there is nothing in them."""
        ...

    def commit(self, entry: Entry) -> None:
        """Makes an entry, and with it its files, count: all or nothing, and once. 55006: another has this number."""
        ...


class Part:
    """Some changes, in order, and what is written for them."""

    def __init__(self, changes: History, fields: Fields, dictionary: Dictionary) -> None:
        self.changes, self.fields, self.dictionary = changes, fields, dictionary

    @property
    def rows(self) -> int:
        """Rows that are written."""
        first = self.fields[0]
        return len(first.vector.words) if isinstance(first, Field) else len(first.nulls)


def stem_of(generation: int, after: int | None, upto: int) -> str:
    """The files' name for a range of epochs; None: for the rows at ``upto``."""
    return f"g{generation}-{'snapshot' if after is None else after}-{upto}"


def scheme_of(uri: str) -> str:
    """s3a, hdfs, …; nothing for a path."""
    scheme = urlsplit(uri).scheme.lower()
    return scheme if "://" in uri else ""


def local_path(uri: str) -> str:
    """The path that a file: URI, or a path, stands for. 22023: a file URI of another machine."""
    if scheme_of(uri) != "file":
        return uri
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        raise SqlError("22023", f'"{uri}" is no file of this machine', hint="Write file:///path.")
    return unquote(parts.path)


def writable_path(uri: str, allowed: Sequence[str]) -> Path:
    """The real path of a folder or file that a statement may write, links followed; a relative one stands in the first
    folder. It need not exist. 42501 outside of ``allowed``."""
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
    """An object store's URI that a statement may write. 42501: outside of ``allowed``; 22023: no plain one."""
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
    """The error for what lies outside of what the server may write."""
    return SqlError(
        "42501", f'permission denied to write "{uri}"',
        detail="The server writes only where it was started to.",
        hint="Start the server with --sinks DIR, or --sinks URI for an object store.",
    )  # fmt: skip
