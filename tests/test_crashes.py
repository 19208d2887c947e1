"""The short form of ``tests.crashes``: a few kills of each kind, with and without a disk that forgets."""

from __future__ import annotations

import pytest

from tests.crashes import run

KINDS = ("load", "burst", "ddl", "start")


@pytest.mark.parametrize("forgetful", [False, True])
def test_kills_at_random_moments(forgetful: bool) -> None:
    total = run(len(KINDS), forgetful, seed=20 + forgetful, kinds=KINDS)
    assert total.wrong == []
    assert sum(client.acknowledged for client in total.clients) > 0
