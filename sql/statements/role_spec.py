"""How a statement names a role."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """A role as written: its name, or ``kind`` current, session or public."""

    name: str
    kind: str = "named"
