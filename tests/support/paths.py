"""Folders of the repository that tests read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
ANSWERS: Final = ROOT / "tests" / "answers"
"""Recorded answers of a real PostgreSQL 15, and the programs that recorded them."""
