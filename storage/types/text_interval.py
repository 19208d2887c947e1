"""Parses intervals (months, days, microseconds) in Postgres's postgres, verbose, SQL-standard and ISO 8601 formats.

Fractions carry down as in PostgreSQL 15: of a year to months, of a month to days (30 per month), of weeks and days to
time.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from ivm.errors import SqlError
from storage.types.calendar import DAY, HOUR, MINUTE, SECOND
from storage.types.interval_fields import MINUTE_TO_SECOND, cut_to_fields, unit_of_fields
from storage.types.interval_output import Interval
from storage.types.time_output import round_micros

_UNITS: Final[dict[str, str]] = {
    alias: unit
    for unit, aliases in {
        "microsecond": "microsecond microseconds us usec usecs usecond useconds microsecon",
        "millisecond": "millisecond milliseconds ms msec msecs msecond mseconds",
        "second": "second seconds s sec secs",
        "minute": "minute minutes m min mins",
        "hour": "hour hours h hr hrs",
        "day": "day days d",
        "week": "week weeks w",
        "month": "month months mon mons",
        "year": "year years y yr yrs",
        "decade": "decade decades dec decs",
        "century": "century centuries c cent",
        "millennium": "millennium millennia mil mils millenniums",
    }.items()
    for alias in aliases.split()
}
_MONTHS: Final = {"month": 1, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}
_MICROS: Final = {"microsecond": 1, "millisecond": 1000, "second": SECOND, "minute": MINUTE, "hour": HOUR}
_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<clock>(?:[+-]\s*)?\d+:\d*(?::\d+(?:\.\d*)?)?(?:\.\d+)?)
    | (?P<years>(?:[+-]\s*)?\d+-\d+)(?![\d-])
    | (?P<number>(?:[+-]\s*)?\d+\.?\d*|\.\d+)
    | (?P<word>[A-Za-z]+)
    | (?P<at>@)
    )""",
    re.VERBOSE,
)
_NUMBER: Final = r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_ISO_PART: Final = re.compile(rf"({_NUMBER})([YMWDHS])")
_ISO_DATE: Final = re.compile(rf"({_NUMBER})(?:-({_NUMBER})(?:-({_NUMBER}))?)?")
_ISO_TIME: Final = re.compile(rf"{_NUMBER}(?::{_NUMBER}){{0,2}}")
_ISO_LIMIT: Final = 1e15


def _syntax(text: str) -> SqlError:
    return SqlError("22007", f'invalid input syntax for type interval: "{text}"')


def _overflow(text: str) -> SqlError:
    return SqlError("22015", f'interval field value out of range: "{text}"')


def _check_int4(value: int | Decimal, text: str) -> None:
    """22015 if a number of years, months, weeks or days does not fit into an int4."""
    if not -(2**31) <= int(value) < 2**31:
        raise _overflow(text)


class _Total:
    """The running total; fractions carry down as they are added."""

    def __init__(self, text: str, fields: int | None) -> None:
        self.text, self.months, self.days, self.micros, self.fields = text, 0, 0, 0, fields
        self.bare = "second" if fields is None else unit_of_fields(fields)

    def add(self, amount: Decimal, unit: str) -> None:
        if unit in _MONTHS or unit in ("day", "week"):
            _check_int4(amount, self.text)
        if unit in _MONTHS:
            scaled = amount * _MONTHS[unit]
            if unit == "month":
                whole = int(scaled)
                self.months += whole
                self.add((scaled - whole) * 30, "day")
            else:
                self.months += int(scaled.to_integral_value(ROUND_HALF_EVEN)) if scaled % 1 else int(scaled)
        elif unit in ("day", "week"):
            scaled = amount * (7 if unit == "week" else 1)
            whole = int(scaled)
            self.days += whole
            self.micros += int(((scaled - whole) * DAY).to_integral_value(ROUND_HALF_EVEN))
        else:
            self.micros += int((amount * _MICROS[unit]).to_integral_value(ROUND_HALF_EVEN))

    def clock(self, token: str) -> None:
        sign = -1 if token[0] == "-" else 1
        parts = token.lstrip("+-").split(":")
        if len(parts) == 2 and ("." in parts[1] or self.fields == MINUTE_TO_SECOND):
            parts = ["0", *parts]
        hour, minute, second = parts[0], parts[1], parts[2] if len(parts) > 2 else "0"
        minute = minute or "0"
        if int(minute) > 59 or Decimal(second or 0) >= 60:
            raise _overflow(self.text)
        fraction = int((Decimal(second) * SECOND).to_integral_value(ROUND_HALF_EVEN))
        self.micros += sign * (int(hour) * HOUR + int(minute) * MINUTE + fraction)

    def result(self, negate: bool, precision: int | None) -> Interval:
        sign = -1 if negate else 1
        days, micros = sign * self.days, round_micros(sign * self.micros, precision)
        if not (-(2**31) <= days < 2**31 and -(2**63) <= micros < 2**63):
            raise _overflow(self.text)
        return cut_to_fields(checked_interval(sign * self.months, days, micros), self.fields)


def checked_interval(months: int, days: int, micros: int) -> Interval:
    """The interval of these parts; 22008 if one does not fit."""
    if not (-(2**31) <= months < 2**31 and -(2**31) <= days < 2**31 and -(2**63) <= micros < 2**63):
        raise SqlError("22008", "interval out of range")
    return months, days, micros


