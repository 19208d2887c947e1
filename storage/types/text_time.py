"""Parses dates, times and timestamps in Postgres's input forms, with every field order of DateStyle.

Input is split into fields, each recognised by its form, after PostgreSQL's ``ParseDateTime`` and ``DecodeDateTime``.
Infinities are the reserved words of ``ivm/words.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ivm.errors import SqlError
from ivm.words import NEGATIVE_INFINITY, POSITIVE_INFINITY
from storage.types.calendar import (
    DAY,
    END_TIMESTAMP,
    HOUR,
    MAX_DATE,
    MIN_DATE,
    MIN_TIMESTAMP,
    MINUTE,
    SECOND,
    civil_from_days,
    days_from_civil,
    days_in_month,
)
from storage.types.text_style import TextStyle
from storage.types.time_output import round_micros
from storage.types.zone_abbreviations import FIXED
from storage.types.zones import OFFSET_END, is_zone, local_offset_meant, parse_iso_offset, to_local, to_utc, utc_offset

_MONTHS: Final = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
                  "november", "december")  # fmt: skip
_MONTH: Final = {name[:3]: i for i, name in enumerate(_MONTHS, 1)} | {n: i for i, n in enumerate(_MONTHS, 1)}
_MONTH["sept"] = 9
_DAYS: Final = frozenset(
    {"sun", "mon", "tue", "tues", "wed", "weds", "thu", "thur", "thurs", "fri", "sat", "sunday", "monday", "tuesday",
     "wednesday", "thursday", "friday", "saturday"}
)  # fmt: skip
_ISO: Final = re.compile(
    r"\s*(\d{4,6})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T]+(\d{1,2}):(\d{2})(?::(\d{2})(\.\d*)?)?\s*([+-]\d{1,2}(?::?\d{2})?|[zZ])?)?\s*\Z"
)
_CLOCKS: Final = ("time", "time with time zone")
_UNITS: Final = re.compile(
    r"\s*Y(\d+)M(\d+)D(\d+)H(\d+)MM?(\d+)S(\d+)(\.\d*)?\s*([+-]\d{1,2}(?::?\d{2})?)?\s*\Z", re.IGNORECASE
)
_FIELD: Final = re.compile(
    r"""\s*(?:
      (?P<time>\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?|\d{1,2}:\d{2}\.\d+)
    | (?P<date>\d+(?P<mark>[-/.])(?:\d+|[A-Za-z]{3,9})(?P=mark)\d+|[A-Za-z]{3,9}[-/]\d{1,2}[-/]\d+)
    | (?P<offset>[+-]\s*\d+(?::\d*(?::\d*)?)?)
    | (?P<julian>[Jj]\d+(?:\.\d*)?)
    | (?P<ordinal>\d{4}\.\d{3}(?!\d))
    | (?P<number>\d+(?:\.\d+)?)
    | (?P<word>[A-Za-z][A-Za-z_]*(?:/[A-Za-z_]+(?:[-+]?[A-Za-z_0-9]+)?)*)
    | (?P<punctuation>[,])
    )""",
    re.VERBOSE,
)


@dataclass(slots=True)
class _Fields:
    """The fields found in one text. ``year`` is as written (BC and two-digit years not applied yet)."""

    label: str
    text: str
    year: int | None = None
    year_digits: int = 4
    month: int | None = None
    named_month: bool = False
    day: int | None = None
    ordinal: int | None = None
    time: int | None = None
    offset: int | None = None
    zone_name: str | None = None
    bc: bool = False
    half: str | None = None
    special: str | None = None
    order: str = "MDY"


def _syntax(label: str, text: str) -> SqlError:
    return SqlError("22007", f'invalid input syntax for type {label}: "{text}"')


def out_of_range(text: str) -> SqlError:
    """22008, for a value out of range."""
    return SqlError("22008", f'date/time field value out of range: "{text}"')


def parse_date(text: str, style: TextStyle) -> int:
    """A date as days since 2000-01-01."""
    fields = _parse(text, "date", style)
    if fields.special in ("infinity", "-infinity"):
        return POSITIVE_INFINITY if fields.special == "infinity" else NEGATIVE_INFINITY
    if fields.special:
        return _special_stamp(fields.special, style, True) // DAY
    days = _date(fields)
    if not MIN_DATE <= days <= MAX_DATE:
        raise SqlError("22008", f'date out of range: "{text}"')
    return days


def parse_timestamp(text: str, precision: int | None, style: TextStyle) -> int:
    """A timestamp as µs since 2000-01-01. A zone in the text is ignored, as in Postgres."""
    fields = _parse(text, "timestamp", style)
    if fields.special in ("infinity", "-infinity"):
        return POSITIVE_INFINITY if fields.special == "infinity" else NEGATIVE_INFINITY
    stamp = _special_stamp(fields.special, style, True) if fields.special else _date(fields) * DAY
    stamp = round_micros(stamp + (fields.time or 0), precision)
    return _checked(stamp, text)


def parse_timestamptz(text: str, precision: int | None, style: TextStyle) -> int:
    """A timestamp as µs since 2000-01-01 UTC. Without a zone in the text, it is in the session's."""
    fields = _parse(text, "timestamp with time zone", style)
    if fields.special in ("infinity", "-infinity"):
        return POSITIVE_INFINITY if fields.special == "infinity" else NEGATIVE_INFINITY
    if fields.special in ("now", "epoch"):
        return round_micros(_special_stamp(fields.special, style, False), precision)
    local = _special_stamp(fields.special, style, True) if fields.special else _date(fields) * DAY
    local += fields.time or 0
    if fields.offset is not None:
        stamp = local - fields.offset * SECOND
    else:
        meant = fields.zone_name
        stamp = local - local_offset_meant(local, meant) * SECOND if meant else to_utc(local, style.timezone)
    return _checked(round_micros(stamp, precision), text)


