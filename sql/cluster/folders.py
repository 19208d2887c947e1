"""Where databases are: the first one in the data folder itself, every other one in ``databases/<oid>`` inside it.

The catalog of the first database says which of these folders count. A folder that it does not name is one that was
half made or half removed when the server ended, and goes at the next start.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from ivm.errors import SqlError
from sql.catalog.databases import FIRST_DATABASE
from storage.files import disk_error, sync_path

FOLDER: Final = "databases"
_NOT_COPIED: Final = ("lock", "temp", "spark", "sources")
"""What a running database makes for itself."""


class Folders:
    """The folders in one data folder."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._inside = data / FOLDER

    def of(self, oid: int) -> Path:
        """A database's folder, whether or not it is there."""
        return self._data if oid == FIRST_DATABASE else self._inside / str(oid)

    def make(self, oid: int) -> None:
        """Make the folder of a new database, durably. Raises 42710, 53100, 58030."""
        try:
            for folder in (self._inside, self.of(oid)):
                if folder is self._inside and folder.is_dir():
                    continue
                folder.mkdir(mode=0o700)
                sync_path(folder.parent)
        except FileExistsError:
            message = f"data directory with the specified OID {oid} already exists"
            raise SqlError("42710", message) from None
        except OSError as error:
            raise disk_error(error, "the database's folder cannot be made") from error

    def is_empty(self, oid: int) -> bool:
        """Whether nothing has been written to a database yet."""
        folder = self.of(oid)
        return not folder.is_dir() or not (folder / "store.duckdb").exists()

    def copy(self, source: int, target: int) -> None:
        """Copy a database that is closed into the folder of another, durably. Raises 53100, 58030."""
        folder = self.of(target)
        try:
            shutil.copytree(self.of(source), folder, ignore=shutil.ignore_patterns(*_NOT_COPIED), dirs_exist_ok=True)
            for path in (*folder.rglob("*"), folder):
                sync_path(path)
        except OSError as error:
            raise disk_error(error, "the database cannot be copied") from error

    def remove(self, oid: int) -> None:
        """Remove a database's folder; what cannot be removed goes at the next start."""
        shutil.rmtree(self.of(oid), ignore_errors=True)

    def remove_unknown(self, known: Collection[int]) -> None:
        """Remove the folders of databases that are not known."""
        if not self._inside.is_dir():
            return
        for folder in self._inside.iterdir():
            if not folder.name.isdigit() or int(folder.name) not in known:
                shutil.rmtree(folder, ignore_errors=True)

    def size(self, oid: int) -> int:
        """The bytes of a database's files."""
        found = 0
        for place, folders, names in os.walk(self.of(oid)):
            if FOLDER in folders and oid == FIRST_DATABASE:
                folders.remove(FOLDER)
            for name in names:
                with suppress(FileNotFoundError):
                    found += os.lstat(os.path.join(place, name)).st_size
        return found
