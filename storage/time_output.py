"""Dates, times and timestamps as Postgres prints them (DateStyle ISO)."""

from __future__ import annotations

from ivm.words import NEGATIVE_INFINITY, POSITIVE_INFINITY
from storage.calendar import DAY, SECOND, civil_from_days, utc_offset


def round_micros(value: int, precision: int | None) -> int:
    """To ``precision`` fractional digits of a second, half away from zero."""
    if precision is None or precision >= 6:
        return value
    unit = 10 ** (6 - precision)
    rounded: int = (abs(value) + unit // 2) // unit * unit
    return rounded if value >= 0 else -rounded


def _civil_text(days: int) -> tuple[str, str]:
    year, month, day = civil_from_days(days)
    shown, suffix = (year, "") if year > 0 else (1 - year, " BC")
    return f"{shown:04d}-{month:02d}-{day:02d}", suffix


def format_date(days: int) -> str:
    """ISO, with BC and infinities."""
    if days in (POSITIVE_INFINITY, NEGATIVE_INFINITY):
        return "infinity" if days > 0 else "-infinity"
    return "".join(_civil_text(days))


def format_time(micros: int) -> str:
    """hh:mm:ss with as many fractional digits as there are."""
    seconds, fraction = divmod(micros, SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    text = f"{hour:02d}:{minute:02d}:{second:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def format_timestamp(stamp: int, offset: str = "") -> str:
    """ISO, with BC and infinities; ``offset`` is put after the time."""
    if stamp in (POSITIVE_INFINITY, NEGATIVE_INFINITY):
        return "infinity" if stamp > 0 else "-infinity"
    days, rest = divmod(stamp, DAY)
    date, suffix = _civil_text(days)
    return f"{date} {format_time(rest)}{offset}{suffix}"


def format_timestamptz(stamp: int, timezone: str) -> str:
    """``format_timestamp`` of the zone's wall clock, with its offset."""
    if stamp in (POSITIVE_INFINITY, NEGATIVE_INFINITY):
        return format_timestamp(stamp)
    seconds = utc_offset(stamp, timezone)
    return format_timestamp(stamp + seconds * SECOND, format_offset(seconds))


def format_offset(seconds: int) -> str:
    """+05, -03:30, +00:53:28"""
    minutes, second = divmod(abs(seconds), 60)
    text = f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}"
    if minutes % 60 or second:
        text += f":{minutes % 60:02d}"
    return f"{text}:{second:02d}" if second else text
