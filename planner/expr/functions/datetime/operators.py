"""Functions and operators of dates, times, timestamps and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Words
from ivm.words import (
    BOOL,
    DATE,
    FLOAT8,
    INT4,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
)  # fmt: skip
from planner.expr.functions.datetime import columns
from planner.expr.functions.datetime.fields import (
    TRUNCATED,
    extract_date,
    extract_interval,
    extract_stamp,
    extract_time,
    truncate_interval,
    truncate_stamp,
    unit_of,
)  # fmt: skip
from planner.expr.functions.datetime.interval_columns import aged, between, scaled, summed
from planner.expr.functions.datetime.intervals import (
    age,
    checked_stamp,
    difference,
    infinite_words,
    is_infinite,
    plus_interval,
    plus_interval_zoned,
    scale_interval,
    wrapped_time,
)  # fmt: skip
from planner.expr.functions.table import CallSite, VectorForm, indices, per_value, vectorised
from storage.types.calendar import DAY, MAX_DATE, MIN_DATE, SECOND
from storage.types.interval_output import Interval
from storage.types.text_interval import checked_interval
from storage.types.zones import to_local, to_utc, utc_offset, zone_meant


@vectorised("+", (DATE, INT4), DATE, makes_null=False, follows=(1, 1))
def date_plus(site: CallSite, days: Words, count: Words) -> Words:
    infinite = infinite_words(days)
    moved = np.where(infinite, days, np.where(infinite, 0, days) + count)
    site.fail_where(~infinite & ((moved < MIN_DATE) | (moved > MAX_DATE)), SqlError("22008", "date out of range"))
    return moved


vectorised("+", (INT4, DATE), DATE, makes_null=False, follows=(1, 1))(
    lambda site, count, days: date_plus(site, days, count)
)
vectorised("-", (DATE, INT4), DATE, makes_null=False, follows=(1, -1))(
    lambda site, days, count: date_plus(site, days, -count)
)


@vectorised("-", (DATE, DATE), INT4, makes_null=False, follows=(1, -1))
def date_difference(site: CallSite, left: Words, right: Words) -> Words:
    infinite = infinite_words(left) | infinite_words(right)
    site.fail(indices(infinite), SqlError("22008", "cannot subtract infinite dates"))
    return np.where(infinite, 0, left - np.where(infinite, 0, right))


def _stamp_of_date(days: int) -> int:
    return days if is_infinite(days) else checked_stamp(days * DAY)


def _shifts(
    moment: SqlType,
    result: SqlType,
    shift: Callable[[int, Interval, int], int],
    form: Callable[[int, bool], VectorForm] | None = None,
) -> None:
    """Adds moment + interval, interval + moment and moment - interval; ``shift`` takes 1 or -1 as its last, ``form``
    that and whether the interval comes first. A time of day wraps around."""
    first, second = ((), ()) if moment == TIME else ((1, 0), (0, 1))
    vectors = [None, None, None] if form is None else [form(1, False), form(1, True), form(-1, False)]
    adding = partial(per_value, "+", result=result, makes_null=False)
    adding((moment, INTERVAL), follows=first, vector=vectors[0])(lambda time, interval: shift(time, interval, 1))
    adding((INTERVAL, moment), follows=second, vector=vectors[1])(lambda interval, time: shift(time, interval, 1))
    taking = per_value("-", (moment, INTERVAL), result, makes_null=False, follows=first, vector=vectors[2])
    taking(lambda time, interval: shift(time, interval, -1))


_shifts(
    DATE,
    TIMESTAMP,
    lambda days, interval, sign: plus_interval(_stamp_of_date(days), interval, sign),
    columns.shifted_date,
)


@per_value("+", (DATE, TIME), TIMESTAMP, makes_null=False)
def date_plus_time(days: int, time: int) -> int:
    return days if is_infinite(days) else checked_stamp(days * DAY + time)


per_value("+", (TIME, DATE), TIMESTAMP, makes_null=False)(lambda time, days: date_plus_time(days, time))
per_value("timestamp", (DATE, TIME), TIMESTAMP, makes_null=False)(date_plus_time)


@per_value("timestamptz", (DATE, TIME), TIMESTAMPTZ, makes_null=False, volatility="settings", needs_site=True)
def zoned_date_plus_time(site: CallSite, days: int, time: int) -> int:
    """The time of that day in the session's zone."""
    stamp = date_plus_time(days, time)
    return stamp if is_infinite(stamp) else checked_stamp(to_utc(stamp, site.context.timezone))


_shifts(TIMESTAMP, TIMESTAMP, plus_interval, columns.shifted)


@per_value(
    "+",
    (TIMESTAMPTZ, INTERVAL),
    TIMESTAMPTZ,
    volatility="settings",
    needs_site=True,
    follows=(1, 0),
    makes_null=False,
    vector=columns.shifted_zoned(1),
)
def zoned_plus(site: CallSite, stamp: int, interval: Interval) -> int:
    return plus_interval_zoned(stamp, interval, site.context.timezone)


