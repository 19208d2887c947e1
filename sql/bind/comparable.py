"""Which types have an equality and an order: clauses that need one refuse the others (json), as Postgres does."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from storage.types.definitions import DEFINITIONS
from storage.types.type_names import format_type

_INCOMPARABLE: Final = (Kind.JSON, *(kind for kind, own in DEFINITIONS.items() if not own.compared))


def _incomparable(type_: SqlType) -> bool:
    return (type_.element or type_).kind in _INCOMPARABLE


def check_equality(type_: SqlType, at: int) -> None:
    """Raises 42883 for a type whose values cannot be grouped."""
    if _incomparable(type_):
        message = f"could not identify an equality operator for type {format_type(type_, False)}"
        raise SqlError("42883", message, position=at + 1)


def check_order(type_: SqlType, at: int) -> None:
    """Raises 42883 for a type whose values cannot be sorted."""
    if _incomparable(type_):
        raise SqlError(
            "42883", f"could not identify an ordering operator for type {format_type(type_, False)}",
            hint="Use an explicit ordering operator or modify the query.", position=at + 1,
        )  # fmt: skip


def check_index(type_: SqlType, method: str = "btree") -> None:
    """Raises 42704 for a column's type that no index can have."""
    if _incomparable(type_):
        shown = format_type(type_, False)
        raise SqlError(
            "42704", f'data type {shown} has no default operator class for access method "{method}"',
            hint="You must specify an operator class for the index or define a default operator class for the data "
            "type.",
        )  # fmt: skip
