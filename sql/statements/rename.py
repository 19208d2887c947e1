"""Bound statements that change an object's name, schema or owner. The object is looked up at execution."""

from __future__ import annotations

from dataclasses import dataclass

from sql.statements.role_spec import RoleSpec


@dataclass(frozen=True, slots=True)
class Named:
    """The object of ALTER: ``kind`` as written (table, view, materialized view, index, sequence)."""

    kind: str
    schema_name: str | None
    name: str
    if_exists: bool = False
    only: bool = False


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
    target: Named
    role: RoleSpec


@dataclass(frozen=True, slots=True)
class Swap:
    """SWAP WITH: two relations of one kind exchange their names."""

    target: Named
    other: Named


Renaming = Swap | Rename | SetSchema | SetOwner
