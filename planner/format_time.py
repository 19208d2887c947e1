"""to_char for timestamps and intervals, to_date and to_timestamp, after PostgreSQL's ``formatting.c``, in English."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ivm.errors import SqlError, unsupported
from planner.datetime_fields import date_field, iso_week
from planner.format_number import ordinal
from planner.intervals import truncate
from storage.calendar import DAY, HOUR, MINUTE, SECOND, civil_from_days, days_from_civil, days_in_month
from storage.text_interval import Interval
from storage.text_time import format_offset

MONTHS: Final = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
                 "November", "December")  # fmt: skip
DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ROMAN: Final = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
# longest first among those with a common start
_KEYS: Final = (
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D", "FF1", "FF2", "FF3", "FF4", "FF5",
    "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I", "J", "MI", "MM", "MONTH", "MON",
    "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY",
    "YYY", "YY", "Y",
)  # fmt: skip
_TOKEN: Final = re.compile(
    r'(?P<prefix>FM|TM)|"(?P<quoted>(?:[^"\\]|\\.)*)"?|(?P<key>' + "|".join(re.escape(k) for k in _KEYS)
    + r")(?P<suffix>TH|SP)?|(?P<plain>\\.|.)", re.IGNORECASE | re.DOTALL
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """A pattern (``key`` upper case, ``text`` as written), or text to copy (``key`` empty)."""

    key: str
    text: str
    fill: bool = False
    suffix: str = ""


@lru_cache(1024)
def tokens(template: str) -> tuple[Token, ...]:
    """A template's patterns and texts."""
    out: list[Token] = []
    fill = False
    for match in _TOKEN.finditer(template):
        if match["prefix"]:
            fill = match["prefix"].upper() == "FM"
            continue
        if match["key"]:
            out.append(Token(match["key"].upper(), match["key"], fill, match["suffix"] or ""))
        elif match["quoted"] is not None:
            out.append(Token("", re.sub(r"\\(.)", r"\1", match["quoted"])))
        else:
            plain = match["plain"]
            out.append(Token("", plain[1:] if len(plain) == 2 and plain[1] == '"' else plain))
        fill = False
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Moment:
    """A broken-down time; ``days`` None for an interval, ``offset`` seconds east, None without a zone."""

    year: int
    month: int
    day: int
    micros: int
    days: int | None
    offset: int | None = None
    zone: str = ""


def moment_of_stamp(local: int, offset: int | None, zone: str) -> Moment:
    """The fields of a wall-clock timestamp."""
    days, micros = divmod(local, DAY)
    year, month, day = civil_from_days(days)
    return Moment(year, month, day, micros, days, offset, zone)


def moment_of_interval(interval: Interval) -> Moment:
    """The fields of an interval; they have no calendar."""
    months, days, micros = interval
    years = truncate(months, 12)
    return Moment(years, months - years * 12, days, micros, None)


def format_moment(moment: Moment, template: str) -> str:
    """The template with its patterns filled in; 22007 for a pattern that an interval has no value for."""
    return "".join(_write(moment, token) if token.key else token.text for token in tokens(template))


def _write(m: Moment, token: Token) -> str:
    if m.days is None and token.key in _CALENDAR:
        raise SqlError("22007", "invalid format specification for an interval value",
                       hint="Intervals are not tied to specific calendar dates.")  # fmt: skip
    named = _name(m, token)
    if named is not None:
        return named
    value, width = _number(m, token.key)
    shown = str(value) if token.fill else (f"-{-value:0{width}d}" if value < 0 else f"{value:0{width}d}")
    if token.key in ("MS", "US") or token.key.startswith("FF"):
        shown = f"{value:0{width}d}"
    if token.key == "Y,YYY":
        text = f"{value // 1000},{value % 1000:03d}"
        shown = text
    if token.suffix.upper() == "TH":
        ending = ordinal(abs(value))
        shown += ending if token.suffix == "th" else ending.upper()
    return shown


