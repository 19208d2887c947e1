"""The fields that narrow type interval (``interval day to second(2)``): a mask, with PostgreSQL's bits of a typmod.

The last field is the unit of a bare number in a literal; what lies below it is cut off.
"""

from __future__ import annotations

from typing import Final

from storage.types.calendar import HOUR, MINUTE
from storage.types.interval_output import Interval

_YEAR, _MONTH, _DAY, _HOUR, _MINUTE, _SECOND = 1 << 2, 1 << 1, 1 << 3, 1 << 10, 1 << 11, 1 << 12
FIELDS: Final[dict[str, int]] = {
    "year": _YEAR, "month": _MONTH, "day": _DAY, "hour": _HOUR, "minute": _MINUTE, "second": _SECOND,
    "year to month": _YEAR | _MONTH, "day to hour": _DAY | _HOUR, "day to minute": _DAY | _HOUR | _MINUTE,
    "day to second": _DAY | _HOUR | _MINUTE | _SECOND, "hour to minute": _HOUR | _MINUTE,
    "hour to second": _HOUR | _MINUTE | _SECOND, "minute to second": _MINUTE | _SECOND,
}  # fmt: skip
NAMES: Final = {mask: name for name, mask in FIELDS.items()}
MINUTE_TO_SECOND: Final = _MINUTE | _SECOND
ALL_DIGITS: Final = 0xFFFF
"""The precision of an interval that has fields and no precision."""


def unit_of_fields(mask: int) -> str:
    """The last field."""
    return NAMES[mask].rsplit(" to ", 1)[-1]


def cut_to_fields(interval: Interval, mask: int | None) -> Interval:
    """The interval without what is below the last field; ``mask`` None: all of it."""
    months, days, micros = interval
    match None if mask is None else unit_of_fields(mask):
        case "year":
            return _down(months, 12), 0, 0
        case "month":
            return months, 0, 0
        case "day":
            return months, days, 0
        case "hour":
            return months, days, _down(micros, HOUR)
        case "minute":
            return months, days, _down(micros, MINUTE)
    return interval


def _down(value: int, unit: int) -> int:
    """To a multiple of the unit, towards zero."""
    return value // unit * unit if value >= 0 else -(-value // unit * unit)
