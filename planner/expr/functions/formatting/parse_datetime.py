"""to_date and to_timestamp: reading text by a template, after PostgreSQL's ``formatting.c``, in English.

A field of value 0 counts as not given, as in PostgreSQL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ivm.errors import SqlError
from planner.expr.functions.formatting.format_datetime import DAYS, MONTHS, ROMAN, FormatToken, tokens
from planner.expr.functions.formatting.template_fields import TemplateFields
from storage.types.calendar import DAY

_SPACES: Final = " \t\n\v\f\r"
_INTEGER: Final = re.compile(r"[ \t\n\v\f\r]*[+-]?\d+", re.ASCII)
_THOUSANDS: Final = re.compile(r"[ \t\n\v\f\r]*([+-]?\d+),[ \t\n\v\f\r]*([+-]\d{1,2}|\d{1,3})", re.ASCII)
_TEXTS: Final = frozenset(
    {"MONTH", "MON", "DAY", "DY", "RM", "AM", "PM", "A.M.", "P.M.", "AD", "BC", "A.D.", "B.C.", "FX", "OF", "TZ", "TZH"}
)
"""The patterns that a digit does not continue."""
_ISO: Final = frozenset({"IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I"})
_GREGORIAN: Final = frozenset(
    {"DDD", "DD", "D", "MM", "MONTH", "MON", "RM", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y"}
)
_FIELD: Final = {
    "HH": "hour", "HH12": "hour", "HH24": "hour", "MI": "minute", "SS": "second", "SSSS": "seconds",
    "SSSSS": "seconds", "MM": "month", "DDD": "ordinal", "IDDD": "ordinal", "DD": "day", "D": "weekday",
    "WW": "week", "IW": "week", "CC": "century", "W": "month_week", "J": "julian", "TZM": "zone_minute",
}  # fmt: skip
_WIDTH: Final = {"HH12": 2, "HH24": 2, "US": 6, "TZM": 2, "MS": 3, "ID": 1, "IDDD": 3}


@dataclass(frozen=True, slots=True)
class ReadTime:
    """What a template read. ``local``: µs since 2000 of the wall clock; ``offset``: seconds east of Greenwich, None
    if the text has no zone; ``precision``: the digits of FF1 to FF6, None without one."""

    local: int
    days: int
    offset: int | None
    precision: int | None


def parse_datetime(text: str, template: str) -> ReadTime:
    """Reads a text; 22007 and 22008 if it does not match the template, or is no date."""
    reader = _Reader(text, tokens(template))
    reader.read()
    days, micros = reader.fields.resolve(text)
    return ReadTime(days * DAY + micros, days, reader.fields.offset(text), reader.fields.digits or None)


def _is_separator(c: str) -> bool:
    return "!" <= c <= "~" and not c.isalnum()


class _Reader:
    """Reads a text by a template and collects its fields. ``extra`` counts the characters that were skipped beyond
    those in the template."""

    def __init__(self, text: str, parts: tuple[FormatToken, ...]) -> None:
        self.text, self.parts, self.at, self.extra, self.fixed = text, parts, 0, 0, False
        self.fields = TemplateFields()

    def read(self) -> None:
        for i, token in enumerate(self.parts):
            if self.at >= len(self.text):
                return
            if not self.fixed and token.key != "FX" and (token.key or i == 0):
                self._spaces()
            if token.key:
                self._pattern(token, self._digits_end(i))
            else:
                self._literal(token)

    def _spaces(self) -> None:
        while self.text[self.at : self.at + 1] and self.text[self.at] in _SPACES:
            self.at += 1
            self.extra += 1

    def _digits_end(self, i: int) -> bool:
        """Whether what follows a token in the template cannot continue its digits."""
        if self.parts[i].suffix.upper() == "TH" or i + 1 == len(self.parts):
            return True
        following = self.parts[i + 1]
        return following.key in _TEXTS if following.key else not following.text.isdecimal()

    def _literal(self, token: FormatToken) -> None:
        """A character of the template, which matches any character; a separator outside quotes matches at most one
        separator of the text."""
        if self.at == len(self.text):
            return  # the spaces before it were the last
        c = token.text
        here = self.text[self.at : self.at + 1]  # spaces before it may have been the last
        if self.fixed:
            self.at += 1
        elif not token.quoted and (c in _SPACES or _is_separator(c)):
            if here and (here in _SPACES or _is_separator(here)):
                self.at += 1
            else:
                self.extra -= 1
        elif self.extra > 0:
            self.extra -= 1
        else:
            self.at += 1

    def _pattern(self, token: FormatToken, ends: bool) -> None:
        if token.key in _ISO or token.key in _GREGORIAN:
            self.fields.use(iso=token.key in _ISO)
        if token.key == "FX":
            self.fixed = True
        elif token.key in _TEXTS:
            self._text(token, ends)
        else:
            self._number(token, ends)
            if token.suffix.upper() == "TH":
                self.at += 2
        if not self.fixed:
            self.extra = 0
            self._spaces()

    def _text(self, token: FormatToken, ends: bool) -> None:
        put = self.fields.put
        match token.key:
            case "MONTH":
                put("month", self._named(MONTHS, token) + 1, token.text)
            case "MON":
                put("month", self._named([name[:3] for name in MONTHS], token) + 1, token.text)
            case "RM":
                put("month", 12 - self._named(ROMAN[::-1], token), token.text)
            case "DAY" | "DY":
                names = DAYS if token.key == "DAY" else [name[:3] for name in DAYS]
                put("weekday", self._named(names, token), token.text)
                self.fields.found["weekday"] += 1
            case "AM" | "PM" | "A.M." | "P.M.":
                put("afternoon", self._named(_halves("AM", "PM", token), token), token.text)
                self.fields.twelve = True
            case "AD" | "BC" | "A.D." | "B.C.":
                put("bc", self._named(_halves("AD", "BC", token), token), token.text)
            case "TZH":
                self._zone_hour(token, ends)
            case _:
                shown = "OF" if token.key == "OF" else token.text
                raise SqlError("0A000", f'formatting field "{shown}" is only supported in to_char')

    def _named(self, names: tuple[str, ...] | list[str], token: FormatToken) -> int:
        rest = self.text[self.at :].lower()
        for i, name in enumerate(names):
            if rest.startswith(name.lower()):
                self.at += len(name)
                return i
        word = re.split(r"[ \t\n\v\f\r]", self.text[self.at :], maxsplit=1)[0]
        detail = "The given value did not match any of the allowed values for this field."
        raise SqlError("22007", f'invalid value "{word}" for "{token.text}"', detail)

    def _zone_hour(self, token: FormatToken, ends: bool) -> None:
        """A minus that was skipped as one separator too many is the sign."""
        here = self.text[self.at : self.at + 1]
        if here and here in "+- ":
            self.fields.zone_sign = -1 if here == "-" else 1
            self.at += 1
        else:
            skipped = self.extra > 0 and self.text[self.at - 1] == "-"
            self.fields.zone_sign = -1 if skipped else 1
        self.fields.put("zone_hour", self._integer(token, 2, ends)[0], token.text)

    def _number(self, token: FormatToken, ends: bool) -> None:
        key, put = token.key, self.fields.put
        if key == "Y,YYY":
            self._thousands(token)
            return
        if key.startswith("FF"):
            self.fields.digits = int(key[2])
        width = self.fields.digits if key.startswith("FF") else _WIDTH.get(key, len(key))
        value, used = self._integer(token, width, ends)
        if (name := _FIELD.get(key)) is not None:
            put(name, value, token.text)
            self.fields.twelve |= key in ("HH", "HH12")
            if key == "TZM":
                self.fields.zone_sign = self.fields.zone_sign or 1
        elif key == "ID":
            # the fields count from Sunday
            put("weekday", value, token.text)
            self.fields.found["weekday"] = value + 1 if value < 7 else 1
        elif key == "MS":
            put("milliseconds", value, token.text)
            self.fields.found["milliseconds"] *= {1: 100, 2: 10}.get(used, 1)
        elif key == "US" or key.startswith("FF"):
            put("microseconds", value, token.text)
            self.fields.found["microseconds"] *= 10 ** (6 - used) if 1 <= used < 6 else 1
        elif key != "Q":
            put("year", value, token.text)
            size = len(key)
            self.fields.adjust_year(short=size < 4 and used < 4, digits=size)

    def _thousands(self, token: FormatToken) -> None:
        match = _THOUSANDS.match(self.text, self.at)
        if match is None:
            raise SqlError("22007", 'invalid input string for "Y,YYY"')
        self.at = match.end()
        self.fields.put("year", int(match[1]) * 1000 + int(match[2]), token.text)
        self.fields.adjust_year(short=False, digits=4)

    def _integer(self, token: FormatToken, width: int, ends: bool) -> tuple[int, int]:
        """An integer and how many characters it took: as many as there are, or exactly ``width`` if digits may
        follow."""
        start = self.at
        rest = self.text[start:].lstrip(_SPACES)
        given = rest[:width]
        if token.fill or ends:
            match = _INTEGER.match(self.text, start)
            self.at = start if match is None else match.end()
            value = 0 if match is None else int(match[0])
        else:
            match = _INTEGER.match(given)
            used = 0 if match is None else match.end()
            self._check_width(token, width, given, used)
            value = 0 if match is None else int(match[0])
            self.at = len(self.text) - len(rest) + used
        if self.at == start:
            raise SqlError("22007", f'invalid value "{given}" for "{token.text}"', "Value must be an integer.")
        if not -(2**31) <= value < 2**31:
            detail = "Value must be in the range -2147483648 to 2147483647."
            raise SqlError("22008", f'value for "{token.text}" in source string is out of range', detail)
        return value, self.at - start

    @staticmethod
    def _check_width(token: FormatToken, width: int, given: str, used: int) -> None:
        hint = 'If your source string is not fixed-width, try using the "FM" modifier.'
        if len(given) < width:
            message = f'source string too short for "{token.text}" formatting field'
            detail = f"Field requires {width} characters, but only {len(given)} remain."
        elif 0 < used < width:
            message = f'invalid value "{given}" for "{token.text}"'
            detail = f"Field requires {width} characters, but only {used} could be parsed."
        else:
            return
        raise SqlError("22007", message, detail, hint)


def _halves(first: str, second: str, token: FormatToken) -> list[str]:
    if "." not in token.key:
        return [first, second]
    return [f"{word[0]}.{word[1]}." for word in (first, second)]