_CALENDAR: Final = frozenset({"DAY", "DY", "D", "ID", "IW", "WW", "W", "DDD", "IDDD", "J", "AD", "BC", "A.D.", "B.C.",
                              "IYYY", "IYY", "IY", "I", "TZ", "OF", "TZH", "TZM", "MONTH_NAME"})  # fmt: skip


def _cased(name: str, text: str, fill: bool, width: int) -> str:
    if text.isupper():
        name = name.upper()
    elif text[:1].islower():
        name = name.lower()
    return name if fill else name.ljust(width)


def _name(m: Moment, token: Token) -> str | None:
    key, text = token.key, token.text
    match key:
        case "AM" | "PM" | "A.M." | "P.M.":
            name = "PM" if m.micros // HOUR % 24 >= 12 else "AM"
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
            if m.month == 0:
                return ""
            roman = _ROMAN[m.month - 1] if m.month > 0 else _ROMAN[m.month]
            roman = roman.lower() if text[0].islower() else roman
            return roman if token.fill else roman.ljust(4)
        case "TZ":
            zone = m.zone
            return zone.lower() if text[0].islower() else zone.upper()
        case "OF":
            return format_offset(m.offset or 0)
        case "TZH":
            return f"{'-' if (m.offset or 0) < 0 else '+'}{abs(m.offset or 0) // 3600:02d}"
        case "TZM":
            return f"{abs(m.offset or 0) % 3600 // 60:02d}"
        case "FX":
            return ""
    return None