def parse_timetz(text: str, precision: int | None, style: TextStyle) -> tuple[int, int]:
    """A time as µs since midnight, and its zone in seconds east of Greenwich; by default the session's zone of now."""
    fields = _parse(text, "time with time zone", style)
    if fields.special == "now" and fields.time is None:
        micros = _special_stamp("now", style, True) % DAY
    elif fields.time is None or (fields.zone_name is not None and fields.year is None):
        raise _syntax("time with time zone", text)
    else:
        micros = fields.time
    if micros > DAY:
        raise out_of_range(text)
    if fields.offset is not None:
        east = fields.offset
    elif fields.year is not None:
        east = local_offset_meant(_date(fields) * DAY + micros, fields.zone_name or style.timezone)
    else:
        east = utc_offset(style.now, style.timezone)
    return round_micros(micros, precision), east


def parse_time(text: str, precision: int | None, style: TextStyle) -> int:
    """A time as µs since midnight, 24:00:00 included."""
    fields = _parse(text, "time", style)
    if fields.special == "now" and fields.time is None:
        return round_micros(_special_stamp("now", style, True) % DAY, precision)
    if fields.time is None or (fields.zone_name is not None and fields.year is None):
        raise _syntax("time", text)
    if fields.time > DAY:
        raise out_of_range(text)
    return round_micros(fields.time, precision)


def _checked(stamp: int, text: str) -> int:
    if not MIN_TIMESTAMP <= stamp < END_TIMESTAMP:
        raise SqlError("22008", f'timestamp out of range: "{text}"')
    return stamp


