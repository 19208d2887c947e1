"""What a sink's tests wait for, and what they compare its files with."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from storage.dictionary import Dictionary
from storage.sinks.arrow import column_to_arrow
from storage.types.text import parse_text
from tests.support.sessions import Client
from tests.support.sink_reader import hashable


def wait_for(what: Callable[[], Any], seconds: float = 20) -> Any:
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until, what
        time.sleep(0.02)
    return found


def sink(client: Client, name: str = "k") -> dict[str, str | None]:
    names = ("state", "epoch", "generation", "version", "files", "rows", "error")
    rows = client.rows(f"SELECT {', '.join(names)} FROM freshet.sinks WHERE sink = '{name}'")
    return dict(zip(names, rows[0], strict=True))


def caught_up(client: Client, name: str = "k") -> int:
    """Waits until everything committed so far is written. Returns the epoch reached."""
    client.run("CREATE TABLE IF NOT EXISTS tick (n int)")
    client.run("INSERT INTO tick VALUES (1)")
    now = client.server.coordinator.engine.published.epoch

    def reached() -> bool:
        found = sink(client, name)
        assert found["error"] is None, found
        return found["epoch"] is not None and int(found["epoch"]) >= now

    wait_for(reached)
    return now


def as_read(client: Client, table: str, columns: dict[str, str], at: int) -> Counter[tuple[Any, ...]]:
    """The view at an epoch as Arrow values, converted from SQL's text."""
    rows = client.rows(f"SELECT {', '.join(columns)} FROM {table} AS OF {at}")
    schema = client.server.coordinator.engine.catalog.names["public", table].schema
    dictionary = Dictionary(bytes(16))
    values = []
    for i, column in enumerate(schema):
        vector = parse_text(column.type, [row[i] for row in rows], dictionary)
        values.append(column_to_arrow(vector, "c", column.type, dictionary).to_pylist())
    return Counter(tuple(map(hashable, row)) for row in zip(*values, strict=True))
