"""to_char for timestamps and intervals, to_date and to_timestamp, after PostgreSQL's ``formatting.c``, in English."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.stops import polled
from planner.expr.functions.datetime.fields import date_field, iso_week
from planner.expr.functions.datetime.intervals import truncate
from planner.expr.functions.formatting.number_writer import ordinal
from storage.types.calendar import DAY, HOUR, MINUTE, SECOND, civil_from_days, days_from_civil
from storage.types.interval_output import Interval
from storage.types.time_output import format_offset

MONTHS: Final = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
                 "November", "December")  # fmt: skip
DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ROMAN: Final = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
# among patterns with a common prefix, longest first
_KEYS: Final = (
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D", "FF1", "FF2", "FF3", "FF4", "FF5",
    "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I", "J", "MI", "MM", "MONTH", "MON",
    "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY",
    "YYY", "YY", "Y",
)  # fmt: skip
_SPELLINGS: Final = ("Day", "Dy", "Month", "Mon", *_KEYS, *(key.lower() for key in _KEYS))
"""A pattern is upper case or lower case as a whole, a name also capitalised."""
_TOKEN: Final = re.compile(
    "(?P<prefix>FM|fm|TM|tm)?(?:(?P<key>" + "|".join(re.escape(key) for key in _SPELLINGS)
    + r')(?P<suffix>TH|th|SP)?|"(?P<quoted>(?:\\.|[^"\\]|\\\Z)*)"?|(?P<quote>\\")|(?P<plain>.))|(?:FM|fm|TM|tm)\Z',
    re.DOTALL,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FormatToken:
    """A pattern (``key`` upper case, ``text`` as written), or a character to copy (``key`` empty)."""

    key: str
    text: str
    fill: bool = False
    suffix: str = ""
    quoted: bool = False


@lru_cache(1024)
def tokens(template: str) -> tuple[FormatToken, ...]:
    """Splits a template into patterns and characters. A prefix counts only right before its pattern."""
    out: list[FormatToken] = []
    for match in polled(_TOKEN.finditer(template)):
        if match["key"]:
            key, prefix = match["key"].upper(), (match["prefix"] or "").upper()
            fill = prefix == "FM" or (prefix == "TM" and key in ("DAY", "DY", "MONTH", "MON"))
            out.append(FormatToken(key, match["key"], fill, match["suffix"] or ""))
        elif match["quoted"] is not None:
            text = re.sub(r"\\(.)", r"\1", match["quoted"], flags=re.DOTALL)
            out.extend(FormatToken("", c, quoted=True) for c in text)
        elif match["plain"] or match["quote"]:
            out.append(FormatToken("", match["plain"] or '"'))
    return tuple(out)


@dataclass(frozen=True, slots=True)
class BrokenDownTime:
    """A broken-down time. ``days``: None for an interval; ``offset``: seconds east, None without a zone."""

    year: int
    month: int
    day: int
    micros: int
    days: int | None
    offset: int | None = None
    zone: str = ""


def fields_of_stamp(local: int, offset: int | None, zone: str) -> BrokenDownTime:
    """The fields of a wall-clock timestamp."""
    days, micros = divmod(local, DAY)
    year, month, day = civil_from_days(days)
    return BrokenDownTime(year, month, day, micros, days, offset, zone)


def fields_of_interval(interval: Interval) -> BrokenDownTime:
    """The fields of an interval; they have no calendar."""
    months, days, micros = interval
    years = truncate(months, 12)
    return BrokenDownTime(years, months - years * 12, days, micros, None)


def format_datetime(time: BrokenDownTime, template: str) -> str:
    """The template with its patterns filled in; 22007 for a pattern that an interval has no value for."""
    return "".join(written(time, token) if token.key else token.text for token in polled(tokens(template)))


def written(m: BrokenDownTime, token: FormatToken) -> str:
    """A pattern filled in. Raises 22007 for one that an interval has no value for."""
    if m.days is None and token.key in _CALENDAR:
        raise SqlError("22007", "invalid format specification for an interval value",
                       hint="Intervals are not tied to specific calendar dates.")  # fmt: skip
    named = _name(m, token)
    if named is not None:
        return named
    value, width = _number(m, token.key)
    shown = str(value) if token.fill else f"{value:0{width}d}"
    if token.key in ("MS", "US") or token.key.startswith("FF"):
        shown = f"{value:0{width}d}"
    if token.key == "Y,YYY":
        shown = f"{truncate(value, 1000)},{truncate_remainder(value, 1000):03d}"
    if token.suffix.upper() == "TH":
        ending = ordinal(abs(value))
        shown += ending if token.suffix == "th" else ending.upper()
    return shown


_CALENDAR: Final = frozenset(
    {"DAY", "DY", "D", "ID", "AD", "BC", "A.D.", "B.C.", "TZ", "OF", "TZH", "TZM", "MONTH", "MON"}
)
"""The patterns that an interval has no value for."""


def _cased(name: str, text: str, fill: bool, width: int) -> str:
    if text.isupper():
        name = name.upper()
    elif text[:1].islower():
        name = name.lower()
    return name if fill else name.ljust(width)


def _name(m: BrokenDownTime, token: FormatToken) -> str | None:
    key, text = token.key, token.text
    match key:
        case "AM" | "PM" | "A.M." | "P.M.":
            name = "PM" if truncate_remainder(truncate(m.micros, HOUR), 24) >= 12 else "AM"
            name = f"{name[0]}.{name[1]}." if "." in key else name
            return name.lower() if text[0].islower() else name
        case "AD" | "BC" | "A.D." | "B.C.":
            name = "BC" if m.year <= 0 else "AD"
            name = f"{name[0]}.{name[1]}." if "." in key else name
            return name.lower() if text[0].islower() else name
        case "MONTH" | "MON":
            if m.month == 0:
                return ""
            name = MONTHS[m.month - 1]
            return _cased(name, text, token.fill, 9) if key == "MONTH" else _cased(name[:3], text, True, 3)
        case "DAY" | "DY":
            name = DAYS[((m.days or 0) + 6) % 7]
            return _cased(name, text, token.fill, 9) if key == "DAY" else _cased(name[:3], text, True, 3)
        case "RM":
            if m.month == 0 and not m.year:
                return ""
            # an interval of whole years shows month 12, a negative one month 1
            at = (-1 if (m.year or 0) > 0 else 0) if m.month == 0 else m.month - (m.month > 0)
            roman = ROMAN[at]
            roman = roman.lower() if text[0].islower() else roman
            return roman if token.fill else roman.ljust(4)
        case "TZ":
            zone = m.zone
            return zone.lower() if text[0].islower() else zone.upper()
        case "OF":
            return format_offset(truncate(m.offset or 0, 60) * 60)
        case "TZH":
            return f"{'-' if (m.offset or 0) < 0 else '+'}{abs(m.offset or 0) // 3600:02d}"
        case "TZM":
            return f"{abs(m.offset or 0) % 3600 // 60:02d}"
        case "Q":
            return "" if m.month == 0 else None
        case "FX":
            return ""
    return None


def _number(m: BrokenDownTime, key: str) -> tuple[int, int]:
    hours = truncate(m.micros, HOUR)
    rest = abs(m.micros) % HOUR
    sign = -1 if m.micros < 0 else 1
    match key:
        case "HH" | "HH12":
            return (12 if hours % 12 == 0 else truncate_remainder(hours, 12)), 2 if hours >= 0 else 3
        case "HH24":
            return hours, 2 if hours >= 0 else 3
        case "MI":
            return sign * (rest // MINUTE), 2 if sign > 0 or rest < MINUTE else 3
        case "SS":
            second = sign * (rest % MINUTE // SECOND)
            return second, 2 if second >= 0 else 3
        case "MS" | "FF3":
            return sign * (rest % SECOND // 1000), 3
        case "US" | "FF6":
            return sign * (rest % SECOND), 6
        case "FF1" | "FF2" | "FF4" | "FF5":
            digits = int(key[2])
            return sign * (rest % SECOND // 10 ** (6 - digits)), digits
        case "SSSS" | "SSSSS":
            return truncate(m.micros, SECOND), 1
        case "MM":
            return m.month, 2 if m.month >= 0 else 3
        case "DD":
            return m.day, 2
        case "Q":
            return (m.month - 1) // 3 + 1, 1
        case "CC":
            century = _century(m)
            return century, 2 if century >= 0 else 3
    return _year_or_calendar(m, key)


def truncate_remainder(value: int, unit: int) -> int:
    """The remainder with the dividend's sign, as in C."""
    return value - truncate(value, unit) * unit


