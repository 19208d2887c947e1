"""AT TIME ZONE (``timezone``): timestamps in a zone given by name or as an interval."""

from __future__ import annotations

from ivm.errors import SqlError
from ivm.words import INTERVAL, TEXT, TIMESTAMP, TIMESTAMPTZ
from planner.expr.functions.datetime import columns
from planner.expr.functions.datetime.intervals import checked_stamp, is_infinite
from planner.expr.functions.table import CallSite, per_value
from storage.types.calendar import SECOND
from storage.types.interval_output import Interval
from storage.types.zones import OFFSET_END, local_offset_meant, offset_meant, parse_iso_offset, to_local, to_utc


def in_zone(zone: str, local: int) -> int:
    """make_timestamptz's reading of a zone: an offset is positive to the east, and must have a sign."""
    if zone[:1].isdigit():
        hint = 'Numeric time zones must have "-" or "+" as first character.'
        raise SqlError("22023", f'invalid input syntax for type numeric time zone: "{zone}"', hint=hint)
    offset = parse_iso_offset(zone)
    if offset is not None and abs(offset) >= OFFSET_END:
        raise SqlError("22023", f'numeric time zone "{zone}" out of range')
    return checked_stamp(local - offset * SECOND) if offset is not None else timezone_of_stamp(zone, local)


@per_value("timezone", (TEXT, TIMESTAMP), TIMESTAMPTZ, vector=columns.at_zone)
def timezone_of_stamp(zone: str, local: int) -> int:
    return local if is_infinite(local) else checked_stamp(local - local_offset_meant(local, zone) * SECOND)


@per_value("timezone", (TEXT, TIMESTAMPTZ), TIMESTAMP, vector=columns.at_zone_zoned)
def timezone_of_zoned(zone: str, stamp: int) -> int:
    return stamp if is_infinite(stamp) else checked_stamp(stamp + offset_meant(stamp, zone) * SECOND)


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


@per_value("timezone", (TIMESTAMP,), TIMESTAMPTZ, volatility="settings", needs_site=True)
def timezone_of_session(site: CallSite, local: int) -> int:
    """``local AT LOCAL``"""
    return local if is_infinite(local) else checked_stamp(to_utc(local, site.context.timezone))


@per_value("timezone", (TIMESTAMPTZ,), TIMESTAMP, volatility="settings", needs_site=True)
def timezone_of_session_zoned(site: CallSite, stamp: int) -> int:
    """``stamp AT LOCAL``"""
    return stamp if is_infinite(stamp) else checked_stamp(to_local(stamp, site.context.timezone))
