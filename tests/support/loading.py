"""A server with a folder of files, and Spark where a test asks for it: loads by either engine, compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ivm.errors import SqlError
from tests.support.sessions import Client, Row

Outcome = list[Row] | tuple[str, str, str | None]
"""Rows in order of their texts, or an error's state, message and detail."""


def outcome(client: Client, columns: str, path: str, options: str, names: str = "") -> Outcome:
    """What a load into a new table gives; the table is gone afterwards."""
    client.run(f"CREATE TABLE t ({columns})")
    try:
        work = client.work(f"COPY t {names} FROM '{path}' WITH ({options})")
        client.server.run(work, timeout=250)  # a first job of Spark may take its time
        return client.sorted("SELECT * FROM t")
    except SqlError as error:
        return error.sqlstate, error.message, error.detail
    finally:
        client.run("DROP TABLE t")


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Files by their paths in the folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def rows(values: Sequence[Sequence[Any]]) -> list[Row]:
    """As ``Client.sorted`` gives them."""
    return sorted((tuple(None if v is None else str(v) for v in row) for row in values), key=repr)
