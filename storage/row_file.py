"""Rows of a large load in a file of the data folder: memory that the kernel may take back, and what makes them durable.

A commit's log record names the file in the place of the rows, so that they are written once and never copied whole.
The file goes when the store has the rows, or with the transaction. What no record names after a crash is taken away.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Words
from storage.files import sync_path

FOLDER: Final = "loads"
FROM_ROWS: Final = 1 << 20
"""Loads of fewer rows stay in memory, and are in the log."""
_PIECE: Final = 1 << 24


class RowFile(NamedTuple):
    """``size`` rows of ``width`` words, row-major, little-endian, with the CRC-32 of all bytes. ``path``: absolute."""

    path: Path
    size: int
    width: int
    checksum: int

    def rows(self) -> Words:
        """int64[size, width], mapped; what is written to them stays private. Cost: none."""
        if not self.size:
            return np.zeros((0, self.width), np.int64)
        return np.asarray(np.memmap(self.path, "<i8", "c", shape=(self.size, self.width)))

    def check(self) -> None:
        """Raises XX001 unless the file is there and as it was written. Cost: reads it once."""
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


class RowCollector:
    """Takes rows a batch at a time; from ``FROM_ROWS`` rows on they are in a file."""

    def __init__(self, folder: Path | None, width: int, limit: int = FROM_ROWS) -> None:
        """``folder``: None where there is no data folder; then all stays in memory."""
        self._folder, self._width, self._limit = folder, width, limit
        self._parts: list[Words] = []
        self._file: BinaryIO | None = None
        self._path: Path | None = None
        self._checksum = 0
        self.count = 0

    def add(self, rows: Words) -> None:
        """int64[n, width]."""
        self.count += len(rows)
        if self._file is None and (self._folder is None or self.count <= self._limit):
            self._parts.append(rows)
            return
        if self._file is None:
            assert self._folder is not None
            self._folder.mkdir(exist_ok=True)
            self._path = self._folder / f"{os.urandom(12).hex()}.rows"
            self._file = self._path.open("xb")
            parts, self._parts = self._parts, []
            for part in parts:
                self._write(part)
        self._write(rows)

    def _write(self, rows: Words) -> None:
        assert self._file is not None
        assert rows.shape[1] == self._width, "rows as wide as the table"
        data = np.ascontiguousarray(rows, "<i8").reshape(-1).view(np.uint8).data
        self._checksum = zlib.crc32(data, self._checksum)
        try:
            self._file.write(data)
        except OSError as error:
            raise SqlError("53100", f"the rows of the load cannot be kept: {error}") from error

    def finish(self) -> tuple[Words, RowFile | None]:
        """All rows, in order, and the file that has them, durable, if there is one."""
        if self._file is None:
            parts = self._parts
            rows = parts[0] if len(parts) == 1 else np.concatenate([np.zeros((0, self._width), np.int64), *parts])
            return rows, None
        assert self._path is not None
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            for folder in (self._path.parent, self._path.parent.parent):
                sync_path(folder)
        except OSError as error:
            raise SqlError("53100", f"the rows of the load cannot be kept: {error}") from error
        file = RowFile(self._path, self.count, self._width, self._checksum)
        return file.rows(), file

    def discard(self) -> None:
        """They are not wanted after all."""
        self._parts.clear()
        if self._file is not None and self._path is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)


def remove_others(folder: Path, kept: Iterable[Path]) -> None:
    """Takes away the files of loads that were not committed."""
    names = {path.name for path in kept}
    for path in folder.glob("*.rows"):
        if path.name not in names:
            path.unlink()


def slices(count: int, size: int) -> Iterator[slice]:
    """0 … count in pieces."""
    for start in range(0, count, size):
        yield slice(start, min(count, start + size))
