"""Time with time zone: casts, operators, fields, and AT TIME ZONE."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from ivm.errors import SqlError
from ivm.words import BOOL, DATE, FLOAT8, INTERVAL, NUMERIC, TEXT, TIMESTAMPTZ, Kind, SqlType
from planner.expr.functions.casts.registry import cast_per_value
from planner.expr.functions.datetime.fields import clock_field, not_supported, unit_of
from planner.expr.functions.datetime.intervals import checked_stamp, is_infinite, truncate
from planner.expr.functions.datetime.overlaps import overlaps
from planner.expr.functions.table import CallSite, Raises, per_value
from storage.types.calendar import DAY, SECOND
from storage.types.interval_output import Interval
from storage.types.numeric import from_parts
from storage.types.time_output import round_micros
from storage.types.timetz import timetz, timetz_parts
from storage.types.zones import offset_meant, parse_iso_offset, utc_offset

TIMETZ: Final = SqlType(Kind.TIMETZ)
_LABEL: Final = "time with time zone"


@cast_per_value((Kind.TIMETZ,), (Kind.TIMETZ,), needs_site=True, context="implicit", raises=Raises.NEVER)
def with_precision(site: CallSite, value: int) -> int:
    micros, west = timetz_parts(value)
    return timetz(round_micros(micros, site.result.precision), west)


@cast_per_value((Kind.TIMETZ,), (Kind.TIME,), needs_site=True, context="assignment", raises=Raises.NEVER)
def to_time(site: CallSite, value: int) -> int:
    return round_micros(timetz_parts(value)[0], site.result.precision)


@cast_per_value((Kind.TIME,), (Kind.TIMETZ,), needs_site=True, context="implicit", volatility="stable")
def from_time(site: CallSite, micros: int) -> int:
    east = utc_offset(site.context.now, site.context.timezone)
    return timetz(round_micros(micros, site.result.precision), -east)


@cast_per_value(
    (Kind.TIMESTAMPTZ,), (Kind.TIMETZ,), needs_site=True, context="assignment", volatility="settings", makes_null=True
)
def from_stamp(site: CallSite, stamp: int) -> int | None:
    if is_infinite(stamp):
        return None
    east = utc_offset(stamp, site.context.timezone)
    return timetz(round_micros((stamp + east * SECOND) % DAY, site.result.precision), -east)


def _shifted(value: int, interval: Interval, sign: int) -> int:
    micros, west = timetz_parts(value)
    return timetz((micros + sign * interval[2]) % DAY, west)


per_value("+", (TIMETZ, INTERVAL), TIMETZ, makes_null=False)(lambda value, interval: _shifted(value, interval, 1))
per_value("+", (INTERVAL, TIMETZ), TIMETZ, makes_null=False)(lambda interval, value: _shifted(value, interval, 1))
per_value("-", (TIMETZ, INTERVAL), TIMETZ, makes_null=False)(lambda value, interval: _shifted(value, interval, -1))


@per_value("+", (DATE, TIMETZ), TIMESTAMPTZ, makes_null=False)
def date_plus(days: int, value: int) -> int:
    if is_infinite(days):
        return days
    micros, west = timetz_parts(value)
    return checked_stamp(days * DAY + micros + west * SECOND)


per_value("+", (TIMETZ, DATE), TIMESTAMPTZ, makes_null=False)(lambda value, days: date_plus(days, value))
per_value("timestamptz", (DATE, TIMETZ), TIMESTAMPTZ, makes_null=False)(date_plus)
per_value("overlaps", (TIMETZ,) * 4, BOOL, strict=False)(overlaps)


@per_value("extract", (TEXT, TIMETZ), NUMERIC)
def extract(name: str, value: int) -> Decimal | None:
    unit = unit_of(name, _LABEL)
    micros, west = timetz_parts(value)
    match unit:
        case "epoch":
            return from_parts(micros + west * SECOND, 6)
        case "timezone":
            return Decimal(-west)
        case "timezone_hour":
            return Decimal(truncate(-west, 3600))
        case "timezone_minute":
            return Decimal(truncate(-west, 60) - truncate(-west, 3600) * 60)
    found = clock_field(unit, micros)
    if found is None:
        raise not_supported(name, _LABEL)
    return found


@per_value("date_part", (TEXT, TIMETZ), FLOAT8)
def date_part(name: str, value: int) -> float | None:
    found = extract(name, value)
    return None if found is None else float(found)


def _moved(value: int, east: int) -> int:
    micros, west = timetz_parts(value)
    return timetz((micros + (west + east) * SECOND) % DAY, -east)


@per_value("timezone", (TEXT, TIMETZ), TIMETZ, volatility="stable", needs_site=True)
def in_zone(site: CallSite, zone: str, value: int) -> int:
    """A zone's offset is that of now."""
    offset = parse_iso_offset(zone.strip())
    return _moved(value, offset_meant(site.context.now, zone) if offset is None else -offset)


@per_value("timezone", (TIMETZ,), TIMETZ, volatility="stable", needs_site=True)
def at_local(site: CallSite, value: int) -> int:
    """``value AT LOCAL``: the session's zone, with its offset of now."""
    return _moved(value, utc_offset(site.context.now, site.context.timezone))


@per_value("timezone", (INTERVAL, TIMETZ), TIMETZ)
def in_interval(zone: Interval, value: int) -> int:
    if zone[0] or zone[1]:
        raise SqlError("22023", "interval time zone must not include months or days")
    return _moved(value, zone[2] // SECOND)
