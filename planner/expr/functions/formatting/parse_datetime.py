"""to_date and to_timestamp: parsing text by a template, after PostgreSQL's ``formatting.c``, in English."""

from __future__ import annotations

import re
from typing import Final

from ivm.errors import SqlError, unsupported
from planner.expr.functions.formatting.format_datetime import DAYS, MONTHS, FormatToken, tokens
from storage.types.calendar import DAY, HOUR, MINUTE, SECOND, days_from_civil, days_in_month
from storage.types.text_time import out_of_range

_NOT_ALLOWED: Final = "The given value did not match any of the allowed values for this field."


class _Reader:
    """Reads a text by a template and collects its fields."""

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
                here = self.text[self.at : self.at + 1]
                self.at += here == c or (here != "" and not here.isalnum() and here not in "+-")
            else:
                self.at += self.at < len(self.text)

    def _one(self, token: FormatToken, adjacent: bool) -> None:
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
        raise self._bad(key, self.text[self.at :], _NOT_ALLOWED)

    def _half(self, key: str) -> None:
        size = len(key)
        word = self.text[self.at : self.at + size].upper().replace(".", "")
        if word not in (("AM", "PM") if key[0] in "AP" and "M" in key else ("AD", "BC")):
            raise self._bad(key, self.text[self.at : self.at + size], _NOT_ALLOWED)
        self.at += size
        self.fields[{"AM": "am", "PM": "pm", "AD": "ad", "BC": "bc"}[word]] = 1

    def _zone(self, key: str) -> None:
        if key in ("TZ", "OF"):
            raise SqlError("0A000", f'formatting field "{key}" is only supported in to_char')
        match = re.compile(r"([+-]?)(\d{1,2})").match(self.text, self.at)
        if match is None:
            raise self._bad(key, self.text[self.at :])
        self.at = match.end()
        if key == "TZH":
            size = int(match[2]) * 3600
            self.offset = -size if match[1] == "-" else size
        else:
            size = int(match[2]) * 60
            self.offset = (self.offset or 0) + (-size if (self.offset or 0) < 0 else size)

    @staticmethod
    def _bad(key: str, value: str, detail: str = "Value must be an integer.") -> SqlError:
        return SqlError("22007", f'invalid value "{value}" for "{key}"', detail)

    def _digits(self, token: FormatToken, adjacent: bool) -> None:
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
            raise self._bad(key, self.text[self.at :])
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


def parse_datetime(text: str, template: str) -> tuple[int, int | None]:
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
            raise out_of_range(text)
        micros += f.get(key, 0) * unit
    if "SSSS" in f:
        micros = f["SSSS"] * SECOND
    micros += f.get("us", 0)
    if micros > DAY:
        raise out_of_range(text)
    return days * DAY + micros, reader.offset


def _read_date(f: dict[str, int], text: str) -> int:
    if "J" in f:
        return f["J"] - 2451545
    if "I" in f or "IW" in f:
        return _read_iso(f)
    year = f.get("Y", 0)
    if "CC" in f and "Y" not in f:
        year = (f["CC"] - 1) * 100 + 1
    # the default year is 1 BC, year 0 of the calendar
    year = 1 - year if "bc" in f and year > 0 else (year + 1 if year < 0 else year)
    if "DDD" in f and "MM" not in f:
        return days_from_civil(year, 1, 1) + f["DDD"] - 1
    if "WW" in f and "MM" not in f:
        return days_from_civil(year, 1, 1) + (f["WW"] - 1) * 7
    month = f.get("MM", 1)
    day = f.get("DD", (f["W"] - 1) * 7 + 1 if "W" in f else 1)
    if not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
        raise out_of_range(text)
    return days_from_civil(year, month, day)


def _read_iso(f: dict[str, int]) -> int:
    year = f.get("I", 0)
    fourth = days_from_civil(year, 1, 4)
    monday = fourth - (fourth + 5) % 7
    if "IDDD" in f:
        return monday + f["IDDD"] - 1
    return monday + (f.get("IW", 1) - 1) * 7 + f.get("ID", 1) - 1
