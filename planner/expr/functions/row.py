"""Row values: constructing them, taking a field, testing for NULL. A row's datum is a ``Row``."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from ivm.words import BOOL, INT4, Kind, SqlType, Storage
from planner.expr.comparison import Comparison
from planner.expr.functions.table import ANY, CallSite, Raises, per_value
from storage.types.arrays import Row, bounded, lower_bounds
from storage.types.codec import encode_one_direct, to_bytes

ROW: Final = "row"
FIELD: Final = "field of row"
RESHAPED: Final = "reshaped"
ROW_IS_NULL: Final = "row is null"
ROW_IS_NOT_NULL: Final = "row is not null"
RECORD: Final = SqlType(Kind.RECORD)


@per_value(ROW, (ANY,), RECORD, strict=False, variadic=True, key_is_name=True, raises=Raises.NEVER)
def row(*values: Any) -> Row:
    """ROW(…): never NULL itself."""
    return Row(values)


@per_value(FIELD, (RECORD, INT4), ANY, key_is_name=True, raises=Raises.NEVER)
def field(value: Row, index: int) -> Any:
    """The field at a position, counted from 0."""
    return value[index]


@per_value(RESHAPED, (ANY,), ANY, key_is_name=True, needs_site=True, raises=Raises.NEVER, internal=True)
def reshaped(site: CallSite, value: Any) -> Any:
    """A value that has rows inside, with their fields as the result's type has them: by name, NULL where it is new."""
    return _reshaped(value, site.args[0], site.result)


def _reshaped(value: Any, old: SqlType, new: SqlType) -> Any:
    if value is None or old == new:
        return value
    if old.element is not None and new.element is not None:
        element, wanted = old.element, new.element
        items = tuple(
            _reshaped(i, old if type(i) is tuple else element, new if type(i) is tuple else wanted) for i in value
        )
        return bounded(items, lower_bounds(value, 1))
    places = {name: i for i, (name, _) in enumerate(old.fields)}
    return Row(
        _reshaped(value[places[name]], old.fields[places[name]][1], type_) if name in places else None
        for name, type_ in new.fields
    )


@per_value(ROW_IS_NULL, (RECORD,), BOOL, strict=False, key_is_name=True, raises=Raises.NEVER)
def row_is_null(value: Row | None) -> bool:
    """Whether the row or all of its fields are NULL (``IS NULL`` of a row)."""
    return value is None or all(v is None for v in value)


@per_value(ROW_IS_NOT_NULL, (RECORD,), BOOL, strict=False, key_is_name=True, raises=Raises.NEVER)
def row_is_not_null(value: Row | None) -> bool:
    """Whether no field is NULL (``IS NOT NULL`` of a row)."""
    return value is not None and all(v is not None for v in value)


def _image(type_: SqlType, value: Any) -> bytes:
    """A key of how a value is stored: words as unsigned numbers, other values by their bytes, then by their length."""
    if type_.storage is Storage.DIRECT and not isinstance(value, Decimal):
        return struct.pack(">Q", encode_one_direct(type_, value) & (1 << 64) - 1)
    data = to_bytes(type_, value)
    return data.replace(b"\0", b"\0\xff") + b"\0\x01"


def _row_image(type_: SqlType, value: Row) -> bytes:
    pairs = zip(type_.fields, value, strict=True)
    return b"".join(b"\x02" if v is None else b"\x01" + _image(t, v) for (_, t), v in pairs)


def _compare_images(comparison: Comparison) -> None:
    @per_value(f"*{comparison.value}", (RECORD, RECORD), BOOL, needs_site=True, makes_null=False, raises=Raises.NEVER)
    def compared(site: CallSite, a: Row, b: Row) -> bool:
        return bool(_OPERATORS[comparison](_row_image(site.args[0], a), _row_image(site.args[1], b)))


_OPERATORS: Final[dict[Comparison, Callable[[bytes, bytes], bool]]] = {
    Comparison.EQUAL: operator.eq, Comparison.NOT_EQUAL: operator.ne, Comparison.LESS: operator.lt,
    Comparison.NOT_GREATER: operator.le, Comparison.GREATER: operator.gt, Comparison.NOT_LESS: operator.ge,
}  # fmt: skip
for _comparison in Comparison:
    _compare_images(_comparison)
