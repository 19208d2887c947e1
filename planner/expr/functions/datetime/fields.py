"""extract and date_trunc: the fields of dates, timestamps, times and intervals, after PostgreSQL's rules.

A field's value is (integer, scale): a numeric with that display scale.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from ivm.errors import SqlError
from planner.expr.functions.datetime.intervals import is_infinite, truncate
from planner.expr.functions.numbers.division import divide, division_scale
from storage.types.calendar import DAY, EPOCH_DAYS, HOUR, MINUTE, SECOND, civil_from_days, days_from_civil
from storage.types.interval_output import Interval
from storage.types.numeric import WIDE, from_parts

_ALIASES: Final[dict[str, str]] = {
    alias: unit
    for unit, aliases in {
        "microseconds": "microseconds microsecond usec usecs us usecond useconds microsecon",
        "milliseconds": "milliseconds millisecond msec msecs ms mseconds",
        "second": "second seconds sec secs s",
        "minute": "minute minutes min mins m",
        "hour": "hour hours hr hrs h",
        "day": "day days d",
        "week": "week weeks w",
        "month": "month months mon mons",
        "quarter": "quarter qtr quarters",
        "year": "year years yr yrs y",
        "decade": "decade decades dec decs",
        "century": "century centuries c cent",
        "millennium": "millennium millennia mil mils millenniums",
        "julian": "julian jd j",
        "isoyear": "isoyear",
        "dow": "dow",
        "isodow": "isodow",
        "doy": "doy",
        "epoch": "epoch",
        "timezone": "timezone",
        "timezone_hour": "timezone_hour timezone_h",
        "timezone_minute": "timezone_minute timezone_m",
    }.items()
    for alias in aliases.split()
}
_UNBOUNDED: Final = ("year", "decade", "century", "millennium", "julian", "isoyear", "epoch")
_JULIAN_2000: Final = 2451545
_CLOCK: Final = ("microseconds", "milliseconds", "second", "minute", "hour")
_YEARS: Final = {"decade": 10, "century": 100, "millennium": 1000}
TRUNCATED: Final = {"microseconds": 1, "milliseconds": 1000, "second": SECOND, "minute": MINUTE, "hour": HOUR}


def unit_of(name: str, label: str) -> str:
    """The canonical name of a field. Raises 22023 for an unknown name."""
    unit = _ALIASES.get(name.lower())
    if unit is None:
        raise SqlError("22023", f'unit "{name}" not recognized for type {label}')
    return unit


def not_supported(name: str, label: str) -> SqlError:
    return SqlError("0A000", f'unit "{name}" not supported for type {label}')


def clock_field(unit: str, micros: int) -> Decimal | None:
    """A field of a time of day."""
    match unit:
        case "microseconds":
            return Decimal(micros % MINUTE)
        case "milliseconds":
            return from_parts(micros % MINUTE, 3)
        case "second":
            return from_parts(micros % MINUTE, 6)
        case "minute":
            return Decimal(micros // MINUTE % 60)
        case "hour":
            return Decimal(micros // HOUR)
    return None


def iso_week(days: int) -> tuple[int, int]:
    """ISO 8601's (year, week) of a date."""
    # the Thursday of the date's week decides
    thursday = days - (days + 5) % 7 + 3
    year = civil_from_days(thursday)[0]
    return year, (thursday - days_from_civil(year, 1, 1)) // 7 + 1


def _shown(year: int) -> int:
    return year if year > 0 else year - 1


def _group_of_years(year: int, size: int) -> int:
    if size == 10:
        return year // 10 if year >= 0 else -((8 - (year - 1)) // 10)
    return (year + size - 1) // size if year > 0 else -((size - 1 - (year - 1)) // size)


def date_field(unit: str, days: int) -> int | None:
    """A field of a date that is not infinite."""
    year, month, day = civil_from_days(days)
    match unit:
        case "day":
            return day
        case "month":
            return month
        case "quarter":
            return (month - 1) // 3 + 1
        case "week":
            return iso_week(days)[1]
        case "isoyear":
            return _shown(iso_week(days)[0])
        case "year":
            return _shown(year)
        case "decade" | "century" | "millennium":
            return _group_of_years(year, _YEARS[unit])
        case "julian":
            return days + _JULIAN_2000
        case "dow":
            return (days + 6) % 7
        case "isodow":
            return (days + 5) % 7 + 1
        case "doy":
            return days - days_from_civil(year, 1, 1) + 1
    return None


def infinite_field(unit: str, stamp: int) -> Decimal | None:
    """A field of infinity: infinite for fields that grow without bound, NULL for cyclic ones."""
    if unit in _UNBOUNDED:
        return Decimal("Infinity" if stamp > 0 else "-Infinity")
    return None


