"""Bound definitions of sources (partly shared with sinks). Names are looked up at execution."""

from __future__ import annotations

from dataclasses import dataclass

from sql.catalog.catalog import RelationKind
from sql.catalog.connection import Connection


@dataclass(frozen=True, slots=True)
class CreateSource:
    """CREATE SOURCE. ``table``: the schema, if given, and the name of the table to fill."""

    schema_name: str | None
    name: str
    connection: Connection
    table: tuple[str | None, str]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetPaused:
    """ALTER SOURCE … PAUSE or RESUME."""

    kind: RelationKind
    schema_name: str | None
    name: str
    paused: bool
    if_exists: bool = False


ConnectionStatement = CreateSource | SetPaused
