"""Views whose columns are the table's functions and casts, over extremes: see ``tests/support/extreme_views.py``."""

from __future__ import annotations

from pathlib import Path

from tests.support.extreme_views import Played, every_signature, play
from tests.support.sessions import Server


def test_views_of_all_functions_are_maintained(tmp_path: Path) -> None:
    """Those of types with formulas, on few rows; ``make extremes`` has all."""
    server = Server(tmp_path / "data")
    played = Played()
    try:
        for number, signature in enumerate(every_signature(10, everything=False)):
            play(server.client(), number, signature, played)
    finally:
        server.close()
    assert played.wrong == []
    assert played.calls > 300
    assert len(played.refused) < played.calls // 10, played.refused[:20]
