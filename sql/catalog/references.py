"""What the names of a definition meant when it was made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RelationReference:
    """What a name in a view's definition referred to when the view was created. ``places``: its offsets in the
    definition.

    ``columns``: the relation's column names in the definition, by position, if they have changed since; empty for a
    column added later. () if the current names apply.
    """

    schema_name: str | None
    name: str
    relation: int
    places: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
