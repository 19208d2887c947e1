"""POSIX time zone strings (``EST5EDT,M3.2.0,M11.1.0``), as PostgreSQL reads them: the TZ variable of POSIX 1003.1,
section 8.3, with offsets up to 167 hours and times of a change that may be negative.

A string is also the last line of a zone's compiled file, where it holds for all later times.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from storage.types.calendar import EPOCH_DAYS, days_from_civil, days_in_month

_NAME: Final = r"(?:<([^>]*)>|([^<\d,+\-]*))"
_OFFSET: Final = r"([+-]?\d+(?::\d+){0,2})"
_ZONE: Final = re.compile(rf"{_NAME}{_OFFSET}(?:{_NAME}{_OFFSET}?(?:[,;](.*))?)?\Z", re.DOTALL)
_CHANGE: Final = re.compile(rf"(?:M(\d+)\.(\d)\.(\d)|(J?)(\d+))(?:/{_OFFSET})?")
_AMERICAN: Final = "M3.2.0,M11.1.0"
"""The changes of a string that names daylight saving time and not when it holds."""
_LONGEST: Final = 24 * 7 - 1

Change = Callable[[int], int]
"""Year → when its change happens: seconds since 1970 of the wall-clock time."""


class LocalTime(NamedTuple):
    """What a zone's clocks show for a while: ``offset`` in seconds east of Greenwich."""

    offset: int
    daylight: bool
    abbreviation: str


@dataclass(frozen=True, slots=True)
class Rules:
    """The standard time and, where clocks change, daylight saving time with the two changes of each year."""

    standard: LocalTime
    daylight: LocalTime | None = None
    starts: Change | None = None
    ends: Change | None = None

    def changes(self, year: int) -> list[tuple[int, LocalTime]]:
        """The changes of a year: (seconds since 1970 UTC, what holds from then on), in order of time."""
        if self.daylight is None or self.starts is None or self.ends is None:
            return []
        begin = self.starts(year) - self.standard.offset
        end = self.ends(year) - self.daylight.offset
        return sorted([(begin, self.daylight), (end, self.standard)], key=lambda change: change[0])


def parse_rules(text: str) -> Rules | None:
    """Reads a POSIX zone; None if the text is none."""
    match = _ZONE.match(text)
    if match is None:
        return None
    west = _seconds(match[3])
    if west is None:
        return None
    standard = LocalTime(-west, False, match[1] or match[2] or "")
    name = match[4] or match[5]
    if not name:
        return Rules(standard) if match[4] is None and not match[6] and match[7] is None else None
    east = _seconds(match[6]) if match[6] else west - 3600
    changes = _changes(_AMERICAN if match[7] is None else match[7])
    if east is None or changes is None:
        return None
    return Rules(standard, LocalTime(-east, True, name), *changes)


def _seconds(text: str) -> int | None:
    """``5``, ``-3:30``, ``+1:02:03`` → seconds; None if out of range."""
    hours, minutes, seconds = (*map(int, text.lstrip("+-").split(":")), 0, 0)[:3]
    if hours > _LONGEST or minutes > 59 or seconds > 60:
        return None
    total = hours * 3600 + minutes * 60 + seconds
    return -total if text[0] == "-" else total


def _changes(text: str) -> tuple[Change, Change] | None:
    parts = text.split(",")
    if len(parts) != 2:
        return None
    starts, ends = _change(parts[0]), _change(parts[1])
    return None if starts is None or ends is None else (starts, ends)


def _change(text: str) -> Change | None:
    match = _CHANGE.fullmatch(text)
    if match is None:
        return None
    seconds = _seconds(match[6]) if match[6] else 7200
    if seconds is None:
        return None
    if match[1]:
        month, week, weekday = int(match[1]), int(match[2]), int(match[3])
        if not (1 <= month <= 12 and 1 <= week <= 5 and weekday <= 6):
            return None
        return lambda year: _of_weekday(year, month, week, weekday) + seconds
    day = int(match[5])
    if match[4]:
        return (lambda year: _of_day(year, day, False) + seconds) if 1 <= day <= 365 else None
    return (lambda year: _of_day(year, day + 1, True) + seconds) if day <= 365 else None


def _of_weekday(year: int, month: int, week: int, weekday: int) -> int:
    """The midnight of a month's n-th weekday (0 is Sunday); week 5 is the last."""
    first = days_from_civil(year, month, 1)
    day = (weekday - (first + 6) % 7) % 7 + (week - 1) * 7
    if day >= days_in_month(year, month):
        day -= 7
    return (first + day + EPOCH_DAYS) * 86400


def _of_day(year: int, day: int, leap: bool) -> int:
    """The midnight of a year's n-th day; without ``leap``, 29 February is not counted."""
    if not leap and day >= 60 and days_in_month(year, 2) == 29:
        day += 1
    return (days_from_civil(year, 1, 1) + day - 1 + EPOCH_DAYS) * 86400