@per_value(
    "+",
    (INTERVAL, TIMESTAMPTZ),
    TIMESTAMPTZ,
    volatility="settings",
    needs_site=True,
    follows=(0, 1),
    makes_null=False,
    vector=columns.shifted_zoned(1, True),
)
def plus_zoned(site: CallSite, interval: Interval, stamp: int) -> int:
    return plus_interval_zoned(stamp, interval, site.context.timezone)


@per_value(
    "-",
    (TIMESTAMPTZ, INTERVAL),
    TIMESTAMPTZ,
    volatility="settings",
    needs_site=True,
    follows=(1, 0),
    makes_null=False,
    vector=columns.shifted_zoned(-1),
)
def zoned_minus(site: CallSite, stamp: int, interval: Interval) -> int:
    return plus_interval_zoned(stamp, interval, site.context.timezone, -1)


per_value(
    "date_add",
    (TIMESTAMPTZ, INTERVAL),
    TIMESTAMPTZ,
    volatility="settings",
    needs_site=True,
    vector=columns.shifted_zoned(1),
)(zoned_plus)
per_value(
    "date_subtract",
    (TIMESTAMPTZ, INTERVAL),
    TIMESTAMPTZ,
    volatility="settings",
    needs_site=True,
    vector=columns.shifted_zoned(-1),
)(zoned_minus)


@per_value("date_add", (TIMESTAMPTZ, INTERVAL, TEXT), TIMESTAMPTZ)
def date_add(stamp: int, interval: Interval, timezone: str) -> int:
    return plus_interval_zoned(stamp, interval, zone_meant(timezone))


@per_value("date_subtract", (TIMESTAMPTZ, INTERVAL, TEXT), TIMESTAMPTZ)
def date_subtract(stamp: int, interval: Interval, timezone: str) -> int:
    return plus_interval_zoned(stamp, interval, zone_meant(timezone), -1)


per_value("-", (TIMESTAMPTZ, TIMESTAMPTZ), INTERVAL, makes_null=False, follows=(1, -1), vector=between)(difference)
per_value("-", (TIMESTAMP, TIMESTAMP), INTERVAL, makes_null=False, follows=(1, -1), vector=between)(difference)


@per_value("+", (INTERVAL, INTERVAL), INTERVAL, makes_null=False, vector=summed(1))
def interval_plus(left: Interval, right: Interval) -> Interval:
    return checked_interval(left[0] + right[0], left[1] + right[1], left[2] + right[2])


@per_value("-", (INTERVAL, INTERVAL), INTERVAL, makes_null=False, vector=summed(-1))
def interval_minus(left: Interval, right: Interval) -> Interval:
    return checked_interval(left[0] - right[0], left[1] - right[1], left[2] - right[2])


@per_value("-", (INTERVAL,), INTERVAL, makes_null=False)
def interval_negated(value: Interval) -> Interval:
    return checked_interval(-value[0], -value[1], -value[2])


@per_value("+", (INTERVAL,), INTERVAL, makes_null=False)
def interval_same(value: Interval) -> Interval:
    return value


@per_value("*", (INTERVAL, FLOAT8), INTERVAL, makes_null=False, vector=scaled(np.multiply))
def interval_times(value: Interval, factor: float) -> Interval:
    if not math.isfinite(factor):
        raise SqlError("22008", "interval out of range")
    return scale_interval(value, lambda part: part * factor)


per_value("*", (FLOAT8, INTERVAL), INTERVAL, makes_null=False, vector=scaled(np.multiply, number_first=True))(
    lambda factor, value: interval_times(value, factor)
)


@per_value("/", (INTERVAL, FLOAT8), INTERVAL, makes_null=False, vector=scaled(np.divide))
def interval_divided(value: Interval, divisor: float) -> Interval:
    if divisor == 0:
        raise SqlError("22012", "division by zero")
    if math.isnan(divisor):
        raise SqlError("22008", "interval out of range")
    return scale_interval(value, lambda part: part / divisor)


_shifts(TIME, TIME, wrapped_time)


@per_value("-", (TIME, TIME), INTERVAL, makes_null=False)
def time_difference(left: int, right: int) -> Interval:
    return 0, 0, left - right


per_value("extract", (TEXT, DATE), NUMERIC, vector=columns.extracted_of_date)(extract_date)


@per_value("extract", (TEXT, TIMESTAMP), NUMERIC, vector=columns.extracted(columns.wall_clock))
def extract_of_stamp(unit: str, stamp: int) -> Decimal | None:
    return extract_stamp(unit, stamp, stamp, None)


@per_value(
    "extract",
    (TEXT, TIMESTAMPTZ),
    NUMERIC,
    volatility="settings",
    needs_site=True,
    vector=columns.extracted(columns.in_session),
)
def extract_of_zoned(site: CallSite, unit: str, stamp: int) -> Decimal | None:
    offset = 0 if is_infinite(stamp) else utc_offset(stamp, site.context.timezone)
    return extract_stamp(unit, stamp + offset * SECOND, stamp, offset)