def parse_interval(
    text: str, precision: int | None = None, sql_standard: bool = False, fields: int | None = None
) -> Interval:
    """Text → (months, days, µs). ``sql_standard``: a leading minus applies to all fields if no other field has a sign,
    as in IntervalStyle sql_standard. ``fields``: those that the type is narrowed to (``interval_fields.py``)."""
    body = text.strip()
    total = _Total(text, fields)
    if body[:1] == "P":
        _iso(body, total)
        return total.result(False, precision)
    found = _tokenize(body, text)
    tokens = [token for token in found if token != ("word", "ago")]
    ago = len(tokens) < len(found)
    if not tokens:
        raise _syntax(text)
    signs = [token[0] for _, token in tokens if token[0] in "+-"]
    spread = sql_standard and tokens[0][1][0] == "-" and len(signs) == 1
    if spread:
        tokens[0] = (tokens[0][0], tokens[0][1][1:])
    _sum_tokens(tokens, total)
    return total.result(ago != spread, precision)


def _tokenize(body: str, text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(body):
        match = _TOKEN.match(body, at)
        if match is None or match.end() == at:
            raise _syntax(text)
        at = match.end()
        kind = match.lastgroup or ""
        if kind != "at":
            tokens.append((kind, "".join(match[kind].lower().split())))
        while at < len(body) and body[at] in " \t\n,":
            at += 1
    return tokens


def _sum_tokens(tokens: list[tuple[str, str]], total: _Total) -> None:
    seen: set[str] = set()
    at = 0
    while at < len(tokens):
        kind, token = tokens[at]
        at += 1
        if kind == "clock":
            for part in ("hour", "minute", "second", "millisecond", "microsecond"):
                _once(seen, part, total.text)
            total.clock(token)
            continue
        if kind == "years":
            _once(seen, "month", total.text)
            sign = -1 if token[0] == "-" else 1
            years, months = token.lstrip("+-").split("-")
            if int(months) > 11:
                raise _overflow(total.text)
            total.months += sign * (int(years) * 12 + int(months))
            continue
        if kind == "word":
            raise _syntax(total.text)
        if at < len(tokens) and tokens[at][0] == "word":
            named = _UNITS.get(tokens[at][1])
            if named is None:
                raise _syntax(total.text)
            at += 1
        elif at < len(tokens) and tokens[at][0] == "clock":
            named = "day"
        elif at == len(tokens):
            named = total.bare
        elif at == len(tokens) - 1 and tokens[at][0] == "number" and total.bare == "hour":
            named = "day"
        else:
            raise _syntax(total.text)
        _once(seen, named, total.text)
        if named == "second" and "." in token:
            seen |= {"millisecond", "microsecond"}
        total.add(Decimal(token), named)


def _once(seen: set[str], unit: str, text: str) -> None:
    if unit in seen:
        raise _syntax(text)
    seen.add(unit)


def _iso(body: str, total: _Total) -> None:
    """P…T…, with designators (P1Y2M, PT3H) or in the alternative forms (P0001-02-03T04:05:06, P00010203T040506)."""
    date, mark, time = body[1:].partition("T")
    if not (date or mark):
        raise _syntax(total.text)
    if date and not _iso_date(date, total):
        _iso_parts(date, total, {"Y": "year", "M": "month", "W": "week", "D": "day"})
    if time and not _iso_time(time, total):
        _iso_parts(time, total, {"H": "hour", "M": "minute", "S": "second"})


def _iso_date(text: str, total: _Total) -> bool:
    """Parses years, years-months, years-months-days, or all in eight digits. False if it is none of these."""
    if re.fullmatch(r"\d{8}", text):
        parts = [text[:4], text[4:6], text[6:]]
    elif match := _ISO_DATE.fullmatch(text):
        parts = [part for part in match.groups() if part is not None]
    else:
        return False
    for part, unit in zip(parts, ("year", "month", "day"), strict=False):
        total.add(_iso_number(part, total), unit)
    return True


def _iso_time(text: str, total: _Total) -> bool:
    """Parses hours, hours:minutes, hours:minutes:seconds, or all in six digits. False if it is none of these."""
    if re.fullmatch(r"\d{6}", text):
        parts = [text[:2], text[2:4], text[4:]]
    elif _ISO_TIME.fullmatch(text):
        parts = text.split(":")
    else:
        return False
    for part, unit in zip(parts, ("hour", "minute", "second"), strict=False):
        total.add(_iso_number(part, total), unit)
    return True


def _iso_number(text: str, total: _Total) -> Decimal:
    """A number as PostgreSQL reads it: a float, and its fraction as the difference from its whole part."""
    value = float(text)
    if abs(value) > _ISO_LIMIT:
        raise _overflow(total.text)
    whole = int(value)
    return whole + Decimal(repr(value - whole))


def _iso_parts(text: str, total: _Total, units: dict[str, str]) -> None:
    at = 0
    while at < len(text):
        match = _ISO_PART.match(text, at)
        if match is None or match[2] not in units:
            raise _syntax(total.text)
        total.add(_iso_number(match[1], total), units[match[2]])
        at = match.end()
