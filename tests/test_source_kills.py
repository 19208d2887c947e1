"""The short form of ``tests/source_kills.py``: one kill of each side."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.source_kills import run


@pytest.mark.timeout(900)
def test_a_kill_of_either_side_loses_and_doubles_nothing(tmp_path: Path) -> None:
    kills = run(tmp_path, 2, seed=3, kinds=("server", "driver"))
    assert sum(kills.kinds.values()) == 2
    assert kills.arrivals.ids > 0
