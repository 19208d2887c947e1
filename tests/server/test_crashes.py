"""The short form of ``tests.programs.crashes``: a few kills of each kind, on disks that keep or lose unsynced data."""

from __future__ import annotations

import pytest

from tests.programs.crashes import run


@pytest.mark.parametrize(("forgetful", "kinds"), [(False, ("load", "start")), (True, ("burst", "load", "ddl"))])
def test_kills_at_random_moments(forgetful: bool, kinds: tuple[str, ...]) -> None:
    total = run(len(kinds), forgetful, seed=20 + forgetful, kinds=kinds)
    assert total.wrong == []
    assert sum(client.acknowledged for client in total.clients) > 0
