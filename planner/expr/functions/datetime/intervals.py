"""Arithmetic of timestamps and intervals, after PostgreSQL's ``timestamp.c``. Timestamps are µs since 2000-01-01."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ivm.errors import SqlError
from ivm.rows import Mask, Words
from ivm.words import NEGATIVE_INFINITY, POSITIVE_INFINITY
from storage.types.calendar import (
    DAY,
    END_TIMESTAMP,
    HOUR,
    MIN_TIMESTAMP,
    civil_from_days,
    days_from_civil,
    days_in_month,
)
from storage.types.interval_output import Interval
from storage.types.text_interval import checked_interval
from storage.types.zones import to_local, to_utc

MONTH_DAYS: Final = 30


def is_infinite(stamp: int) -> bool:
    """Whether a date or timestamp is one of the reserved infinities."""
    return stamp in (POSITIVE_INFINITY, NEGATIVE_INFINITY)


def infinite_words(words: Words) -> Mask:
    """``is_infinite`` of words."""
    infinite: Mask = (words == POSITIVE_INFINITY) | (words == NEGATIVE_INFINITY)
    return infinite


def checked_stamp(stamp: int) -> int:
    """The timestamp. Raises 22008 if it is out of Postgres's range."""
    if not MIN_TIMESTAMP <= stamp < END_TIMESTAMP:
        raise SqlError("22008", "timestamp out of range")
    return stamp


def truncate(value: int, unit: int) -> int:
    """value / unit towards zero, as C divides."""
    quotient = abs(value) // unit
    return quotient if value >= 0 else -quotient


def add_months(days: int, months: int) -> int:
    """A date plus months; the month's last day if that month has no such day."""
    year, month, day = civil_from_days(days)
    total = year * 12 + month - 1 + months
    year, month = total // 12, total % 12 + 1
    return days_from_civil(year, month, min(day, days_in_month(year, month)))


def plus_interval(stamp: int, interval: Interval, sign: int = 1) -> int:
    """timestamp ± interval: months first, then days, then time."""
    if is_infinite(stamp):
        return stamp
    months, days, micros = interval
    if months:
        date, time = divmod(stamp, DAY)
        stamp = checked_stamp(add_months(date, sign * months) * DAY + time)
    return checked_stamp(stamp + sign * (days * DAY + micros))


def plus_interval_zoned(stamp: int, interval: Interval, timezone: str, sign: int = 1) -> int:
    """timestamptz ± interval: months and days on the zone's wall clock, the rest in elapsed time."""
    if is_infinite(stamp):
        return stamp
    months, days, micros = interval
    if months or days:
        local = plus_interval(to_local(stamp, timezone), (months, days, 0), sign)
        stamp = to_utc(local, timezone)
    return checked_stamp(stamp + sign * micros)


def difference(left: int, right: int) -> Interval:
    """timestamp - timestamp, in days and time."""
    if is_infinite(left) or is_infinite(right):
        raise SqlError("22008", "cannot subtract infinite timestamps")
    return justify_hours((0, 0, left - right))


def _carried(upper: int, lower: int, unit: int) -> tuple[int, int]:
    """Turns whole units of the lower field into the upper one."""
    whole = truncate(lower, unit)
    return upper + whole, lower - whole * unit


def _one_sign(upper: int, lower: int, unit: int) -> tuple[int, int]:
    """Gives both fields one sign."""
    if upper > 0 > lower:
        return upper - 1, lower + unit
    if upper < 0 < lower:
        return upper + 1, lower - unit
    return upper, lower


def justify_hours(interval: Interval) -> Interval:
    """justify_hours: turns 24 hours into a day; days and time get one sign."""
    months, days, micros = interval
    return checked_interval(months, *_one_sign(*_carried(days, micros, DAY), DAY))


def justify_days(interval: Interval) -> Interval:
    """justify_days: turns 30 days into a month; months and days get one sign."""
    months, days, micros = interval
    return checked_interval(*_one_sign(*_carried(months, days, MONTH_DAYS), MONTH_DAYS), micros)


def justify_interval(interval: Interval) -> Interval:
    """justify_interval: both of the above, with one sign for all three fields."""
    months, days, micros = interval
    days, micros = _carried(days, micros, DAY)
    months, days = _carried(months, days, MONTH_DAYS)
    if months > 0 and (days < 0 or (days == 0 and micros < 0)):
        months, days = months - 1, days + MONTH_DAYS
    elif months < 0 and (days > 0 or (days == 0 and micros > 0)):
        months, days = months + 1, days - MONTH_DAYS
    return checked_interval(months, *_one_sign(days, micros, DAY))


def scale_interval(interval: Sequence[int], by: Callable[[float], float]) -> Interval:
    """An interval multiplied or divided by a number (``by`` does so for one field); fractions carry down."""
    months, days, micros = interval
    scaled_months, scaled_days, scaled_micros = by(months), by(days), by(micros)
    if not all(abs(part) < 2**63 for part in (scaled_months, scaled_days, scaled_micros)):
        raise SqlError("22008", "interval out of range")
    whole_months, whole_days = int(scaled_months), int(scaled_days)
    month_rest = _snap((scaled_months - whole_months) * MONTH_DAYS)
    seconds = _snap((scaled_days - whole_days + month_rest - int(month_rest)) * 86400)
    if abs(seconds) >= 86400:
        whole_days += int(seconds / 86400)
        seconds -= int(seconds / 86400) * 86400
    return checked_interval(whole_months, whole_days + int(month_rest), round(scaled_micros + seconds * 1_000_000))


def _snap(value: float) -> float:
    # PostgreSQL's TSROUND: rounds to microseconds, to hide errors of binary fractions
    return round(value * 1_000_000) / 1_000_000


def age(left: int, right: int) -> Interval:
    """The symbolic difference in years, months, days and time, as PostgreSQL's ``timestamp_age``."""
    if is_infinite(left) or is_infinite(right):
        raise SqlError("22008", "timestamp out of range")
    backwards = left < right
    (date1, time1), (date2, time2) = divmod(left, DAY), divmod(right, DAY)
    (year1, month1, day1), (year2, month2, day2) = civil_from_days(date1), civil_from_days(date2)
    sign = -1 if backwards else 1
    micros, days = sign * (time1 - time2), sign * (day1 - day2)
    months = sign * ((year1 * 12 + month1) - (year2 * 12 + month2))
    if micros < 0:
        micros, days = micros + DAY, days - 1
    year, month = (year1, month1) if backwards else (year2, month2)
    while days < 0:
        days, months = days + days_in_month(year, month), months - 1
    return sign * months, sign * days, sign * micros


def wrapped_time(time: int, interval: Interval, sign: int = 1) -> int:
    """time ± interval, modulo a day."""
    return (time + sign * (interval[2] % (24 * HOUR))) % DAY
