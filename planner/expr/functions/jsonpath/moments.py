"""Dates and times inside a jsonpath: the method datetime(), comparison, and their JSON text.

``parse_moment`` reads by a template in formatting.c's standard mode: what stands between fields must be there as the
template says, and nothing may be left over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ivm.errors import SqlError
from storage.types.calendar import DAY, HOUR, MINUTE, SECOND, days_from_civil, days_in_month
from storage.types.text_time import out_of_range
from storage.types.time_output import format_date, format_offset, format_time, format_timestamp
from storage.types.zones import to_utc, utc_offset

DATE: Final = "date"
TIME: Final = "time without time zone"
TIMETZ: Final = "time with time zone"
TIMESTAMP: Final = "timestamp without time zone"
TIMESTAMPTZ: Final = "timestamp with time zone"
_SHORT: Final = {TIME: "time", TIMETZ: "timetz", TIMESTAMP: "timestamp", TIMESTAMPTZ: "timestamptz", DATE: "date"}
_ISO: Final = (
    "yyyy-mm-dd",
    *(f"HH24:MI:SS{rest}" for rest in (".USTZH:TZM", ".USTZH", "TZH:TZM", "TZH", ".US", "")),
    *(
        f"yyyy-mm-dd{between}HH24:MI:SS{rest}"
        for rests in ((".USTZH:TZM", ".USTZH", "TZH:TZM", "TZH"), (".US", ""))
        for between in (" ", '"T"')
        for rest in rests
    ),
)
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_DAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_WIDTHS: Final = {
    "Y,YYY": 5, "YYYY": 4, "YYY": 3, "YY": 2, "Y": 1, "IYYY": 4, "IYY": 3, "IY": 2, "I": 1, "MM": 2, "DD": 2, "DDD": 3,
    "IDDD": 3, "D": 1, "ID": 1, "WW": 2, "IW": 2, "W": 1, "Q": 1, "CC": 2, "J": 7, "HH24": 2, "HH12": 2, "HH": 2,
    "MI": 2, "SS": 2, "SSSSS": 5, "SSSS": 4, "MS": 3, "US": 6, **{f"FF{n}": n for n in range(1, 7)},
}  # fmt: skip
_TIMED: Final = ("HH24", "HH12", "HH", "MI", "SS", "SSSSS", "SSSS", "MS", "US", *(f"FF{n}" for n in range(1, 7)))
_HALVES: Final = ("A.M.", "P.M.", "AM", "PM")
_ERAS: Final = ("B.C.", "A.D.", "BC", "AD")
_NAMES: Final = ("MONTH", "MON", "DAY", "DY")
_KEYS: Final = sorted(
    (*_WIDTHS, *_HALVES, *_ERAS, *_NAMES, "TZH", "TZM", "TZ", "OF", "FX", "RM"), key=len, reverse=True
)  # fmt: skip
_LAST_YEAR: Final = 5874897
_FIRST: Final = days_from_civil(-4713, 11, 24) * DAY
_LIMIT: Final = days_from_civil(294277, 1, 1) * DAY
_NUMBER: Final = re.compile(r"[ \t\n\r\f\v]*[+-]?[0-9]+")
_SEPARATORS: Final = "-./,':; "


@dataclass(frozen=True, slots=True)
class Moment:
    """``type``: its SQL name; ``value``: days, or µs as the type's datums (of a timetz: local); ``east``: the seconds
    east of Greenwich of the zone that the text gave."""

    type: str
    value: int
    east: int = 0

    def text(self) -> str:
        """As in JSON."""
        match self.type:
            case "date":
                return format_date(self.value)
            case "time without time zone":
                return format_time(self.value)
            case "time with time zone":
                return format_time(self.value) + _offset(self.east)
            case "timestamp without time zone":
                return format_timestamp(self.value).replace(" ", "T", 1)
            case _:
                local = self.value + self.east * SECOND
                return format_timestamp(local, offset=_offset(self.east)).replace(" ", "T", 1)


def _offset(east: int) -> str:
    text = format_offset(east)
    return text if ":" in text else text + ":00"


@dataclass(frozen=True, slots=True)
class _Field:
    """A part of a template: a field (``key``), a separator or a quoted character (``text``)."""

    key: str = ""
    text: str = ""
    fill: bool = False
    quoted: bool = False
    ordinal: bool = False


@lru_cache(256)
def _template(text: str) -> tuple[_Field, ...]:
    """Raises 22007."""
    found: list[_Field] = []
    at = 0
    while at < len(text):
        fill = text[at : at + 2].upper() == "FM"
        if text[at : at + 2].upper() in ("FM", "TM"):
            at += 2
        key = next((k for k in _KEYS if _is_key(text[at : at + len(k)], k)), None)
        if key is not None:
            at += len(key)
            ordinal = text[at : at + 2] in ("TH", "th")
            at += 2 * ordinal
            found.append(_Field(key, fill=fill, ordinal=ordinal))
        elif text[at : at + 1] == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += text[at] == "\\" and at + 1 < len(text)
                found.append(_Field(text=text[at], quoted=True))
                at += 1
            at += 1
        elif at < len(text):
            if text[at] not in _SEPARATORS:
                raise SqlError("22007", f'invalid datetime format separator: "{text[at]}"')
            found.append(_Field(text=text[at]))
            at += 1
    return tuple(found)


def _is_key(text: str, key: str) -> bool:
    return text in (key, key.lower()) or (key in _NAMES and text == key.capitalize())


class _Reader:
    """Reads a text by a template in standard mode. Raises 22007 and 22008."""

    def __init__(self, text: str, fields: tuple[_Field, ...]) -> None:
        self.text, self.fields, self.at = text, fields, 0
        self.found: dict[str, int] = {}
        self.sign = 0

    def read(self) -> None:
        for i, field in enumerate(self.fields):
            if self.at >= len(self.text):
                raise SqlError("22007", "input string is too short for datetime format")
            if not field.key:
                self._literal(field)
            elif field.key in _NAMES:
                self._name(field.key)
            elif field.key in (*_HALVES, *_ERAS):
                self._half(field.key)
            elif field.key in ("TZH", "TZM"):
                self._zone(field, i)
            elif field.key in ("TZ", "OF", "RM"):
                raise SqlError("0A000", f'formatting field "{field.key}" is only supported in to_char')
            elif field.key != "FX":
                self._digits(field, i)
        if self.text[self.at :].strip():
            raise SqlError("22007", "trailing characters remain in input string after datetime format")

    def _literal(self, field: _Field) -> None:
        if self.text[self.at] != field.text:
            what = "character" if field.quoted else "separator"
            raise SqlError("22007", f'unmatched format {what} "{field.text}"')
        self.at += 1

    def _name(self, key: str) -> None:
        names = _MONTHS if key.startswith("MON") else _DAYS
        rest = self.text[self.at :].lower()
        for i, name in enumerate(names):
            wanted = name[:3] if key in ("MON", "DY") else name
            if rest.startswith(wanted):
                self.at += len(wanted)
                self.found["MM" if key.startswith("MON") else "D"] = i + 1
                return
        raise self._not_allowed(key)

    def _half(self, key: str) -> None:
        word = self.text[self.at : self.at + len(key)].upper()
        allowed = [k for k in (_HALVES if key in _HALVES else _ERAS) if len(k) == len(key)]
        if word not in allowed:
            raise self._not_allowed(key)
        self.at += len(key)
        self.found["half" if key in _HALVES else "era"] = word[0] in "PB"

    def _not_allowed(self, key: str) -> SqlError:
        detail = "The given value did not match any of the allowed values for this field."
        return SqlError("22007", f'invalid value "{self.text[self.at :]}" for "{key}"', detail)

    def _zone(self, field: _Field, i: int) -> None:
        if field.key == "TZH":
            c = self.text[self.at]
            self.sign = -1 if c == "-" else 1
            self.at += c in "+- "
        self.sign = self.sign or 1
        self.found[field.key] = self._integer(field, i, 2)[0]

    def _digits(self, field: _Field, i: int) -> None:
        key = field.key
        if key == "Y,YYY":
            found = re.compile(r"\s*([+-]?\d+),(\d{3})").match(self.text, self.at)
            if found is None:
                raise SqlError("22007", 'invalid input string for "Y,YYY"')
            self.at, value, used = found.end(), int(found[1] + found[2]), 4
        else:
            value, used = self._integer(field, i, _WIDTHS[key])
        if key in ("MS", "US") or key.startswith("FF"):
            name, value = "us", value * 10 ** max(6 - used, 0) if key != "MS" else value * 10 ** max(6 - used, 3)
        elif key in ("YYY", "YY", "Y", "IYY", "IY", "I") and used < 4:
            name, value = "year", _full_year(value)
        else:
            name = _ALIASES.get(key, key)
        if self.found.setdefault(name, value) != value:
            detail = "This value contradicts a previous setting for the same field type."
            raise SqlError("22007", f'conflicting values for "{key}" field in formatting string', detail)
        if key in ("HH12", "HH"):
            self.found["twelve"] = 1
        if field.ordinal:
            self.at += 2

    def _integer(self, field: _Field, i: int, width: int) -> tuple[int, int]:
        """A number and how many characters it took."""
        start = self.at
        rest = self.text[start:].lstrip(" \t\n\r\f\v")
        if field.fill or self._ends(field, i):
            found = _NUMBER.match(self.text, start)
            text = "" if found is None else found[0]
            self.at += len(text)
        else:
            text, skipped = rest[:width], len(self.text) - start - len(rest)
            hint = 'If your source string is not fixed-width, try using the "FM" modifier.'
            if len(text) < width:
                raise SqlError(
                    "22007", f'source string too short for "{field.key}" formatting field',
                    f"Field requires {width} characters, but only {len(text)} remain.", hint,
                )  # fmt: skip
            found = _NUMBER.match(text)
            used = 0 if found is None else found.end()
            if 0 < used < width:
                detail = f"Field requires {width} characters, but only {used} could be parsed."
                raise SqlError("22007", f'invalid value "{text}" for "{field.key}"', detail, hint)
            text = text[:used]
            self.at += skipped + used if used else 0
        if not text.strip():
            raise SqlError("22007", f'invalid value "{rest[:width]}" for "{field.key}"', "Value must be an integer.")
        value = int(text)
        if not -(2**31) <= value < 2**31:
            detail = "Value must be in the range -2147483648 to 2147483647."
            raise SqlError("22008", f'value for "{field.key}" in source string is out of range', detail)
        return value, self.at - start

    def _ends(self, field: _Field, i: int) -> bool:
        """Whether no digit can follow the field."""
        if field.ordinal or i + 1 == len(self.fields):
            return True
        following = self.fields[i + 1]
        return following.key not in _WIDTHS if following.key else not following.text.isdecimal()


_ALIASES: Final = {
    "YYYY": "year", "IYYY": "year", "YYY": "year", "YY": "year", "Y": "year", "Y,YYY": "year", "IYY": "year",
    "IY": "year", "I": "year", "HH24": "hour", "HH12": "hour", "HH": "hour", "SSSSS": "SSSS",
}  # fmt: skip


def _full_year(year: int) -> int:
    if year < 70:
        return year + 2000
    if year < 100:
        return year + 1900
    return year + (2000 if year < 520 else 1000)


def parse_moment(text: str, template: str | None) -> Moment:
    """datetime(); without a template the first ISO format that fits. Raises 22007, 22008, 22031, 0A000."""
    if template is not None:
        return _read(text, template)
    for known in _ISO:
        try:
            return _read(text, known)
        except SqlError:
            continue
    raise SqlError(
        "22031", f'datetime format is not recognized: "{text}"',
        hint="Use a datetime template argument to specify the input data format.",
    )  # fmt: skip


def _read(text: str, template: str) -> Moment:
    fields = _template(template)
    reader = _Reader(text, fields)
    if not text and fields:
        raise SqlError("22007", "input string is too short for datetime format")
    reader.read()
    keys = {field.key for field in fields if field.key}
    timed = any(key in _TIMED or key in _HALVES for key in keys)
    zoned = "TZH" in keys or "TZM" in keys
    dated = any(not (key in _TIMED or key in _HALVES or key in ("TZH", "TZM", "FX")) for key in keys)
    micros = _time(reader.found, text)
    days = _date(reader.found, text)
    east = reader.sign * (reader.found.get("TZH", 0) * 3600 + reader.found.get("TZM", 0) * 60)
    if abs(east) >= 16 * 3600 or reader.found.get("TZM", 0) >= 60:
        raise SqlError("22009", f'time zone displacement out of range: "{text}"')
    if not dated and not timed:
        message = "datetime format is zoned but not timed" if zoned else "datetime format is not dated and not timed"
        raise SqlError("22007", message)
    if not dated:
        return Moment(TIMETZ, micros, east) if zoned else Moment(TIME, micros)
    if not timed:
        if zoned:
            raise SqlError("22007", "datetime format is zoned but not timed")
        return Moment(DATE, days)
    local = days * DAY + micros
    if not _FIRST <= local - east * SECOND < _LIMIT:
        raise SqlError("22008", f"{'timestamptz' if zoned else 'timestamp'} out of range")
    return Moment(TIMESTAMPTZ, local - east * SECOND, east) if zoned else Moment(TIMESTAMP, local)


def _time(found: dict[str, int], text: str) -> int:
    seconds = found.get("SSSS", 0)
    hour = found.get("hour") or seconds // 3600
    minute = found.get("MI") or seconds // 60 % 60
    second = found.get("SS") or seconds % 60
    if "twelve" in found or "half" in found:
        if not 1 <= hour <= 12:
            hint = "Use the 24-hour clock, or give an hour between 1 and 12."
            raise SqlError("22007", f'hour "{hour}" is invalid for the 12-hour clock', hint=hint)
        hour = hour % 12 + 12 * found.get("half", 0)
    micros = found.get("us", 0)
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= micros < SECOND):
        raise out_of_range(text)
    return hour * HOUR + minute * MINUTE + second * SECOND + micros


def _date(found: dict[str, int], text: str) -> int:
    if found.get("J"):
        return found["J"] - 2451545
    year, bc = found.get("year", 0), found.get("era", 0)
    if not year and "CC" in found:
        year = (found["CC"] - 1) * 100 + 1
    if bc:
        year = -year
    year += year < 0
    month, day = found.get("MM") or 1, found.get("DD") or 1
    ordinal = found.get("DDD") or found.get("IDDD") or (found["WW"] * 7 - 6 if found.get("WW") else 0)
    if found.get("W"):
        day = found["W"] * 7 - 6
    if ordinal and (month <= 1 or day <= 1):
        if not year and not bc:
            raise SqlError("22007", "cannot calculate day of year without year information")
        if not 1 <= ordinal <= 365 + (days_in_month(year, 2) == 29):
            raise out_of_range(text)
        return days_from_civil(year, 1, 1) + ordinal - 1
    if not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month) or not -4714 < year <= _LAST_YEAR:
        raise out_of_range(text)
    return days_from_civil(year, month, day)


def compare_moments(left: Moment, right: Moment, zone: tuple[str, int] | None) -> int | None:
    """-1, 0 or 1; None where they cannot be compared. ``zone``: the time zone's name and now, in µs; None: without
    it. Raises 0A000 where it is needed."""
    times = (TIME, TIMETZ)
    if (left.type in times) is not (right.type in times):
        return None
    a, b = _key(left, right.type, zone), _key(right, left.type, zone)
    return (a > b) - (a < b)


def _key(moment: Moment, other: str, zone: tuple[str, int] | None) -> tuple[int, int]:
    """What orders the moment among those of its type and of another one."""
    value, east = moment.value, moment.east
    if moment.type == TIMESTAMPTZ:
        return value, 0
    if moment.type == TIMETZ:
        return value - east * SECOND, -east
    if moment.type == TIME:
        if other != TIMETZ:
            return value, 0
        name, now = _zone(moment.type, other, zone)
        east = utc_offset(now, name)
        return value - east * SECOND, -east
    stamp = value * DAY if moment.type == DATE else value
    return to_utc(stamp, _zone(moment.type, other, zone)[0]) if other == TIMESTAMPTZ else stamp, 0


def _zone(type_: str, other: str, zone: tuple[str, int] | None) -> tuple[str, int]:
    if zone is None:
        message = f"cannot convert value from {_SHORT[type_]} to {_SHORT[other]} without time zone usage"
        raise SqlError("0A000", message, hint="Use *_tz() function for time zone support.")
    return zone


def check_template(template: str) -> None:
    """Raises 22007 for a template that standard mode does not take."""
    _template(template)