def _century(m: BrokenDownTime) -> int:
    if m.days is None:
        return truncate(m.year, 100)
    return (m.year + 99) // 100 if m.year > 0 else -((99 - (m.year - 1)) // 100)


def _year_or_calendar(m: BrokenDownTime, key: str) -> tuple[int, int]:
    shown = m.year if m.days is None or m.year > 0 else 1 - m.year
    if key in ("Y,YYY", "YYYY", "YYY", "YY", "Y"):
        width = 4 if key == "Y,YYY" else len(key)
        value = shown if width == 4 else truncate_remainder(shown, 10**width)
        return value, width if shown >= 0 or key == "Y" else width + 1
    return _span(m, key) if m.days is None else _calendar(m, m.days, key)


def _calendar(m: BrokenDownTime, days: int, key: str) -> tuple[int, int]:
    iso_year, week = iso_week(days)
    match key:
        case "IYYY" | "IYY" | "IY" | "I":
            value = iso_year if iso_year > 0 else 1 - iso_year
            return (value if len(key) == 4 else value % 10 ** len(key)), len(key)
        case "IW":
            return week, 2
        case "DDD":
            return days - days_from_civil(m.year, 1, 1) + 1, 3
        case "IDDD":
            weekday = (days + 5) % 7
            return (week - 1) * 7 + weekday + 1, 3
        case "D":
            return (days + 6) % 7 + 1, 1
        case "ID":
            return (days + 5) % 7 + 1, 1
        case "WW":
            return (days - days_from_civil(m.year, 1, 1)) // 7 + 1, 2
        case "W":
            return (m.day - 1) // 7 + 1, 1
        case "J":
            julian = date_field("julian", days)
            assert julian is not None
            return julian, 1
    raise unsupported(f'the template pattern "{key}"')


