"""Garbage collection stops everybody: it looks at few objects at a time."""

from __future__ import annotations

import gc
import time
from typing import Any

from tests.support.sessions import Server

MANY = 300_000


def test_a_collection_looks_at_few_objects(server: Server) -> None:
    """While many objects are made that stay."""
    server.client().run("SELECT 1")
    looked_at = [0, 0, 0]

    def begins(phase: str, info: dict[str, Any]) -> None:
        which = info["generation"]
        if phase == "start" and which < 2:
            seen = sum(len(gc.get_objects(generation)) for generation in range(which + 1))
            looked_at[which] = max(looked_at[which], seen)

    gc.callbacks.append(begins)
    try:
        kept = [[number] for number in range(MANY)]
    finally:
        gc.callbacks.remove(begins)
    assert len(kept) == MANY
    assert 0 < looked_at[0] < 2_000
    assert 0 < looked_at[1] < 6_000


def test_what_is_young_is_collected_between_commits(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE collected (a int)")
    collected: list[int] = []

    def begins(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            collected.append(info["generation"])

    before = gc.get_threshold()
    gc.set_threshold(0)  # none by themselves
    gc.callbacks.append(begins)
    try:
        kept = [[number] for number in range(2_000)]
        client.run("INSERT INTO collected VALUES (1)")
        until = time.monotonic() + 20
        while not collected and time.monotonic() < until:
            time.sleep(0.01)
        assert gc.get_count()[0] < len(kept)
    finally:
        gc.callbacks.remove(begins)
        gc.set_threshold(*before)
    assert set(collected) == {1}
