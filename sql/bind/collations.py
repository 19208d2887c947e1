"""Collations: all compare by code point, so that only where one may stand is checked."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from storage.types.type_names import format_type

_COLLATABLE: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME)


def check_collatable(type_: SqlType, at: int) -> None:
    """42804 for COLLATE of a type that is no string, nor an array of them."""
    element = type_
    while element.element is not None:
        element = element.element
    if element.kind not in _COLLATABLE:
        message = f"collations are not supported by type {format_type(type_.plain)}"
        raise SqlError("42804", message, position=at + 1)
