"""AT TIME ZONE (``timezone``): timestamps in a zone given by name or as an interval."""

from __future__ import annotations

from ivm.errors import SqlError
from ivm.words import INTERVAL, TEXT, TIMESTAMP, TIMESTAMPTZ
from planner.expr.functions.datetime.intervals import checked_stamp, is_infinite
from planner.expr.functions.table import per_value
from storage.types.calendar import SECOND, parse_iso_offset, to_local, to_utc
from storage.types.interval_output import Interval


def _offset_text(zone: str) -> int | None:
    # AT TIME ZONE also takes a bare offset, in which west is positive, as in POSIX
    offset = parse_iso_offset(zone.strip())
    return None if offset is None else -offset


def in_zone(zone: str, local: int) -> int:
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
