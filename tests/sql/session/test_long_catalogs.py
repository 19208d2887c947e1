"""Reading system relations that have many rows does not keep the event loop."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from sql.session import information, reads
from sql.system.state import SystemState
from tests.support.sessions import Server


@pytest.mark.parametrize("relation", ["information_schema.columns", "pg_proc", "pg_attribute", "pg_operator"])
def test_many_rows_are_made_on_a_reader(server: Server, monkeypatch: pytest.MonkeyPatch, relation: str) -> None:
    made: list[str] = []
    plain = information.system.rows

    def watched(of: int, state: SystemState) -> Iterator[tuple[object, ...]]:
        found = plain(of, state)
        made.append(threading.current_thread().name)
        return found

    monkeypatch.setattr(information.system, "rows", watched)
    monkeypatch.setattr(reads, "HERE_SECONDS", 0.0)
    client = server.client()
    assert len(client.rows(f"SELECT * FROM {relation}")) > 100
    assert made
    assert all(name.startswith("reader") for name in made), made
    client.close()