def _special_stamp(word: str, style: TextStyle, local: bool) -> int:
    if word == "epoch":
        return -10_957 * DAY
    if not style.now:
        hint = "It would change while the data does not: put the date itself into the table."
        raise SqlError("0A000", f'"{word}" in a materialized view is not supported', hint=hint)
    now = to_local(style.now, style.timezone) if local else style.now
    if word == "now":
        return now
    return (now // DAY + {"today": 0, "tomorrow": 1, "yesterday": -1}[word]) * DAY


def _parse(text: str, label: str, style: TextStyle) -> _Fields:
    fields = _Fields(label, text, order=style.formats.order)
    iso = _ISO.match(text) or _UNITS.match(text)
    if iso:
        fields.year, fields.month, fields.day = int(iso[1]), int(iso[2]), int(iso[3])
        fields.year_digits = len(iso[1])
        if iso[4]:
            fields.time = _time_of(iso[4], iso[5], iso[6], iso[7], fields)
        if iso[8]:
            fields.offset = 0 if iso[8] in "zZ" else parse_iso_offset(iso[8])
        _check_offset(fields)
        return fields
    if text.strip().lower() == "-infinity":
        fields.special = "-infinity"
        return fields
    _tokens(fields)
    _apply_half(fields)
    _check_offset(fields)
    return fields


def _check_offset(fields: _Fields) -> None:
    if fields.offset is not None and abs(fields.offset) >= OFFSET_END:
        raise SqlError("22009", f'time zone displacement out of range: "{fields.text}"')


def _tokens(fields: _Fields) -> None:
    at, text, loose = 0, fields.text, list[str]()
    while text[at:].strip():
        match = _FIELD.match(text, at)
        if match is None:
            raise _syntax(fields.label, text)
        at = match.end()
        kind = match.lastgroup
        token = match[kind] if kind else ""
        if kind == "time":
            _set_time(fields, token)
        elif kind == "date":
            _set_date(fields, token)
        elif kind == "offset":
            if fields.time is None and fields.special is None and not loose and fields.year is None:
                raise _syntax(fields.label, text)
            fields.offset = parse_iso_offset("".join(token.split()))
            if fields.offset is not None and text[match.start(kind) - 1].isalpha():
                # a POSIX zone such as GMT-4, which is positive to the west; its name has no meaning
                fields.offset = -fields.offset
        elif kind == "ordinal":
            _refuse(fields, fields.year)
            year, _, day = token.partition(".")
            fields.year, fields.ordinal = int(year), int(day)
        elif kind == "julian":
            _set_julian(fields, token[1:])
        elif kind == "number" and fields.label in _CLOCKS:
            loose.append(token)
        elif kind == "number":
            _number(fields, token)
        elif kind == "word":
            _word(fields, token, loose)
    _loose_numbers(fields, loose)
    if fields.special is None and fields.year is None and fields.time is None and fields.month is None:
        raise _syntax(fields.label, text)


def _set_julian(fields: _Fields, token: str) -> None:
    """Reads a Julian day, whose fraction is the time of day."""
    day, point, fraction = token.partition(".")
    year, fields.month, fields.day = civil_from_days(int(day) - 2_451_545)
    fields.bc, fields.year, fields.year_digits = year <= 0, year if year > 0 else 1 - year, 4
    if point:
        fields.time = int(float("0." + fraction) * DAY)


def _time_of(hour: str, minute: str, second: str | None, fraction: str | None, fields: _Fields) -> int:
    h, m, s = int(hour), int(minute), int(second or 0)
    micros = round(float("0" + fraction) * SECOND) if fraction and len(fraction) > 1 else 0
    legal = m < 60 and s <= 60 and (h < 24 or (h == 24 and m == 0 and s == 0 and micros == 0))
    if not legal:
        raise out_of_range(fields.text)
    return h * HOUR + m * MINUTE + s * SECOND + micros


def _set_time(fields: _Fields, token: str) -> None:
    if fields.time is not None:
        raise _syntax(fields.label, fields.text)
    whole, dot, fraction = token.partition(".")
    parts = whole.split(":")
    if dot and len(parts) == 2:
        parts = ["0", *parts]
    fields.time = _time_of(parts[0], parts[1], parts[2] if len(parts) > 2 else None, dot + fraction, fields)


def _refuse(fields: _Fields, *taken: int | None) -> None:
    """22007 if a field is given twice."""
    if any(field is not None for field in taken):
        raise _syntax(fields.label, fields.text)


def _set_date(fields: _Fields, token: str) -> None:
    """Reads a date with separators (DecodeDate)."""
    parts = re.split("[-/.]", token)
    for part in parts:
        if not part.isdigit():
            _refuse(fields, fields.month)
            fields.month, fields.named_month = _month(part, fields), True
    for part in parts:
        if part.isdigit():
            _part(fields, part)
    if fields.year is None or (fields.ordinal is None and (fields.month is None or fields.day is None)):
        raise _syntax(fields.label, fields.text)


def _month(name: str, fields: _Fields) -> int:
    month = _MONTH.get(name.lower())
    if month is None:
        raise _syntax(fields.label, fields.text)
    return month


def _set_month(fields: _Fields, month: int) -> None:
    """Sets the month by name. A number before it that was read as the month is then the day."""
    taken = fields.month
    if taken is not None and not fields.named_month and fields.day is None and 1 <= taken <= 31:
        fields.day = taken
    else:
        _refuse(fields, taken)
    fields.month, fields.named_month = month, True


def _number(fields: _Fields, token: str) -> None:
    """Reads a number between blanks (DecodeDateTime's DTK_NUMBER)."""
    if fields.special is not None:
        raise _syntax(fields.label, fields.text)
    digits, dot, _ = token.partition(".")
    none = fields.year is None and fields.month is None and fields.day is None
    if dot and none:
        _set_date(fields, token)
    elif (dot and len(digits) > 2) or (not dot and len(digits) >= 6 and (none or fields.time is None)):
        _run_together(fields, token)
    else:
        _part(fields, digits)


def _run_together(fields: _Fields, token: str) -> None:
    """Reads a date or time without separators: YYYYMMDD, YYMMDD, HHMMSS.f, HHMM (DecodeNumberField)."""
    digits, dot, fraction = token.partition(".")
    whole = fields.year is not None and (fields.ordinal is not None or None not in (fields.month, fields.day))
    if not dot and not whole and len(digits) >= 6:
        _refuse(fields, fields.year, fields.month, fields.day)
        fields.year, fields.month, fields.day = int(digits[:-4]), int(digits[-4:-2]), int(digits[-2:])
        fields.year_digits = len(digits) - 4
    elif fields.time is None and len(digits) in (4, 6):
        fields.time = _time_of(digits[:2], digits[2:4], digits[4:] or None, dot + fraction, fields)
    else:
        raise _syntax(fields.label, fields.text)


def _part(fields: _Fields, token: str) -> None:
    """Reads one number of a date, interpreted by the fields already set and by the order of DateStyle
    (DecodeNumber)."""
    value, long = int(token), len(token) >= 3
    year, month, day = (field is not None for field in (fields.year, fields.month, fields.day))
    if fields.ordinal is not None or (year and month and day):
        _run_together(fields, token)
    elif len(token) == 3 and year and not month and not day and 1 <= value <= 366:
        fields.ordinal = value
    elif year and month and fields.named_month and long and fields.year_digits <= 2:
        # the number read as the year is the day
        fields.day, fields.year, fields.year_digits = fields.year, value, len(token)
    elif not year and not month and not day:
        if long or fields.order == "YMD":
            fields.year, fields.year_digits = value, len(token)
        elif fields.order == "DMY":
            fields.day = value
        else:
            fields.month = value
    elif (month and day) or (month and not year and fields.named_month and (long or fields.order == "YMD")):
        fields.year, fields.year_digits = value, len(token)
    elif month:
        fields.day = value
    elif year != day:
        fields.month = value
    else:
        raise _syntax(fields.label, fields.text)


def _is_mark(fields: _Fields, word: str, loose: list[str]) -> bool:
    """Whether a word is the T before a time of day."""
    return word == "t" and (fields.year is not None or bool(loose) or fields.label in _CLOCKS)


def _word(fields: _Fields, token: str, loose: list[str]) -> None:
    word = token.lower()
    if word in ("infinity", "now", "today", "tomorrow", "yesterday", "epoch"):
        fields.special = word
    elif word in _MONTH:
        _set_month(fields, _MONTH[word])
    elif word in ("bc", "ad"):
        fields.bc = word == "bc"
    elif word in ("am", "pm"):
        fields.half = word
    elif word in _DAYS or word in ("at", "on", "dst") or _is_mark(fields, word, loose):
        pass
    elif word == "allballs":
        fields.time, fields.offset = 0, 0
    elif word in FIXED:
        fields.offset = FIXED[word][0]
    elif "/" in token or is_zone(token):
        if not is_zone(token):
            raise SqlError("22023", f'time zone "{word}" not recognized')
        fields.zone_name = token
    else:
        raise _syntax(fields.label, fields.text)


def _loose_numbers(fields: _Fields, loose: list[str]) -> None:
    """Reads the numbers of a time of day."""
    if fields.special is not None and loose:
        raise _syntax(fields.label, fields.text)
    for token in loose:
        digits, dot, fraction = token.partition(".")
        if fields.time is None and len(digits) in (4, 6) and (not dot or len(digits) == 6):
            fields.time = _time_of(digits[:2], digits[2:4], digits[4:] or None, dot + fraction, fields)
        else:
            _number(fields, token)


def _apply_half(fields: _Fields) -> None:
    if fields.half is None or fields.time is None:
        return
    hour = fields.time // HOUR
    if hour > 12:
        raise out_of_range(fields.text)
    if fields.half == "pm" and hour != 12:
        fields.time += 12 * HOUR
    elif fields.half == "am" and hour == 12:
        fields.time -= 12 * HOUR


def _date(fields: _Fields) -> int:
    if fields.year is None or (fields.ordinal is None and (fields.month is None or fields.day is None)):
        raise _syntax(fields.label, fields.text)
    year = fields.year
    if fields.bc:
        if year <= 0:
            raise out_of_range(fields.text)
        year = 1 - year
    elif fields.year_digits <= 2:
        year += 2000 if year < 70 else 1900
    elif year <= 0:
        raise out_of_range(fields.text)
    if fields.ordinal is not None:
        return days_from_civil(year, 1, 1) + fields.ordinal - 1
    month, day = fields.month or 0, fields.day or 0
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        hint = None if day > 31 and 1 <= month <= 12 else 'Perhaps you need a different "datestyle" setting.'
        raise SqlError("22008", f'date/time field value out of range: "{fields.text}"', hint=hint)
    if day > days_in_month(year, month):
        raise out_of_range(fields.text)
    if not -4713 <= year <= 5874897:
        raise SqlError("22008", f'{fields.label.split()[0]} out of range: "{fields.text}"')
    return days_from_civil(year, month, day)


__all__ = ["parse_date", "parse_time", "parse_timestamp", "parse_timestamptz", "parse_timetz", "round_micros"]
