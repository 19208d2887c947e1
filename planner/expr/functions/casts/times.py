"""Casts among date, time, timestamp, timestamptz and interval, and their fractional digits (typmods)."""

from __future__ import annotations

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Vector, Words
from ivm.words import Kind
from planner.expr.functions.casts.registry import cast_per_value, cast_vectorised
from planner.expr.functions.datetime.intervals import checked_stamp, infinite_words, is_infinite
from planner.expr.functions.table import CallSite
from storage.types.calendar import DAY, END_TIMESTAMP
from storage.types.interval_fields import cut_to_fields
from storage.types.time_output import round_micros, round_words
from storage.types.zones import to_local, to_utc


def _rounded(site: CallSite, words: Words) -> Words:
    """Rounds fractional digits to the result's typmod, half away from zero."""
    rounded = round_words(words, site.result.precision)
    return words if rounded is words else np.where(infinite_words(words), words, rounded)


@cast_vectorised((Kind.TIMESTAMP,), (Kind.TIMESTAMP,))
@cast_vectorised((Kind.TIMESTAMPTZ,), (Kind.TIMESTAMPTZ,))
@cast_vectorised((Kind.TIME,), (Kind.TIME,))
def same_with_precision(site: CallSite, words: Words) -> Words:
    return _rounded(site, words)


@cast_vectorised((Kind.DATE,), (Kind.TIMESTAMP,), follows=(1,))
def date_to_timestamp(site: CallSite, words: Words) -> Words:
    infinite = infinite_words(words)
    late = ~infinite & (words >= END_TIMESTAMP // DAY)
    site.fail_where(late, SqlError("22008", "date out of range for timestamp"))
    return np.where(infinite, words, np.where(late | infinite, 0, words) * DAY)


@cast_vectorised((Kind.TIMESTAMP,), (Kind.DATE,), follows=(1,))
def timestamp_to_date(_site: CallSite, words: Words) -> Words:
    return np.where(infinite_words(words), words, words // DAY)


@cast_vectorised((Kind.TIMESTAMP,), (Kind.TIME,), makes_null=True)
def timestamp_to_time(site: CallSite, words: Words) -> Vector:
    infinite = infinite_words(words)
    micros = _rounded(site, np.where(infinite, 0, words) % DAY)
    return Vector(micros, infinite) if np.count_nonzero(infinite) else Vector(micros)


@cast_per_value((Kind.DATE,), (Kind.TIMESTAMPTZ,), follows=(1,), volatility="settings", needs_site=True)
def date_to_timestamptz(site: CallSite, days: int) -> int:
    if is_infinite(days):
        return days
    if days >= END_TIMESTAMP // DAY:
        raise SqlError("22008", "date out of range for timestamp")
    return checked_stamp(to_utc(days * DAY, site.context.timezone))


@cast_per_value((Kind.TIMESTAMP,), (Kind.TIMESTAMPTZ,), follows=(1,), volatility="settings", needs_site=True)
def timestamp_to_timestamptz(site: CallSite, stamp: int) -> int:
    if is_infinite(stamp):
        return stamp
    return checked_stamp(to_utc(round_micros(stamp, site.result.precision), site.context.timezone))


@cast_per_value((Kind.TIMESTAMPTZ,), (Kind.TIMESTAMP,), follows=(1,), volatility="settings", needs_site=True)
def timestamptz_to_timestamp(site: CallSite, stamp: int) -> int:
    if is_infinite(stamp):
        return stamp
    return checked_stamp(to_local(round_micros(stamp, site.result.precision), site.context.timezone))


@cast_per_value((Kind.TIMESTAMPTZ,), (Kind.DATE,), follows=(1,), volatility="settings", needs_site=True)
def timestamptz_to_date(site: CallSite, stamp: int) -> int:
    if is_infinite(stamp):
        return stamp
    return to_local(stamp, site.context.timezone) // DAY


@cast_per_value((Kind.TIMESTAMPTZ,), (Kind.TIME,), makes_null=True, volatility="settings", needs_site=True)
def timestamptz_to_time(site: CallSite, stamp: int) -> int | None:
    if is_infinite(stamp):
        return None
    return round_micros(to_local(stamp, site.context.timezone) % DAY, site.result.precision)


@cast_per_value((Kind.TIME,), (Kind.INTERVAL,), needs_site=True)
def time_to_interval(site: CallSite, micros: int) -> tuple[int, int, int]:
    return 0, 0, round_micros(micros, site.result.precision)


@cast_per_value((Kind.INTERVAL,), (Kind.TIME,), needs_site=True)
def interval_to_time(site: CallSite, value: tuple[int, int, int]) -> int:
    return round_micros(value[2] % DAY, site.result.precision)


@cast_per_value((Kind.INTERVAL,), (Kind.INTERVAL,), needs_site=True)
def interval_with_precision(site: CallSite, value: tuple[int, int, int]) -> tuple[int, int, int]:
    months, days, micros = cut_to_fields(value, site.result.scale)
    return months, days, round_micros(micros, site.result.precision)
