"""Bound statements about secrets."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PutSecret:
    """CREATE SECRET, or (not ``new``) ALTER SECRET. ``value`` is in no text form of the statement."""

    name: str
    value: str = field(repr=False)
    new: bool
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropSecret:
    names: tuple[str, ...]
    if_exists: bool = False


SecretStatement = PutSecret | DropSecret
