"""to_char, to_date, to_timestamp and to_number."""

from __future__ import annotations

import math
from decimal import Decimal

from ivm.words import DATE, FLOAT4, FLOAT8, INT4, INT8, INTERVAL, NUMERIC, TEXT, TIMESTAMP, TIMESTAMPTZ
from planner.expr.functions.datetime.intervals import checked_stamp, is_infinite
from planner.expr.functions.formatting.format_datetime import fields_of_interval, fields_of_stamp, format_datetime
from planner.expr.functions.formatting.number import describe, format_number, parse_number
from planner.expr.functions.formatting.parse_datetime import parse_datetime
from planner.expr.functions.table import CallSite, per_value
from storage.types.calendar import DAY, SECOND
from storage.types.interval_output import Interval
from storage.types.zones import to_utc, utc_offset, zone_abbreviation


@per_value("to_char", (TIMESTAMP, TEXT), TEXT)
def to_char_stamp(stamp: int, template: str) -> str | None:
    if is_infinite(stamp) or not template:
        return None
    return format_datetime(fields_of_stamp(stamp, None, ""), template)


@per_value("to_char", (TIMESTAMPTZ, TEXT), TEXT, volatility="settings", needs_site=True)
def to_char_zoned(site: CallSite, stamp: int, template: str) -> str | None:
    if is_infinite(stamp) or not template:
        return None
    offset = utc_offset(stamp, site.context.timezone)
    name = zone_abbreviation(stamp, site.context.timezone)
    return format_datetime(fields_of_stamp(stamp + offset * SECOND, offset, name), template)


@per_value("to_char", (INTERVAL, TEXT), TEXT)
def to_char_interval(interval: Interval, template: str) -> str | None:
    return format_datetime(fields_of_interval(interval), template) if template else None


@per_value("to_char", (INT4, TEXT), TEXT)
@per_value("to_char", (INT8, TEXT), TEXT)
def to_char_integer(value: int, template: str) -> str:
    return format_number(Decimal(value), template)


@per_value("to_char", (NUMERIC, TEXT), TEXT)
def to_char_numeric(value: Decimal, template: str) -> str:
    return format_number(value, template)


@per_value("to_char", (FLOAT8, TEXT), TEXT)
def to_char_float8(value: float, template: str) -> str:
    return _float(value, template, 15)


@per_value("to_char", (FLOAT4, TEXT), TEXT)
def to_char_float4(value: float, template: str) -> str:
    return _float(value, template, 6)


def _float(value: float, template: str, digits: int) -> str:
    """to_char of a float, which shows no more digits than its type holds."""
    d = describe(template)
    if d.scientific or d.roman or not math.isfinite(value):
        return format_number(Decimal(value), template)
    multiplied = value * 10.0**d.multi
    whole = len(f"{abs(multiplied):.0f}")
    places = 0 if whole >= digits else min(d.post, digits - whole)
    return format_number(Decimal(value), template, f"{multiplied:.{places}f}")


@per_value("to_number", (TEXT, TEXT), NUMERIC)
def to_number(text: str, template: str) -> Decimal | None:
    return parse_number(text, template) if template else None


@per_value("to_date", (TEXT, TEXT), DATE)
def to_date(text: str, template: str) -> int:
    return parse_datetime(text, template)[0] // DAY


@per_value("to_timestamp", (TEXT, TEXT), TIMESTAMPTZ, volatility="settings", needs_site=True)
def to_timestamp(site: CallSite, text: str, template: str) -> int:
    local, offset = parse_datetime(text, template)
    if offset is not None:
        return checked_stamp(local - offset * SECOND)
    return checked_stamp(to_utc(local, site.context.timezone))
