"""The current time: of the transaction, the statement and the wall clock."""

from __future__ import annotations

import time as clock

from ivm.errors import SqlError
from ivm.words import DATE, INT4, INT8, INTERVAL, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ, Kind, SqlType
from planner.expr.functions.datetime.interval_columns import aged_today
from planner.expr.functions.datetime.intervals import age
from planner.expr.functions.datetime.operators import age_between_zoned
from planner.expr.functions.table import CallSite, per_value
from storage.types.calendar import DAY, EPOCH_DAYS, SECOND
from storage.types.interval_output import Interval
from storage.types.text_style import DEFAULT_FORMATS
from storage.types.time_output import format_offset, round_micros, wordy
from storage.types.timetz import timetz
from storage.types.zones import to_local, to_utc, utc_offset, zone_abbreviation

_UNIX: int = EPOCH_DAYS * DAY


@per_value("current_date", (), DATE, clock=True, volatility="stable", needs_site=True)
def current_date(site: CallSite) -> int:
    return to_local(site.context.now, site.context.timezone) // DAY


def _rounded(stamp: int, precision: int | None, zone: str) -> int:
    """The stamp to that many digits of a second, as for a type: more than 6 count as 6. 22023: less than 0."""
    if precision is not None and precision < 0:
        raise SqlError("22023", f"TIMESTAMP({precision}) {zone} precision must not be negative")
    return round_micros(stamp, precision)


def _midnight(site: CallSite) -> int:
    """When today begins, as a wall-clock time."""
    return current_date(site) * DAY


def _zoned_midnight(site: CallSite) -> int:
    """When today begins in the session's zone."""
    return to_utc(_midnight(site), site.context.timezone)


@per_value("age", (TIMESTAMP,), INTERVAL, volatility="stable", needs_site=True, vector=aged_today(_midnight))
def age_today(site: CallSite, stamp: int) -> Interval:
    return age(_midnight(site), stamp)


@per_value(
    "age", (TIMESTAMPTZ,), INTERVAL, volatility="stable", needs_site=True,
    vector=aged_today(_zoned_midnight),
)  # fmt: skip
def age_today_zoned(site: CallSite, stamp: int) -> Interval:
    return age_between_zoned(site, _zoned_midnight(site), stamp)


@per_value("current_timestamp", (INT4,), TIMESTAMPTZ, volatility="stable", needs_site=True, makes_null=False)
@per_value("now", (), TIMESTAMPTZ, clock=True, volatility="stable", needs_site=True, makes_null=False)
@per_value("transaction_timestamp", (), TIMESTAMPTZ, clock=True, volatility="stable", needs_site=True)
@per_value("current_timestamp", (), TIMESTAMPTZ, clock=True, volatility="stable", needs_site=True, makes_null=False)
def now(site: CallSite, precision: int | None = None) -> int:
    return _rounded(site.context.now, precision, "WITH TIME ZONE")


@per_value("statement_timestamp", (), TIMESTAMPTZ, clock=True, volatility="stable", needs_site=True)
def statement_timestamp(site: CallSite) -> int:
    return site.context.statement_now or site.context.now


@per_value("mz_now", (), INT8, clock=True, volatility="stable", needs_site=True, makes_null=False)
def mz_now(site: CallSite) -> int:
    return site.context.epoch


@per_value("clock_timestamp", (), TIMESTAMPTZ, volatility="volatile", only_draws=True)
def clock_timestamp() -> int:
    return clock.time_ns() // 1000 - _UNIX


@per_value("timeofday", (), TEXT, volatility="volatile", only_draws=True, needs_site=True)
def timeofday(site: CallSite) -> str:
    """The wall clock's time in words: ``Mon Feb 10 17:32:01.000000 1997 PST``."""
    stamp, zone = clock_timestamp(), site.context.timezone
    days, rest = divmod(to_local(stamp, zone), DAY)
    seconds, micros = divmod(rest, SECOND)
    time = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{micros:06d}"
    shown = zone_abbreviation(stamp, zone) or format_offset(utc_offset(stamp, zone))
    return wordy(days, time, DEFAULT_FORMATS, f" {shown}")


@per_value("localtimestamp", (INT4,), TIMESTAMP, volatility="stable", needs_site=True)
@per_value("localtimestamp", (), TIMESTAMP, clock=True, volatility="stable", needs_site=True)
def localtimestamp(site: CallSite, precision: int | None = None) -> int:
    return _rounded(to_local(site.context.now, site.context.timezone), precision, "WITHOUT TIME ZONE")


@per_value("localtime", (INT4,), TIME, volatility="stable", needs_site=True)
@per_value("localtime", (), TIME, volatility="stable", needs_site=True)
def localtime(site: CallSite, precision: int | None = None) -> int:
    return round_micros(localtimestamp(site) % DAY, precision)


@per_value("current_time", (INT4,), SqlType(Kind.TIMETZ), volatility="stable", needs_site=True)
@per_value("current_time", (), SqlType(Kind.TIMETZ), volatility="stable", needs_site=True)
def current_time(site: CallSite, precision: int | None = None) -> int:
    return timetz(localtime(site, precision), -utc_offset(site.context.now, site.context.timezone))
