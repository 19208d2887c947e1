"""make_date and its kin, which build dates, times, timestamps and intervals from numbers; justify_*."""

from __future__ import annotations

import math

from ivm.errors import SqlError
from ivm.words import (
    DATE,
    FLOAT8,
    INT4,
    INTERVAL,
    NEGATIVE_INFINITY,
    POSITIVE_INFINITY,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
)
from planner.expr.functions.datetime.columns import of_epoch
from planner.expr.functions.datetime.intervals import checked_stamp, justify_days, justify_hours, justify_interval
from planner.expr.functions.datetime.zones import in_zone
from planner.expr.functions.table import CallSite, per_value
from storage.types.calendar import (
    DAY,
    EPOCH_DAYS,
    HOUR,
    MAX_DATE,
    MIN_DATE,
    MINUTE,
    SECOND,
    days_from_civil,
    days_in_month,
)
from storage.types.interval_output import Interval
from storage.types.text_interval import checked_interval
from storage.types.zones import to_utc


@per_value("make_date", (INT4, INT4, INT4), DATE)
def make_date(year: int, month: int, day: int) -> int:
    actual = year if year > 0 else year + 1
    if year == 0 or not 1 <= month <= 12 or not 1 <= day <= days_in_month(actual, month):
        raise SqlError("22008", f"date field value out of range: {year}-{month:02d}-{day:02d}")
    days = days_from_civil(actual, month, day)
    if not MIN_DATE <= days <= MAX_DATE:
        raise SqlError("22008", f"date out of range: {year}-{month:02d}-{day:02d}")
    return days


@per_value("make_time", (INT4, INT4, FLOAT8), TIME)
def make_time(hour: int, minute: int, second: float) -> int:
    legal = 0 <= second <= 60  # not NaN either
    micros = hour * HOUR + minute * MINUTE + round(second * SECOND) if legal else -1
    if hour < 0 or not 0 <= minute < 60 or not 0 <= second <= 60 or not 0 <= micros <= DAY:
        raise SqlError("22008", f"time field value out of range: {hour}:{minute:02d}:{second:02g}")
    return micros


@per_value("make_timestamp", (INT4, INT4, INT4, INT4, INT4, FLOAT8), TIMESTAMP)
def make_timestamp(year: int, month: int, day: int, hour: int, minute: int, second: float) -> int:
    return checked_stamp(make_date(year, month, day) * DAY + make_time(hour, minute, second))


_STAMP_PARTS = (INT4, INT4, INT4, INT4, INT4, FLOAT8)


@per_value("make_timestamptz", _STAMP_PARTS, TIMESTAMPTZ, volatility="settings", needs_site=True)
def make_timestamptz(site: CallSite, year: int, month: int, day: int, hour: int, minute: int, second: float) -> int:
    return to_utc(make_timestamp(year, month, day, hour, minute, second), site.context.timezone)


@per_value("make_timestamptz", (*_STAMP_PARTS, TEXT), TIMESTAMPTZ)
def make_timestamptz_in(year: int, month: int, day: int, hour: int, minute: int, second: float, zone: str) -> int:
    return in_zone(zone, make_timestamp(year, month, day, hour, minute, second))


@per_value("make_interval", (), INTERVAL)
@per_value("make_interval", (INT4,), INTERVAL)
@per_value("make_interval", (INT4, INT4), INTERVAL)
@per_value("make_interval", (INT4, INT4, INT4), INTERVAL)
@per_value("make_interval", (INT4, INT4, INT4, INT4), INTERVAL)
@per_value("make_interval", (INT4, INT4, INT4, INT4, INT4), INTERVAL)
@per_value("make_interval", (INT4, INT4, INT4, INT4, INT4, INT4), INTERVAL)
@per_value("make_interval", (INT4, INT4, INT4, INT4, INT4, INT4, FLOAT8), INTERVAL)
def make_interval(
    years: int = 0, months: int = 0, weeks: int = 0, days: int = 0, hours: int = 0, mins: int = 0, secs: float = 0.0
) -> Interval:
    if not math.isfinite(secs * SECOND):
        raise SqlError("22008", "interval out of range")
    micros = hours * HOUR + mins * MINUTE + round(secs * SECOND)
    return checked_interval(years * 12 + months, weeks * 7 + days, micros)


@per_value("to_timestamp", (FLOAT8,), TIMESTAMPTZ, vector=of_epoch)
def to_timestamp(seconds: float) -> int:
    if math.isnan(seconds):
        raise SqlError("22008", "timestamp cannot be NaN")
    if math.isinf(seconds):
        return POSITIVE_INFINITY if seconds > 0 else NEGATIVE_INFINITY
    try:
        return checked_stamp(round((seconds - EPOCH_DAYS * 86400) * SECOND))
    except (SqlError, OverflowError):
        raise SqlError("22008", f'timestamp out of range: "{seconds:g}"') from None


per_value("justify_hours", (INTERVAL,), INTERVAL)(justify_hours)
per_value("justify_days", (INTERVAL,), INTERVAL)(justify_days)
per_value("justify_interval", (INTERVAL,), INTERVAL)(justify_interval)
