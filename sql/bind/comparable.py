"""Which types have an equality and an order: clauses that need one refuse the others (json), as Postgres does."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from planner.expr.comparison import Comparison
from storage.types.definitions import DEFINITIONS
from storage.types.type_names import format_type

_INCOMPARABLE: Final = (Kind.JSON, *(kind for kind, own in DEFINITIONS.items() if not own.compared))


def _incomparable(type_: SqlType) -> bool:
    return incomparable_part(type_) is not None


def incomparable_part(type_: SqlType) -> SqlType | None:
    """The first type in an array or row, or the type itself, that has no equality and no order."""
    if type_.element is not None:
        return incomparable_part(type_.element)
    if type_.kind is Kind.RECORD:
        return next((p for _, t in type_.fields if (p := incomparable_part(t)) is not None), None)
    return type_ if type_.kind in _INCOMPARABLE else None


def _shown(type_: SqlType) -> str:
    anonymous = type_.kind is Kind.RECORD and type_.named is None
    return format_type((incomparable_part(type_) or type_) if anonymous else type_, False)


def check_equality(type_: SqlType, at: int) -> None:
    """Raises 42883 for a type whose values cannot be grouped."""
    if _incomparable(type_):
        message = f"could not identify an equality operator for type {_shown(type_)}"
        raise SqlError("42883", message, position=at + 1)


def check_order(type_: SqlType, at: int) -> None:
    """Raises 42883 for a type whose values cannot be sorted."""
    if _incomparable(type_):
        raise SqlError(
            "42883", f"could not identify an ordering operator for type {_shown(type_)}",
            hint="Use an explicit ordering operator or modify the query.", position=at + 1,
        )  # fmt: skip


def check_comparison(type_: SqlType, comparison: Comparison, at: int) -> None:
    """Raises 42883 for a row or array with a part that has no such operator."""
    part = incomparable_part(type_)
    if part is not None:
        equality = comparison in (Comparison.EQUAL, Comparison.NOT_EQUAL)
        what = "an equality operator" if equality else "a comparison function"
        raise SqlError("42883", f"could not identify {what} for type {format_type(part, False)}", position=at + 1)


_CLASSES: Final = {
    "gin": (Kind.ARRAY, Kind.JSONB, Kind.TSVECTOR),
    "gist": (Kind.RANGE, Kind.MULTIRANGE, Kind.POINT, Kind.INET, Kind.CIDR, Kind.TSVECTOR, Kind.TSQUERY),
    "spgist": (Kind.RANGE, Kind.POINT, Kind.INET, Kind.CIDR, Kind.TEXT, Kind.VARCHAR),
}
"""The types with an operator class for the methods that index no values in an order."""


def check_index(type_: SqlType, method: str = "btree") -> None:
    """Raises 42704 for a column's type that no index of the method can have."""
    if _incomparable(type_) if method not in _CLASSES else type_.kind not in _CLASSES[method]:
        shown = format_type(type_, False)
        raise SqlError(
            "42704", f'data type {shown} has no default operator class for access method "{method}"',
            hint="You must specify an operator class for the index or define a default operator class for the data "
            "type.",
        )  # fmt: skip
