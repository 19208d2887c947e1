"""The delay before retries of sources, sinks and the jobs of scattered views."""

from __future__ import annotations

from typing import Final

LONGEST_PAUSE: Final = 60.0
_MOST_DOUBLINGS: Final = 60


def pause_after(failures: int, first: float) -> float:
    """Seconds to wait after this many failures in a row: ``first`` after one, doubled for each further one, at most a
    minute."""
    return min(first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), LONGEST_PAUSE)