def _number(m: Moment, key: str) -> tuple[int, int]:
    hours = truncate(m.micros, HOUR)
    rest = abs(m.micros) % HOUR
    sign = -1 if m.micros < 0 else 1
    match key:
        case "HH" | "HH12":
            return (12 if hours % 12 == 0 else truncate_remainder(hours, 12)), 2 if hours >= 0 else 3
        case "HH24":
            return hours, 2 if hours >= 0 else 3
        case "MI":
            return sign * (rest // MINUTE), 2 if sign > 0 else 3
        case "SS":
            return sign * (rest % MINUTE // SECOND), 2 if sign > 0 else 3
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
            return _century(m), 2
    return _year_or_calendar(m, key)


def truncate_remainder(value: int, unit: int) -> int:
    """The remainder with the value's sign, as C has it."""
    return value - truncate(value, unit) * unit


def _century(m: Moment) -> int:
    if m.days is None:
        return truncate(m.year, 100)
    return (m.year + 99) // 100 if m.year > 0 else -((99 - (m.year - 1)) // 100)


def _year_or_calendar(m: Moment, key: str) -> tuple[int, int]:
    shown = m.year if m.days is None or m.year > 0 else 1 - m.year
    if key in ("Y,YYY", "YYYY", "YYY", "YY", "Y"):
        width = 4 if key == "Y,YYY" else len(key)
        value = shown if width == 4 else shown % 10**width
        return value, width if value >= 0 else width + 1
    assert m.days is not None
    iso_year, week = iso_week(m.days)
    match key:
        case "IYYY" | "IYY" | "IY" | "I":
            value = iso_year if iso_year > 0 else 1 - iso_year
            return (value if len(key) == 4 else value % 10 ** len(key)), len(key)
        case "IW":
            return week, 2
        case "DDD":
            return m.days - days_from_civil(m.year, 1, 1) + 1, 3
        case "IDDD":
            weekday = (m.days + 5) % 7
            return (week - 1) * 7 + weekday + 1, 3
        case "D":
            return (m.days + 6) % 7 + 1, 1
        case "ID":
            return (m.days + 5) % 7 + 1, 1
        case "WW":
            return (m.days - days_from_civil(m.year, 1, 1)) // 7 + 1, 2
        case "W":
            return (m.day - 1) // 7 + 1, 1
        case "J":
            julian = date_field("julian", m.days)
            assert julian is not None
            return julian, 1
    raise unsupported(f'the template pattern "{key}"')


class _Reader:
    """What a text says when read by a template."""

    def __init__(self, text: str, template: str) -> None:
        self.text, self.template, self.at = text, template, 0
        self.fields: dict[str, int] = {}
        self.offset: int | None = None

    def read(self) -> None:
        parts = tokens(self.template)
        fixed = any(token.key == "FX" for token in parts)
        for i, token in enumerate(parts):
            if token.key == "FX":
                continue
            if not token.key:
                self._literal(token.text, fixed)
                continue
            if not fixed:
                self._blanks()
            following = parts[i + 1] if i + 1 < len(parts) else None
            self._one(token, following is not None and bool(following.key) and following.key != "FX")

    def _blanks(self) -> None:
        while self.text[self.at : self.at + 1] == " ":
            self.at += 1

    def _literal(self, text: str, fixed: bool) -> None:
        for c in text:
            if fixed:
                self.at += 1
            elif not c.isalnum():
                # separators match any run of separators, or nothing
                if self.at < len(self.text) and not self.text[self.at].isalnum() and self.text[self.at] not in "+-":
                    self.at += 1
                elif self.text[self.at : self.at + 1] == c:
                    self.at += 1
            else:
                self.at += self.at < len(self.text)

    def _one(self, token: Token, adjacent: bool) -> None:
        key = token.key
        if key in ("MONTH", "MON", "DAY", "DY"):
            names = MONTHS if key.startswith("MON") else DAYS
            self.fields[{"MONTH": "MM", "MON": "MM"}.get(key, "D")] = self._named(names, key in ("MON", "DY"), key) + 1
        elif key in ("AM", "PM", "A.M.", "P.M.", "AD", "BC", "A.D.", "B.C."):
            self._half(key)
        elif key in ("TZH", "TZM", "OF", "TZ"):
            self._zone(key)
        elif key == "RM":
            raise unsupported('reading the template pattern "RM"')
        else:
            self._digits(token, adjacent)

    def _named(self, names: tuple[str, ...], short: bool, key: str) -> int:
        rest = self.text[self.at :].lower()
        for i, name in enumerate(names):
            wanted = name[:3].lower() if short else name.lower()
            if rest.startswith(wanted):
                self.at += len(wanted)
                return i
        raise SqlError(
            "22007", f'invalid value "{self.text[self.at :]}" for "{key}"',
            "The given value did not match any of the allowed values for this field.",
        )  # fmt: skip

    def _half(self, key: str) -> None:
        size = len(key)
        word = self.text[self.at : self.at + size].upper().replace(".", "")
        if word not in (("AM", "PM") if key[0] in "AP" and "M" in key else ("AD", "BC")):
            raise SqlError("22007", f'invalid value "{self.text[self.at : self.at + size]}" for "{key}"',
                           "The given value did not match any of the allowed values for this field.")  # fmt: skip
        self.at += size
        self.fields[{"AM": "am", "PM": "pm", "AD": "ad", "BC": "bc"}[word]] = 1

    def _zone(self, key: str) -> None:
        if key in ("TZ", "OF"):
            raise SqlError("0A000", f'formatting field "{key}" is only supported in to_char')
        match = re.compile(r"([+-]?)(\d{1,2})").match(self.text, self.at)
        if match is None:
            raise self._bad(key)
        self.at = match.end()
        if key == "TZH":
            size = int(match[2]) * 3600
            self.offset = -size if match[1] == "-" else size
        else:
            size = int(match[2]) * 60
            self.offset = (self.offset or 0) + (-size if (self.offset or 0) < 0 else size)

    def _bad(self, key: str) -> SqlError:
        return SqlError("22007", f'invalid value "{self.text[self.at :]}" for "{key}"', "Value must be an integer.")

    def _digits(self, token: Token, adjacent: bool) -> None:
        key = token.key
        widths = {"HH24": 2, "HH12": 2, "MS": 3, "US": 6, "SSSS": 5, "Y,YYY": 5, "J": 7, "DDD": 3, "IDDD": 3}
        width = widths.get(key, int(key[2]) if key.startswith("FF") else len(key))
        pattern = rf"[+-]?\d{{1,{width}}}" if adjacent and not token.fill else r"[+-]?\d+"
        if key == "Y,YYY":
            pattern = r"\d+,\d{3}"
        if key in ("D", "Q", "W", "CC", "I", "Y") and adjacent:
            pattern = rf"\d{{1,{width}}}"
        match = re.compile(pattern).match(self.text, self.at)
        if match is None:
            if self.at >= len(self.text):
                return
            raise self._bad(key)
        self.at = match.end()
        digits = match[0].replace(",", "")
        value = int(digits)
        if key in ("MS", "US") or key.startswith("FF"):
            places = len(digits)
            self.fields["us"] = int(digits[:6].ljust(6, "0")) if places else 0
            return
        if key in ("YY", "Y", "YYY") and len(digits) < 4:
            value = _full_year(value, len(key), len(digits))
        names = {"HH": "HH12", "YYYY": "Y", "YYY": "Y", "YY": "Y", "Y,YYY": "Y", "SSSSS": "SSSS", "IYYY": "I"}
        self.fields[names.get(key, key)] = value
        if token.suffix:
            self.at += 2


def _full_year(value: int, width: int, digits: int) -> int:
    if width == 3 or digits == 3:
        return value + (1000 if value >= 520 else 2000)
    if value < 70:
        return value + 2000
    return value + 1900 if value < 100 else value


def parse_moment(text: str, template: str) -> tuple[int, int | None]:
    """to_timestamp: (µs since 2000 of the wall clock, seconds east of Greenwich or None)."""
    reader = _Reader(text, template)
    reader.read()
    f = reader.fields
    days = _read_date(f, text)
    micros = f.get("HH24", 0) * HOUR
    if "HH12" in f:
        hour = f["HH12"]
        if not 1 <= hour <= 12 and ("am" in f or "pm" in f):
            raise SqlError("22008", f'hour "{hour}" is invalid for the 12-hour clock',
                           hint="Use the 24-hour clock, or give an hour between 1 and 12.")  # fmt: skip
        if "pm" in f or "am" in f:
            hour = hour % 12 + (12 if "pm" in f else 0)
        micros = hour * HOUR
    for key, limit, unit in (("MI", 60, MINUTE), ("SS", 60, SECOND)):
        if f.get(key, 0) >= limit:
            raise _range(text)
        micros += f.get(key, 0) * unit
    if "SSSS" in f:
        micros = f["SSSS"] * SECOND
    micros += f.get("us", 0)
    if micros > DAY:
        raise _range(text)
    return days * DAY + micros, reader.offset


def _range(text: str) -> SqlError:
    return SqlError("22008", f'date/time field value out of range: "{text}"')


def _read_date(f: dict[str, int], text: str) -> int:
    if "J" in f:
        return f["J"] - 2451545
    if "I" in f or "IW" in f:
        return _read_iso(f)
    year = f.get("Y", 0)
    if "CC" in f and "Y" not in f:
        year = (f["CC"] - 1) * 100 + 1
    # without a year it is 1 BC, the calendar's year 0
    year = 1 - year if "bc" in f and year > 0 else (year + 1 if year < 0 else year)
    if "DDD" in f and "MM" not in f:
        return days_from_civil(year, 1, 1) + f["DDD"] - 1
    if "WW" in f and "MM" not in f:
        return days_from_civil(year, 1, 1) + (f["WW"] - 1) * 7
    month = f.get("MM", 1)
    day = f.get("DD", (f["W"] - 1) * 7 + 1 if "W" in f else 1)
    if not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
        raise _range(text)
    return days_from_civil(year, month, day)


def _read_iso(f: dict[str, int]) -> int:
    year = f.get("I", 0)
    fourth = days_from_civil(year, 1, 4)
    monday = fourth - (fourth + 5) % 7
    if "IDDD" in f:
        return monday + f["IDDD"] - 1
    return monday + (f.get("IW", 1) - 1) * 7 + f.get("ID", 1) - 1
