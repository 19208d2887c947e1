"""The short form of ``tests/programs/source_kills.py``: one kill, of the server, with which the streams' driver goes
too."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.programs.source_kills import SourceKills, run


@pytest.mark.timeout(900)
def test_a_kill_loses_and_doubles_nothing(tmp_path: Path) -> None:
    kills = SourceKills(tmp_path / "kills", Random(3))
    run(kills, 1, ("server",))
    assert kills.kinds["server"] == 1
    assert kills.arrivals.ids > 0
