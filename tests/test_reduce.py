"""Aggregates in maintained views against the model, and sums that do not drift."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.model_aggregates import play
from tests.sessions import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.close()


def test_random_histories_of_groups(server: Server) -> None:
    clients = [(server.client(), "MATERIALIZED VIEW")]
    for seed in range(25):
        play(clients, seed)