def extract_date(name: str, days: int) -> Decimal | None:
    unit = unit_of(name, "date")
    if unit in _CLOCK or unit.startswith("timezone"):
        raise not_supported(name, "date")
    if is_infinite(days):
        return infinite_field(unit, days)
    if unit == "epoch":
        return Decimal((days + EPOCH_DAYS) * 86400)
    field = date_field(unit, days)
    return None if field is None else Decimal(field)


def extract_stamp(name: str, local: int, stamp: int, offset: int | None) -> Decimal | None:
    """A field of a timestamp. With a zone, ``offset`` is in seconds east of Greenwich and ``stamp`` the instant."""
    label = f"timestamp {'without' if offset is None else 'with'} time zone"
    unit = unit_of(name, label)
    if is_infinite(stamp):
        return infinite_field(unit, stamp)
    if unit.startswith("timezone") and offset is None:
        raise not_supported(name, label)
    if unit == "epoch":
        return from_parts(stamp + EPOCH_DAYS * DAY, 6)
    if offset is not None and unit.startswith("timezone"):
        return Decimal({"timezone": offset, "timezone_hour": truncate(offset, 3600),
                        "timezone_minute": truncate(offset, 60) - truncate(offset, 3600) * 60}[unit])  # fmt: skip
    days, micros = divmod(local, DAY)
    if unit == "julian":
        scale = division_scale((micros, 0), (DAY, 0))
        part = from_parts(divide((micros, 0), (DAY, 0), scale), scale)
        return WIDE.add(Decimal(days + _JULIAN_2000), part)
    field = date_field(unit, days)
    return clock_field(unit, micros) if field is None else Decimal(field)


def extract_time(name: str, micros: int) -> Decimal | None:
    unit = unit_of(name, "time without time zone")
    if unit == "epoch":
        return from_parts(micros, 6)
    if unit not in _CLOCK:
        raise not_supported(name, "time without time zone")
    return clock_field(unit, micros)


def extract_interval(name: str, interval: Interval) -> Decimal | None:
    """A field of an interval; it keeps the sign of its part."""
    unit = unit_of(name, "interval")
    months, days, micros = interval
    years = truncate(months, 12)
    if unit == "epoch":
        seconds = (1461 * years + 120 * (months - years * 12) + 4 * days) * 21600
        return from_parts(seconds * SECOND + micros, 6)
    if unit in _CLOCK:
        size = clock_field(unit, abs(micros))
        assert size is not None
        return -size if micros < 0 and size else size
    match unit:
        case "day":
            return Decimal(days)
        case "month":
            return Decimal(months - years * 12)
        case "quarter":
            return Decimal(truncate(months - years * 12, 3) + 1)
        case "year":
            return Decimal(years)
        case "decade" | "century" | "millennium":
            return Decimal(truncate(years, _YEARS[unit]))
    raise not_supported(name, "interval")


def truncate_stamp(name: str, stamp: int, label: str) -> int:
    """date_trunc of a wall-clock timestamp."""
    if is_infinite(stamp):
        return stamp
    unit = unit_of(name, label)
    if unit in TRUNCATED:
        return stamp // TRUNCATED[unit] * TRUNCATED[unit]
    days = stamp // DAY
    year, month, _ = civil_from_days(days)
    match unit:
        case "day":
            first = days
        case "week":
            first = days - (days + 5) % 7
        case "month":
            first = days_from_civil(year, month, 1)
        case "quarter":
            first = days_from_civil(year, (month - 1) // 3 * 3 + 1, 1)
        case "year":
            first = days_from_civil(year, 1, 1)
        case "decade":
            first = days_from_civil(_group_of_years(year, 10) * 10, 1, 1)
        case "century" | "millennium":
            size = _YEARS[unit]
            group = _group_of_years(year, size)
            first = days_from_civil(group * size - size + 1 if year > 0 else group * size + 1, 1, 1)
        case _:
            raise not_supported(name, label)
    return first * DAY


def truncate_interval(name: str, interval: Interval) -> Interval:
    """date_trunc of an interval: the fields below the unit become zero."""
    unit = unit_of(name, "interval")
    months, days, micros = interval
    if unit in TRUNCATED:
        return months, days, truncate(micros, TRUNCATED[unit]) * TRUNCATED[unit]
    if unit == "day":
        return months, days, 0
    sizes = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}
    if unit not in sizes:
        detail = "Months usually have fractional weeks." if unit == "week" else None
        raise SqlError("0A000", f'unit "{name}" not supported for type interval', detail)
    return truncate(months, sizes[unit]) * sizes[unit], 0, 0
