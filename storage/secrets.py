"""The server's secrets: passwords and keys for other systems, kept as files that only the server's user reads.

They are no part of the catalog or the log, so no backup of rows, no dump and no query has them. A secret is a file of
its own, named after the hexadecimal form of its name, and is replaced whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ivm.errors import SqlError

LONGEST: Final = 63
"""Bytes of a name."""
LARGEST: Final = 65_536
"""Bytes of a secret, as in Materialize."""


class Secrets:
    """Those in a folder, which is made with the first of them. Any thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> list[str]:
        """Sorted."""
        try:
            found = [p.name for p in self._folder.iterdir() if not p.name.startswith(".")]
        except FileNotFoundError:
            return []
        return sorted(bytes.fromhex(name).decode() for name in found)

    def value(self, name: str) -> str:
        """A secret's text. Raises 42704."""
        try:
            return self._file(name).read_text("utf-8")
        except FileNotFoundError:
            raise absent(name) from None

    def put(self, name: str, value: str, *, new: bool) -> None:
        """Keep a secret durably. ``new``: 42710 if there is one of this name, else 42704 if there is none. Raises
        54000 for one that is too long."""
        if len(value.encode()) > LARGEST:
            raise SqlError("54000", f"secrets may have at most {LARGEST} bytes")
        if len(name.encode()) > LONGEST or "\0" in name:
            raise SqlError("42602", f'invalid name of a secret: "{name}"')
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        there = self._file(name).exists()
        if there and new:
            raise SqlError("42710", f'secret "{name}" already exists')
        if not there and not new:
            raise absent(name)
        half = self._folder / f".{os.urandom(8).hex()}"
        try:
            with open(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(value)
                file.flush()
                os.fsync(file.fileno())
            half.replace(self._file(name))
        except OSError as error:
            half.unlink(missing_ok=True)
            raise SqlError("58030", f"the secret could not be kept: {os.strerror(error.errno or 0)}") from None
        self._sync()

    def drop(self, name: str) -> None:
        """Forget a secret. Raises 42704."""
        try:
            self._file(name).unlink()
        except FileNotFoundError:
            raise absent(name) from None
        self._sync()

    def _file(self, name: str) -> Path:
        return self._folder / name.encode().hex()

    def _sync(self) -> None:
        number = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


Reveal = Callable[[str], str]
"""The text of the secret of a name; raises 42704."""


def absent(name: str) -> SqlError:
    return SqlError("42704", f'secret "{name}" does not exist')
