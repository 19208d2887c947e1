"""to_char, to_date, to_timestamp and to_number."""

from __future__ import annotations

from decimal import Decimal

from ivm.errors import SqlError
from ivm.words import DATE, FLOAT4, FLOAT8, INT4, INT8, INTERVAL, NUMERIC, TEXT, TIMESTAMP, TIMESTAMPTZ
from planner.expr.functions.datetime.intervals import checked_stamp, is_infinite
from planner.expr.functions.formatting import columns, number_columns
from planner.expr.functions.formatting.format_datetime import fields_of_interval, fields_of_stamp, format_datetime
from planner.expr.functions.formatting.number import format_float, format_int4, format_int8, format_numeric
from planner.expr.functions.formatting.parse_datetime import parse_datetime
from planner.expr.functions.formatting.parse_number import parse_number
from planner.expr.functions.table import CallSite, per_value
from storage.types.calendar import MAX_DATE, MIN_DATE, SECOND
from storage.types.interval_output import Interval
from storage.types.time_output import round_micros
from storage.types.zones import to_utc, utc_offset, zone_abbreviation


@per_value("to_char", (TIMESTAMP, TEXT), TEXT, vector=columns.to_char)
def to_char_stamp(stamp: int, template: str) -> str | None:
    if is_infinite(stamp) or not template:
        return None
    return format_datetime(fields_of_stamp(stamp, None, ""), template)


@per_value("to_char", (TIMESTAMPTZ, TEXT), TEXT, volatility="settings", needs_site=True, vector=columns.to_char)
def to_char_zoned(site: CallSite, stamp: int, template: str) -> str | None:
    if is_infinite(stamp) or not template:
        return None
    offset = utc_offset(stamp, site.context.timezone)
    name = zone_abbreviation(stamp, site.context.timezone)
    return format_datetime(fields_of_stamp(stamp + offset * SECOND, offset, name), template)


@per_value("to_char", (INTERVAL, TEXT), TEXT)
def to_char_interval(interval: Interval, template: str) -> str | None:
    return format_datetime(fields_of_interval(interval), template) if template else None


per_value("to_char", (INT4, TEXT), TEXT, vector=number_columns.to_char)(format_int4)
per_value("to_char", (INT8, TEXT), TEXT, vector=number_columns.to_char)(format_int8)
per_value("to_char", (NUMERIC, TEXT), TEXT, vector=number_columns.to_char)(format_numeric)


@per_value("to_char", (FLOAT8, TEXT), TEXT)
def to_char_float8(value: float, template: str) -> str:
    return format_float(value, template, 15)


@per_value("to_char", (FLOAT4, TEXT), TEXT)
def to_char_float4(value: float, template: str) -> str:
    return format_float(value, template, 6)


@per_value("to_number", (TEXT, TEXT), NUMERIC)
def to_number(text: str, template: str) -> Decimal | None:
    return parse_number(text, template) if template else None


@per_value("to_date", (TEXT, TEXT), DATE, vector=columns.to_date)
def to_date(text: str, template: str) -> int:
    days = parse_datetime(text, template).days
    if not MIN_DATE <= days <= MAX_DATE:
        raise SqlError("22008", f'date out of range: "{text}"')
    return days


@per_value(
    "to_timestamp", (TEXT, TEXT), TIMESTAMPTZ, volatility="settings", needs_site=True, vector=columns.to_timestamp
)  # fmt: skip
def to_timestamp(site: CallSite, text: str, template: str) -> int:
    read = parse_datetime(text, template)
    local = checked_stamp(read.local)
    if read.offset is not None:
        stamp = local - read.offset * SECOND
    else:
        stamp = to_utc(local, site.context.timezone)
    return checked_stamp(round_micros(checked_stamp(stamp), read.precision))
