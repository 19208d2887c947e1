"""Bound statements about user-defined types; names are looked up at execution."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CreateEnum:
    schema_name: str | None
    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddLabel:
    """``neighbor``: the label that the new one comes before (True) or after; None: it becomes the last."""

    schema_name: str | None
    name: str
    label: str
    neighbor: tuple[str, bool] | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameLabel:
    schema_name: str | None
    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RenameType:
    schema_name: str | None
    name: str
    new: str


@dataclass(frozen=True, slots=True)
class DropType:
    names: tuple[tuple[str | None, str], ...]
    if_exists: bool = False
    cascade: bool = False


TypeStatement = CreateEnum | AddLabel | RenameLabel | RenameType | DropType
