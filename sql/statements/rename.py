"""Bound statements that change the name, place or owner of something. It is looked up as they run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Named:
    """What ALTER is of: ``kind`` as it is written (table, view, materialized view, index, sequence)."""

    kind: str
    schema_name: str | None
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Rename:
    """``part``: relation (the object itself), column or constraint; ``old``: the part's name."""

    target: Named
    part: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class SetSchema:
    target: Named
    schema_name: str


@dataclass(frozen=True, slots=True)
class SetOwner:
    """``role`` None: whoever asks."""

    target: Named
    role: str | None


Renaming = Rename | SetSchema | SetOwner
