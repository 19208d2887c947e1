"""How many sessions there may be at a time."""

from __future__ import annotations

from typing import Final

MOST_SESSIONS: Final = 5_000
RESERVED: Final = 3
"""Sessions that only superusers get, the last of the most that there may be."""
