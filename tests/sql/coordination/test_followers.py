"""Subscriptions to one relation share the work of a commit."""

from __future__ import annotations

import time
from typing import Any

import pytest

from sql.pgwire import copy_writer
from tests.support.sessions import Server

MANY = 12


def test_a_commit_is_handed_over_once_and_written_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    plain = copy_writer.format_copy

    def counted(part: Any, *given: Any) -> Any:
        written.append(len(part))
        return plain(part, *given)

    monkeypatch.setattr(copy_writer, "format_copy", counted)
    writer = server.client()
    writer.run("CREATE TABLE followed (a int, b text)")
    writer.run("INSERT INTO followed VALUES (1, 'before')")
    engine = server.coordinator.engine
    listeners = len(engine.listeners)
    clients = [server.client() for _ in range(MANY)]
    copied = [
        c.server.start(_copied(c, "COPY (SUBSCRIBE followed WITH (SNAPSHOT = false)) TO STDOUT", 5)) for c in clients
    ]
    until = time.monotonic() + 20
    while len(server.coordinator.followers._since) < MANY and time.monotonic() < until:
        time.sleep(0.01)
    assert len(engine.listeners) == listeners
    writer.run("INSERT INTO followed VALUES (2, 'x'), (3, NULL)")
    time.sleep(0.2)
    writer.run("INSERT INTO followed VALUES (4, 'y')")
    writer.run("DELETE FROM followed WHERE a < 3")
    found = [each.result(30) for each in copied]
    assert all(lines == found[0] for lines in found)
    assert [line.split("\t")[1:] for line in found[0]] == [
        ["1", "2", "x"], ["1", "3", "\\N"], ["1", "4", "y"], ["-1", "1", "before"], ["-1", "2", "x"],
    ]  # fmt: skip
    assert sum(written) < 5 * MANY / 2, written
    for client in clients:
        client.close()
    assert not server.coordinator.followers._since
    writer.run("DROP TABLE followed")


async def _copied(client: Any, text: str, count: int) -> list[str]:
    """The first lines of a COPY, as they come."""
    lines: list[str] = []
    async for result in client.session.simple(text):
        async for chunk in result.data:
            lines += bytes(chunk).decode().splitlines()
            if len(lines) >= count:
                await result.data.aclose()
                return lines
    return lines
