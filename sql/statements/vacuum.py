"""VACUUM."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vacuum:
    """Sweep the dictionary, and with it what the store keeps without need."""

    full: bool
