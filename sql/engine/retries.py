"""How long what has failed waits before it is tried again: sources, sinks, the jobs of scattered views."""

from __future__ import annotations

from typing import Final

LONGEST_PAUSE: Final = 60.0
_MOST_DOUBLINGS: Final = 60


def pause_after(failures: int, first: float) -> float:
    """Seconds after so many failures in a row: ``first`` after one, twice as long after each more, a minute at most."""
    return min(first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), LONGEST_PAUSE)
