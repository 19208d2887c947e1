"""Row values: constructing them, taking a field, testing for NULL. A row's datum is the tuple of its fields' datums."""

from __future__ import annotations

from typing import Any, Final

from ivm.words import BOOL, INT4, Kind, SqlType
from planner.expr.functions.table import ANY, Raises, per_value

ROW: Final = "row"
FIELD: Final = "field of row"
ROW_IS_NULL: Final = "row is null"
ROW_IS_NOT_NULL: Final = "row is not null"
RECORD: Final = SqlType(Kind.RECORD)


@per_value(ROW, (ANY,), RECORD, strict=False, variadic=True, key_is_name=True, raises=Raises.NEVER)
def row(*values: Any) -> tuple[Any, ...]:
    """ROW(…): never NULL itself."""
    return values


@per_value(FIELD, (RECORD, INT4), ANY, key_is_name=True, raises=Raises.NEVER)
def field(value: tuple[Any, ...], index: int) -> Any:
    """The field at a position, counted from 0."""
    return value[index]


@per_value(ROW_IS_NULL, (RECORD,), BOOL, strict=False, key_is_name=True, raises=Raises.NEVER)
def row_is_null(value: tuple[Any, ...] | None) -> bool:
    """Whether the row or all of its fields are NULL (``IS NULL`` of a row)."""
    return value is None or all(v is None for v in value)


@per_value(ROW_IS_NOT_NULL, (RECORD,), BOOL, strict=False, key_is_name=True, raises=Raises.NEVER)
def row_is_not_null(value: tuple[Any, ...] | None) -> bool:
    """Whether no field is NULL (``IS NOT NULL`` of a row)."""
    return value is not None and all(v is not None for v in value)
