"""Bound statements about triggers."""

from __future__ import annotations

from dataclasses import dataclass

from sql.catalog.catalog import Relation
from sql.catalog.triggers import Trigger


@dataclass(frozen=True, slots=True)
class CreateTrigger:
    """``trigger``: complete but for its id."""

    table: Relation
    trigger: Trigger
    replace: bool
    tag: str = "CREATE TRIGGER"


@dataclass(frozen=True, slots=True)
class DropTrigger:
    """The table by schema and name, as written."""

    name: str
    table: tuple[str | None, str]
    if_exists: bool
    tag: str = "DROP TRIGGER"


@dataclass(frozen=True, slots=True)
class RenameTrigger:
    name: str
    table: tuple[str | None, str]
    new_name: str
    tag: str = "ALTER TRIGGER"


@dataclass(frozen=True, slots=True)
class EnableTrigger:
    """ALTER TABLE … ENABLE or DISABLE TRIGGER. ``name`` None: all of them; ``enabled``: as in ``Trigger``."""

    name: str | None
    table: tuple[str | None, str]
    enabled: str
    if_exists: bool = False
    tag: str = "ALTER TABLE"


TriggerStatement = CreateTrigger | DropTrigger | RenameTrigger | EnableTrigger