per_value("extract", (TEXT, TIME), NUMERIC)(extract_time)
per_value("extract", (TEXT, INTERVAL), NUMERIC)(extract_interval)


def _as_double(extract: Callable[..., Decimal | None]) -> Callable[..., float | None]:
    """date_part from extract."""

    def date_part(*args: Any) -> float | None:
        value = extract(*args)
        return None if value is None else float(value)

    return date_part


_part_of_stamp = _as_double(extract_of_stamp)
per_value("date_part", (TEXT, DATE), FLOAT8)(lambda unit, days: _part_of_stamp(unit, _stamp_of_date(days)))
per_value("date_part", (TEXT, TIMESTAMP), FLOAT8, vector=columns.extracted(columns.wall_clock))(_part_of_stamp)
per_value(
    "date_part",
    (TEXT, TIMESTAMPTZ),
    FLOAT8,
    volatility="settings",
    needs_site=True,
    vector=columns.extracted(columns.in_session),
)(_as_double(extract_of_zoned))
per_value("date_part", (TEXT, TIME), FLOAT8)(_as_double(extract_time))
per_value("date_part", (TEXT, INTERVAL), FLOAT8)(_as_double(extract_interval))


@per_value("date_trunc", (TEXT, TIMESTAMP), TIMESTAMP, makes_null=False, follows=(0, 1), vector=columns.truncated)
def date_trunc(unit: str, stamp: int) -> int:
    return truncate_stamp(unit, stamp, "timestamp without time zone")


def _trunc_zoned(unit: str, stamp: int, timezone: str) -> int:
    label = "timestamp with time zone"
    if is_infinite(stamp):
        return truncate_stamp(unit, stamp, label)
    offset = utc_offset(stamp, timezone) * SECOND
    local = truncate_stamp(unit, stamp + offset, label)
    # within a day the clocks stay as they are: two hours of the same name are two
    return checked_stamp(local - offset if unit_of(unit, label) in TRUNCATED else to_utc(local, timezone))


@per_value(
    "date_trunc",
    (TEXT, TIMESTAMPTZ),
    TIMESTAMPTZ,
    volatility="settings",
    needs_site=True,
    follows=(0, 1),
    makes_null=False,
    vector=columns.truncated_zoned,
)
def date_trunc_zoned(site: CallSite, unit: str, stamp: int) -> int:
    return _trunc_zoned(unit, stamp, site.context.timezone)


@per_value("date_trunc", (TEXT, TIMESTAMPTZ, TEXT), TIMESTAMPTZ, makes_null=False, vector=columns.truncated_zoned)
def date_trunc_in_zone(unit: str, stamp: int, timezone: str) -> int:
    return _trunc_zoned(unit, stamp, zone_meant(timezone))


per_value("date_trunc", (TEXT, INTERVAL), INTERVAL, makes_null=False)(truncate_interval)


@per_value("date_bin", (INTERVAL, TIMESTAMP, TIMESTAMP), TIMESTAMP, follows=(0, 1, 0), vector=columns.binned)
@per_value("date_bin", (INTERVAL, TIMESTAMPTZ, TIMESTAMPTZ), TIMESTAMPTZ, follows=(0, 1, 0), vector=columns.binned)
def date_bin(stride: Interval, stamp: int, origin: int) -> int:
    if is_infinite(stamp):
        return stamp
    if is_infinite(origin):
        raise SqlError("22008", "origin out of range")
    if stride[0]:
        raise SqlError("0A000", "timestamps cannot be binned into intervals containing months or years")
    width = stride[1] * DAY + stride[2]
    if width >= 2**63:
        raise SqlError("22008", "interval out of range")
    if width <= 0:
        raise SqlError("22008", "stride must be greater than zero")
    if not -(2**63) <= stamp - origin < 2**63:
        raise SqlError("22008", "interval out of range")
    return checked_stamp(origin + (stamp - origin) // width * width)


per_value("age", (TIMESTAMP, TIMESTAMP), INTERVAL, vector=aged)(age)


@per_value("age", (TIMESTAMPTZ, TIMESTAMPTZ), INTERVAL, volatility="settings", needs_site=True, vector=aged)
def age_between_zoned(site: CallSite, left: int, right: int) -> Interval:
    zone = site.context.timezone
    return age(*(stamp if is_infinite(stamp) else to_local(stamp, zone) for stamp in (left, right)))


@per_value("isfinite", (DATE,), BOOL)
@per_value("isfinite", (TIMESTAMP,), BOOL)
@per_value("isfinite", (TIMESTAMPTZ,), BOOL)
def isfinite(value: int) -> bool:
    return not is_infinite(value)


@per_value("isfinite", (INTERVAL,), BOOL)
def isfinite_interval(value: Interval) -> bool:
    return True
