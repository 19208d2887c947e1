"""What time it is, dates and times made of numbers, time zones, justified intervals."""

from __future__ import annotations

import math
import time as clock

from ivm.errors import SqlError
from ivm.words import (
    BOOL,
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
)  # fmt: skip
from planner.expr.functions.intervals import (
    age,
    checked_stamp,
    estimate,
    is_infinite,
    justify_days,
    justify_hours,
    justify_interval,
)  # fmt: skip
from planner.expr.functions.table import Site, per_value
from planner.expr.functions.time import age_between_zoned
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
    parse_iso_offset,
    to_local,
    to_utc,
)  # fmt: skip
from storage.types.text_interval import Interval, checked_interval
from storage.types.time_output import round_micros

_UNIX: int = EPOCH_DAYS * DAY


def _today(site: Site) -> int:
    return to_local(site.context.now, site.context.timezone) // DAY


@per_value("age", (TIMESTAMP,), INTERVAL, volatility="stable", needs_site=True)
def age_today(site: Site, stamp: int) -> Interval:
    return age(_today(site) * DAY, stamp)


@per_value("age", (TIMESTAMPTZ,), INTERVAL, volatility="stable", needs_site=True)
def age_today_zoned(site: Site, stamp: int) -> Interval:
    return age_between_zoned(site, to_utc(_today(site) * DAY, site.context.timezone), stamp)


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
def make_timestamptz(site: Site, year: int, month: int, day: int, hour: int, minute: int, second: float) -> int:
    return to_utc(make_timestamp(year, month, day, hour, minute, second), site.context.timezone)


@per_value("make_timestamptz", (*_STAMP_PARTS, TEXT), TIMESTAMPTZ)
def make_timestamptz_in(year: int, month: int, day: int, hour: int, minute: int, second: float, zone: str) -> int:
    return _from_zone(zone, make_timestamp(year, month, day, hour, minute, second))


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
    if not math.isfinite(secs):
        raise SqlError("22008", "interval out of range")
    micros = hours * HOUR + mins * MINUTE + round(secs * SECOND)
    return checked_interval(years * 12 + months, weeks * 7 + days, micros)


@per_value("now", (), TIMESTAMPTZ, volatility="stable", needs_site=True)
@per_value("transaction_timestamp", (), TIMESTAMPTZ, volatility="stable", needs_site=True)
@per_value("current_timestamp", (), TIMESTAMPTZ, volatility="stable", needs_site=True)
def now(site: Site) -> int:
    return site.context.now


@per_value("current_timestamp", (INT4,), TIMESTAMPTZ, volatility="stable", needs_site=True)
def now_rounded(site: Site, precision: int) -> int:
    return round_micros(site.context.now, precision)


@per_value("statement_timestamp", (), TIMESTAMPTZ, volatility="stable", needs_site=True)
def statement_timestamp(site: Site) -> int:
    return site.context.statement_now or site.context.now


@per_value("clock_timestamp", (), TIMESTAMPTZ, volatility="volatile")
def clock_timestamp() -> int:
    return clock.time_ns() // 1000 - _UNIX


@per_value("localtimestamp", (), TIMESTAMP, volatility="stable", needs_site=True)
def localtimestamp(site: Site) -> int:
    return to_local(site.context.now, site.context.timezone)


@per_value("localtimestamp", (INT4,), TIMESTAMP, volatility="stable", needs_site=True)
def localtimestamp_rounded(site: Site, precision: int) -> int:
    return round_micros(localtimestamp(site), precision)


@per_value("current_date", (), DATE, volatility="stable", needs_site=True)
def current_date(site: Site) -> int:
    return _today(site)


@per_value("localtime", (), TIME, volatility="stable", needs_site=True)
def localtime(site: Site) -> int:
    return localtimestamp(site) % DAY


@per_value("to_timestamp", (FLOAT8,), TIMESTAMPTZ)
def to_timestamp(seconds: float) -> int:
    if math.isnan(seconds):
        raise SqlError("22008", "timestamp cannot be NaN")
    if math.isinf(seconds):
        return POSITIVE_INFINITY if seconds > 0 else NEGATIVE_INFINITY
    try:
        return checked_stamp(round((seconds - EPOCH_DAYS * 86400) * SECOND))
    except (SqlError, OverflowError):
        raise SqlError("22008", f'timestamp out of range: "{seconds:g}"') from None


@per_value("justify_hours", (INTERVAL,), INTERVAL)
def justified_hours(interval: Interval) -> Interval:
    return justify_hours(interval)


@per_value("justify_days", (INTERVAL,), INTERVAL)
def justified_days(interval: Interval) -> Interval:
    return justify_days(interval)


@per_value("justify_interval", (INTERVAL,), INTERVAL)
def justified_interval(interval: Interval) -> Interval:
    return justify_interval(interval)


@per_value("isfinite", (DATE,), BOOL)
@per_value("isfinite", (TIMESTAMP,), BOOL)
@per_value("isfinite", (TIMESTAMPTZ,), BOOL)
def isfinite(value: int) -> bool:
    return not is_infinite(value)


@per_value("isfinite", (INTERVAL,), BOOL)
def isfinite_interval(value: Interval) -> bool:
    return estimate(value) is not None


def _offset_text(zone: str) -> int | None:
    # SQL's AT TIME ZONE takes a bare offset too; it counts west as positive there, as POSIX does
    offset = parse_iso_offset(zone.strip())
    return None if offset is None else -offset


def _from_zone(zone: str, local: int) -> int:
    offset = parse_iso_offset(zone.strip())
    return checked_stamp(local - offset * SECOND if offset is not None else to_utc(local, zone))


@per_value("timezone", (TEXT, TIMESTAMP), TIMESTAMPTZ)
def timezone_of_stamp(zone: str, local: int) -> int:
    if is_infinite(local):
        return local
    offset = _offset_text(zone)
    return checked_stamp(local - offset * SECOND if offset is not None else to_utc(local, zone))


@per_value("timezone", (TEXT, TIMESTAMPTZ), TIMESTAMP)
def timezone_of_zoned(zone: str, stamp: int) -> int:
    if is_infinite(stamp):
        return stamp
    offset = _offset_text(zone)
    return checked_stamp(stamp + offset * SECOND if offset is not None else to_local(stamp, zone))


def _interval_offset(interval: Interval) -> int:
    if interval[0] or interval[1]:
        raise SqlError("22023", "interval time zone must not include months or days")
    return interval[2]


@per_value("timezone", (INTERVAL, TIMESTAMP), TIMESTAMPTZ)
def timezone_by_interval(zone: Interval, local: int) -> int:
    return local if is_infinite(local) else checked_stamp(local - _interval_offset(zone))


@per_value("timezone", (INTERVAL, TIMESTAMPTZ), TIMESTAMP)
def timezone_by_interval_zoned(zone: Interval, stamp: int) -> int:
    return stamp if is_infinite(stamp) else checked_stamp(stamp + _interval_offset(zone))
