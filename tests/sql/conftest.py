"""The server and the session that most tests of statements share; a module with other needs has fixtures of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.sessions import Client, Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests of a module, over an empty folder."""
    from tests.support.sessions import Server  # a test of the parser needs no server

    server = Server(tmp_path_factory.mktemp("data"))
    yield server
    server.close()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """One session, which ends with the test."""
    client = server.client()
    yield client
    client.close()
