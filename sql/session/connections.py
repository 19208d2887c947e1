"""Checks that a new source can be reached, so that CREATE SOURCE fails rather than its first batch."""

from __future__ import annotations

import asyncio

from sql.catalog.connection import Connection, revealed
from sql.coordination.coordinator import Coordinator
from sql.session.source_streams import check_database, check_kafka, source_folder
from sql.statements.connections import CreateSource


async def check_reachable(coordinator: Coordinator, statement: object) -> None:
    """42501: outside of --files, --allow-host or what properties there may be; 58P01: it does not exist; 42809: a
    file."""
    if isinstance(statement, CreateSource):
        await asyncio.to_thread(_check, coordinator, revealed(statement.connection, coordinator.reveal))


def _check(coordinator: Coordinator, connection: Connection) -> None:
    """What is missing or of the wrong kind is left to the check of the options."""
    path, url, brokers = (connection.option(name) for name in ("path", "url", "brokers"))
    if connection.system == "files" and isinstance(path, str):
        source_folder(connection, coordinator.files)
    if connection.system == "jdbc" and isinstance(url, str):
        check_database(connection, coordinator.reach)
    if connection.system == "kafka" and isinstance(brokers, str):
        check_kafka(connection, coordinator.reach)
