"""Checks that a new source can be reached, so that CREATE SOURCE fails rather than its first batch."""

from __future__ import annotations

import asyncio

from sql.catalog.connection import Connection
from sql.coordination.coordinator import Coordinator
from sql.session.source_streams import source_folder
from sql.statements.connections import CreateSource
from storage.load.jdbc import check_url


async def check_reachable(coordinator: Coordinator, statement: object) -> None:
    """42501: the folder is outside of --files; 58P01: it does not exist; 42809: it is a file."""
    if isinstance(statement, CreateSource):
        await asyncio.to_thread(_check, coordinator, statement.connection)


def _check(coordinator: Coordinator, connection: Connection) -> None:
    path, url = connection.option("path"), connection.option("url")
    if connection.system == "files" and isinstance(path, str):
        source_folder(connection, coordinator.files)
    if connection.system == "jdbc" and isinstance(url, str):
        check_url(url, coordinator.files)
