"""VACUUM."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vacuum:
    """Sweep the dictionary, and remove what the store keeps needlessly."""

    full: bool