def _span(m: BrokenDownTime, key: str) -> tuple[int, int]:
    """A pattern of the calendar for an interval: its years, months and days are read as a date, as PostgreSQL does."""
    days = _julian(m.year, m.month, m.day)
    total = (m.year * 12 + m.month) * 30 + m.day
    year, first = _iso_year(m.year, days)
    match key:
        case "IYYY" | "IYY" | "IY" | "I":
            width = len(key)
            value = year if width == 4 else truncate_remainder(year, 10**width)
            return value, width if m.year >= 0 else width + 1
        case "IW":
            return truncate(days - first, 7) + 1, 2
        case "IDDD":
            return days - first + 1, 3
        case "DDD":
            return total, 3
        case "WW":
            return truncate(total - 1, 7) + 1, 2
        case "W":
            return truncate(m.day - 1, 7) + 1, 1
        case "J":
            return days, 1
    raise unsupported(f'the template pattern "{key}"')


def _julian(year: int, month: int, day: int) -> int:
    """The Julian day of any numbers as a date; months before March count to the year before."""
    year, month = (year + 4800, month + 1) if month > 2 else (year + 4799, month + 13)
    century = truncate(year, 100)
    start = year * 365 - 32167 + truncate(year, 4) - century + truncate(century, 4)
    return start + truncate(7834 * month, 256) + day


def _iso_year(year: int, day: int) -> tuple[int, int]:
    """The ISO year of a Julian day that is read as of ``year``, and the day that its first week starts."""
    following = _week_of_january_4(year + 1)
    if day >= following:
        return year + 1, following
    own = _week_of_january_4(year)
    return (year, own) if day >= own else (year - 1, _week_of_january_4(year - 1))


def _week_of_january_4(year: int) -> int:
    fourth = _julian(year, 1, 4)
    return fourth - fourth % 7
