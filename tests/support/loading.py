"""A server with a folder of files, and Spark if a test asks for it, to compare loads by both engines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ivm.errors import SqlError
from tests.support.sessions import Client, Row

Outcome = list[Row] | tuple[str, str, str | None]
"""Rows sorted by their texts, or an error's state, message and detail."""


def outcome(client: Client, columns: str, path: str, options: str, names: str = "") -> Outcome:
    """The result of a load into a new table, which is dropped afterwards."""
    client.run(f"CREATE TABLE t ({columns})")
    try:
        work = client.work(f"COPY t {names} FROM '{path}' WITH ({options})")
        client.server.run(work, timeout=250)  # a first Spark job may be slow
        return client.sorted("SELECT * FROM t")
    except SqlError as error:
        return error.sqlstate, error.message, error.detail
    finally:
        client.run("DROP TABLE t")


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Write files by their paths in the folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def rows(values: Sequence[Sequence[Any]]) -> list[Row]:
    """Rows in the form of ``Client.sorted``."""
    return sorted((tuple(None if v is None else str(v) for v in row) for row in values), key=repr)
