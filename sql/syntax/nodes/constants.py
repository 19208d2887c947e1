"""The leaves of the syntax tree: constants, parameters, types. ``queries`` has them too, with all other expressions."""

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


@dataclass(frozen=True, slots=True)
class Default:
    """DEFAULT in VALUES of an INSERT or in SET."""

    at: int


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as written: its folded name, modifiers, if it is an array; the ``column`` of the table, for ``%TYPE``."""

    name: str
    args: tuple[int, ...]
    array: bool
    at: int
    schema: str | None = None
    column: str | None = None
