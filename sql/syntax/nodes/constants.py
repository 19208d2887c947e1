"""The leaves of the syntax tree: constants and parameters. ``queries`` has them too, beside all other expressions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Number:
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class String:
    value: str
    at: int


@dataclass(frozen=True, slots=True)
class Bits:
    """``B'101'`` or ``X'1F'``; ``value`` begins with b or x."""

    value: str
    at: int


@dataclass(frozen=True, slots=True)
class Null:
    at: int


@dataclass(frozen=True, slots=True)
class Boolean:
    value: bool
    at: int


@dataclass(frozen=True, slots=True)
class Param:
    index: int
    at: int
