"""The rows of a large load in a file of the data folder, which makes them durable and lets the kernel evict them.

A commit's log record names the file instead of containing the rows, so that they are written once and never copied
whole. The file is deleted once the store has the rows, or when the transaction rolls back. After a crash files that no
record names are deleted.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final, NamedTuple

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Words
from storage.files import sync_path

FOLDER: Final = "loads"
FROM_ROWS: Final = 1 << 20
"""Smaller loads stay in memory and are written to the log."""
_PIECE: Final = 1 << 24


class RowFile(NamedTuple):
    """``size`` rows of ``width`` words, row-major, little-endian, with the CRC-32 of all bytes. ``path``: absolute."""

    path: Path
    size: int
    width: int
    checksum: int

    def rows(self) -> Words:
        """int64[size, width], memory-mapped copy-on-write. Cost: none."""
        if not self.size:
            return np.zeros((0, self.width), np.int64)
        return np.asarray(np.memmap(self.path, "<i8", "c", shape=(self.size, self.width)))

    def check(self) -> None:
        """Raises XX001 unless the file exists and matches its checksum. Cost: reads it once."""
        try:
            with self.path.open("rb") as file:
                found = 0
                while piece := file.read(_PIECE):
                    found = zlib.crc32(piece, found)
                length = file.tell()
        except OSError as error:
            raise SqlError("XX001", f"the rows of a load are missing: {error}") from error
        if length != self.size * self.width * 8 or found != self.checksum:
            raise SqlError("XX001", f"the rows of a load are damaged: {self.path}")


class RowWriter:
    """Writes a ``RowFile`` sequentially."""

    def __init__(self, folder: Path, width: int) -> None:
        folder.mkdir(exist_ok=True)
        self._path = folder / f"{os.urandom(12).hex()}.rows"
        self._file = self._path.open("xb")
        self._width = width
        self._checksum = self._count = 0

    def write(self, rows: Words) -> None:
        """Appends rows int64[n, width]. Raises 53100."""
        assert rows.shape[1] == self._width, "rows as wide as the table"
        data = np.ascontiguousarray(rows, "<i8").reshape(-1).view(np.uint8).data
        self._checksum = zlib.crc32(data, self._checksum)
        self._count += len(rows)
        with kept():
            self._file.write(data)

    def finish(self) -> RowFile:
        """Syncs and returns the file. Raises 53100."""
        with kept():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            for folder in (self._path.parent, self._path.parent.parent):
                sync_path(folder)
        return RowFile(self._path, self._count, self._width, self._checksum)

    def discard(self) -> None:
        """Abandons the file."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def scratch_rows(folder: Path, rows: Words) -> Words:
    """The rows in an anonymous file that lives as long as the array, which the kernel may evict. Raises 53100."""
    if not rows.size:
        return rows
    folder.mkdir(exist_ok=True)
    with kept(), TemporaryFile(dir=folder) as file:
        file.write(np.ascontiguousarray(rows, "<i8").reshape(-1).view(np.uint8).data)
        file.flush()
        return np.asarray(np.memmap(file, "<i8", "r", shape=rows.shape))


@contextmanager
def kept() -> Iterator[None]:
    """Turns disk errors inside into 53100."""
    try:
        yield
    except OSError as error:
        raise SqlError("53100", f"the rows of the load cannot be kept: {error}") from error


def remove_others(folder: Path, kept: Iterable[Path]) -> None:
    """Deletes row files of loads that were not committed."""
    names = {path.name for path in kept}
    for path in folder.glob("*.rows"):
        if path.name not in names:
            path.unlink()


def slices(count: int, size: int) -> Iterator[slice]:
    """The range [0, count) in slices of ``size``."""
    for start in range(0, count, size):
        yield slice(start, min(count, start + size))
