"""Transactions of several clients, and the search for anomalies itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.isolation import check
from tests.support.histories_of_lists import Recorded, anomalies


@pytest.mark.parametrize("level", ["serializable", "read committed"])
def test_nothing_forbidden_happens(tmp_path: Path, level: str) -> None:
    run, found = check(tmp_path / "data", 150, level, clients=4, seconds=60)
    assert found == []
    assert sum(bool(t.committed) for t in run.present) > 20


def _done(began: float, ended: float, **what: list) -> Recorded:  # type: ignore[type-arg]
    return Recorded(began, what.get("appends", []), what.get("reads", []), ended, True)


def test_what_the_search_finds() -> None:
    lost = [_done(0, 1, appends=[(1, 1)]), _done(2, 3, appends=[(1, 2)])]
    assert anomalies(lost, {1: (1,)}, serializable=False) == ["2 is lost from list 1"]
    skew = [_done(0, 9, reads=[(1, ())], appends=[(2, 1)]), _done(0, 9, reads=[(2, ())], appends=[(1, 2)])]
    assert anomalies(skew, {1: (2,), 2: (1,)}, serializable=False) == []
    assert len(anomalies(skew, {1: (2,), 2: (1,)}, serializable=True)) == 1
    circle = [_done(0, 9, reads=[(1, (2,))], appends=[(2, 1)]), _done(0, 9, reads=[(2, (1,))], appends=[(1, 2)])]
    assert len(anomalies(circle, {1: (2,), 2: (1,)}, serializable=False)) == 1
    stale = [_done(0, 1, appends=[(1, 1)]), _done(2, 3, reads=[(1, ())])]
    assert anomalies(stale, {1: (1,)}, serializable=False) == []
    assert len(anomalies(stale, {1: (1,)}, serializable=True)) == 1
    dirty = [Recorded(0, [(1, 1)], [], 1, False), _done(0, 2, reads=[(1, (1,))])]
    assert anomalies(dirty, {1: (1,)}, serializable=False) == ["1 was never committed (G1a)"]
    part = [_done(0, 1, appends=[(1, 1), (1, 2)]), _done(0, 1, reads=[(1, (1,))])]
    assert anomalies(part, {1: (1, 2)}, serializable=False) == ["a read of list 1 saw a part of a transaction (G1b)"]
