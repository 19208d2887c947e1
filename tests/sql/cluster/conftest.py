"""A server with several databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sql.cluster import leaving
from sql.session.sources import Running
from tests.support.clusters import Databases


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    """One server for all tests of a module, over an empty folder."""
    server = Databases(tmp_path_factory.mktemp("data"))
    yield server
    server.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for sessions that stay."""
    monkeypatch.setattr(leaving, "PATIENCE_SECONDS", 0.2)


@pytest.fixture(autouse=True, scope="package")
def idle_sources() -> Iterator[None]:
    """Sources' threads run but read nothing: where they are opened is what is tested here, and Spark takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Running, "_attempt", lambda running: running._stop.wait())
        yield
