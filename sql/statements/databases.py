"""Bound statements about databases, which are looked up at execution."""

from __future__ import annotations

from dataclasses import dataclass

from sql.statements.role_spec import RoleSpec

Value = str | int | bool | RoleSpec | None
"""Of an option: None for DEFAULT."""


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    """``options``: by name, lower case, as written."""

    name: str
    options: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """``force``: end the sessions that are connected to it."""

    name: str
    if_exists: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class RenameDatabase:
    name: str
    new: str


@dataclass(frozen=True, slots=True)
class AlterDatabase:
    """``options``: as of ``CreateDatabase``."""

    name: str
    options: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class SetDatabase:
    """What a setting is in its sessions. ``value`` None: RESET; of ``setting`` None: of all settings."""

    name: str
    setting: str | None
    value: str | None


WholeDatabase = CreateDatabase | DropDatabase
"""What no transaction block can hold."""
DatabaseStatement = WholeDatabase | RenameDatabase | AlterDatabase | SetDatabase
