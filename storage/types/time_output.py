"""Formats dates, times and timestamps as Postgres does, in every DateStyle (after its ``EncodeDateTime``)."""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.rows import Words
from ivm.words import NEGATIVE_INFINITY, POSITIVE_INFINITY
from storage.types.calendar import DAY, SECOND, civil_from_days
from storage.types.text_style import DEFAULT_FORMATS, TextFormats
from storage.types.zones import utc_offset, zone_abbreviation

_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# 2000-01-01 was a Saturday
_FIRST_WEEKDAY: Final = 5


def round_micros(value: int, precision: int | None) -> int:
    """Rounds to ``precision`` fractional digits of a second, half away from zero."""
    if precision is None or precision >= 6:
        return value
    unit = 10 ** (6 - precision)
    rounded: int = (abs(value) + unit // 2) // unit * unit
    return rounded if value >= 0 else -rounded


def round_words(words: Words, precision: int | None) -> Words:
    """``round_micros`` of words."""
    if precision is None or precision >= 6:
        return words
    unit = np.int64(10 ** (6 - precision))
    rounded: Words = np.sign(words) * ((np.abs(words) + unit // 2) // unit * unit)
    return rounded


def _civil_text(days: int, formats: TextFormats) -> tuple[str, str]:
    year, month, day = civil_from_days(days)
    shown, suffix = (year, "") if year > 0 else (1 - year, " BC")
    if formats.date == "ISO":
        return f"{shown:04d}-{month:02d}-{day:02d}", suffix
    mark = {"SQL": "/", "German": "."}.get(formats.date, "-")
    day_first = formats.order == "DMY" or formats.date == "German"
    first, second = (day, month) if day_first else (month, day)
    return f"{first:02d}{mark}{second:02d}{mark}{shown:04d}", suffix


def format_date(days: int, formats: TextFormats = DEFAULT_FORMATS) -> str:
    """A date's text, with BC and infinities."""
    if days in (POSITIVE_INFINITY, NEGATIVE_INFINITY):
        return "infinity" if days > 0 else "-infinity"
    return "".join(_civil_text(days, formats))


def format_time(micros: int) -> str:
    """hh:mm:ss, with fractional digits as needed."""
    seconds, fraction = divmod(micros, SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    text = f"{hour:02d}:{minute:02d}:{second:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def format_timestamp(stamp: int, formats: TextFormats = DEFAULT_FORMATS, offset: str = "") -> str:
    """A timestamp's text, with BC and infinities. ``offset`` is inserted where the style puts the zone."""
    if stamp in (POSITIVE_INFINITY, NEGATIVE_INFINITY):
        return "infinity" if stamp > 0 else "-infinity"
    days, rest = divmod(stamp, DAY)
    if formats.date == "Postgres":
        return wordy(days, format_time(rest), formats, offset)
    date, suffix = _civil_text(days, formats)
    return f"{date} {format_time(rest)}{offset}{suffix}"


def wordy(days: int, time: str, formats: TextFormats, offset: str) -> str:
    """DateStyle Postgres: ``Mon Feb 10 17:32:01 1997 PST``."""
    year, month, day = civil_from_days(days)
    weekday, name = _DAYS[(days + _FIRST_WEEKDAY) % 7], _MONTHS[month - 1]
    date = f"{day:02d} {name}" if formats.order == "DMY" else f"{name} {day:02d}"
    shown, suffix = (year, "") if year > 0 else (1 - year, " BC")
    return f"{weekday} {date} {time} {shown:04d}{offset}{suffix}"


def format_timestamptz(stamp: int, timezone: str, formats: TextFormats = DEFAULT_FORMATS) -> str:
    """``format_timestamp`` of the zone's wall-clock time, with its offset."""
    if stamp in (POSITIVE_INFINITY, NEGATIVE_INFINITY):
        return format_timestamp(stamp)
    seconds = utc_offset(stamp, timezone)
    if formats.date == "ISO":
        return format_timestamp(stamp + seconds * SECOND, formats, format_offset(seconds))
    shown = zone_abbreviation(stamp, timezone) or format_offset(seconds)
    return format_timestamp(stamp + seconds * SECOND, formats, f" {shown}")


def format_offset(seconds: int) -> str:
    """+05, -03:30, +00:53:28"""
    minutes, second = divmod(abs(seconds), 60)
    text = f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}"
    if minutes % 60 or second:
        text += f":{minutes % 60:02d}"
    return f"{text}:{second:02d}" if second else text
