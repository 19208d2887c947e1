"""Time zones: the offset of an instant, and the instant of a wall-clock time, after PostgreSQL's rules.

A zone is a list of changes. One with yearly rules has the changes of 400 years, after which the calendar repeats, so
every instant of the timestamp range has its offset. Instants are µs since 2000-01-01 UTC, offsets seconds east of
Greenwich.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ivm.errors import SqlError
from storage.types.calendar import EPOCH_DAYS, SECOND, civil_from_days
from storage.types.zone_abbreviations import DYNAMIC, FIXED
from storage.types.zone_files import read_zone, zone_names
from storage.types.zone_rules import LocalTime, Rules, parse_rules

_UNIX: Final = EPOCH_DAYS * 86400
CYCLE: Final = 146097 * 86400
"""400 Gregorian years, in seconds."""
_DAY: Final = 86400
OFFSET_END: Final = 16 * 3600
"""Offsets are less than 16 hours."""
_FIRST_YEAR: Final = 1800
"""Rules without a file hold at all times; this is where their 400 years start."""


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """``times[i]``: when ``kinds[i]`` starts to hold, in seconds since 1970 UTC; before, ``first`` holds. ``later`` and
    ``earlier``: the last 400 years repeat after the last change, the first before the first one."""

    first: LocalTime
    times: tuple[int, ...] = ()
    kinds: tuple[LocalTime, ...] = ()
    later: bool = False
    earlier: bool = False

    def at(self, moment: int) -> LocalTime:
        """What holds at an instant in seconds since 1970."""
        place = bisect_right(self.times, moment - self._shift(moment))
        return self.kinds[place - 1] if place else self.first

    def next_change(self, moment: int) -> tuple[LocalTime, int, LocalTime] | None:
        """What holds at an instant, when the next change is, and what holds then; None if no change follows."""
        shift = self._shift(moment)
        place = bisect_right(self.times, moment - shift)
        if place == len(self.times):
            return None
        return self.kinds[place - 1] if place else self.first, self.times[place] + shift, self.kinds[place]

    def _shift(self, moment: int) -> int:
        """The seconds (whole cycles) to subtract from an instant to get one that the list has."""
        if self.later and moment >= self.times[-1]:
            return ((moment - self.times[-1]) // CYCLE + 1) * CYCLE
        if self.earlier and moment < self.times[0]:
            return -((self.times[0] - moment - 1) // CYCLE + 1) * CYCLE
        return 0

    def local(self, wall: int) -> LocalTime:
        """What holds at a wall-clock time (its seconds since 1970 as if it were UTC).

        A time that a change skips is read by the clocks before it; one that occurs twice by the clocks after it.
        """
        # a day back: offsets are less than 24 hours, and two changes are further apart
        change = self.next_change(wall - _DAY)
        if change is None:
            return self.at(wall - _DAY)
        before, boundary, after = change
        early, late = wall - before.offset, wall - after.offset
        if early < boundary and late < boundary:
            return before
        if early >= boundary and late >= boundary:
            return after
        return before if early > late else after

    def meaning(self, abbreviation: str, moment: int) -> LocalTime:
        """What the lower-case abbreviation meant here when last in use at or before an instant, else when first used
        after it; what holds at the instant if it was never used."""
        place = bisect_right(self.times, moment)
        kinds = [*self.kinds[:place][::-1], self.first, *self.kinds[place:]]
        return next((kind for kind in kinds if kind.abbreviation.lower() == abbreviation), self.at(moment))


def _from_rules(rules: Rules) -> Zone:
    changes = [change for year in range(_FIRST_YEAR, _FIRST_YEAR + 401) for change in rules.changes(year)]
    return _zone(rules.standard, changes, bool(changes), bool(changes))


def _zone(first: LocalTime, changes: list[tuple[int, LocalTime]], later: bool, earlier: bool = False) -> Zone:
    return Zone(first, tuple(time for time, _ in changes), tuple(kind for _, kind in changes), later, earlier)


def _from_file(name: str) -> Zone:
    file = read_zone(name)
    changes = list(file.changes)
    if file.rules is None or file.rules.daylight is None:
        return _zone(file.first, changes, False)
    last = changes[-1][0]
    begin = civil_from_days(last // _DAY - EPOCH_DAYS)[0]
    for year in range(begin, begin + 403):
        changes += [change for change in file.rules.changes(year) if change[0] > last]
    return _zone(file.first, changes, True)


@lru_cache(1024)
def find_zone(name: str) -> Zone | None:
    """A time zone by its name in any case, or by a POSIX string; None if there is none."""
    known = zone_names().get(name.lower())
    if known is not None:
        return _from_file(known)
    rules = parse_rules(name)
    return None if rules is None else _from_rules(rules)


def zone(name: str) -> Zone:
    """``find_zone``. Raises 22023 if there is none."""
    found = find_zone(name)
    if found is None:
        raise SqlError("22023", f'time zone "{name}" not recognized')
    return found


def utc_offset(stamp: int, timezone: str) -> int:
    """A zone's offset at an instant."""
    return zone(timezone).at(stamp // SECOND + _UNIX).offset


def zone_abbreviation(stamp: int, timezone: str) -> str:
    """A zone's abbreviation at an instant: ``PST``, ``UTC``, ``-03``; empty for a bare offset."""
    return zone(timezone).at(stamp // SECOND + _UNIX).abbreviation


def to_utc(local: int, timezone: str) -> int:
    """A wall-clock time in a zone → the instant; see ``Zone.local``."""
    return local - zone(timezone).local(local // SECOND + _UNIX).offset * SECOND


def to_local(stamp: int, timezone: str) -> int:
    """An instant → the wall-clock time in a zone."""
    return stamp + utc_offset(stamp, timezone) * SECOND


# What users write: abbreviations come before names. SET TimeZone takes names only.


def is_zone(text: str) -> bool:
    """Whether the text is an abbreviation or a zone's name."""
    return text.lower() in FIXED or text.lower() in DYNAMIC or find_zone(text) is not None


def zone_meant(text: str) -> str:
    """The name of the zone that an abbreviation or a name means."""
    word = text.lower()
    return fixed_zone(FIXED[word][0]) if word in FIXED else DYNAMIC.get(word, text)


def offset_meant(stamp: int, text: str) -> int:
    """The offset that an abbreviation or a zone's name means at an instant."""
    moment = stamp // SECOND + _UNIX
    found = zone(zone_meant(text))
    return (found.meaning(text.lower(), moment) if text.lower() in DYNAMIC else found.at(moment)).offset


def local_offset_meant(local: int, text: str) -> int:
    """The offset that an abbreviation or a zone's name means for a wall-clock time."""
    wall = local // SECOND + _UNIX
    found = zone(zone_meant(text))
    usual = found.local(wall)
    return (found.meaning(text.lower(), wall - usual.offset) if text.lower() in DYNAMIC else usual).offset


def parse_iso_offset(text: str) -> int | None:
    """``+05``, ``-0330``, ``+05:30:15`` → seconds east of Greenwich; None for any other form. Digits may be missing
    after a colon. 16 hours or more if a part is out of range (DecodeTimezone)."""
    match = re.fullmatch(r"([+-])(\d*)(?:(:)(\d*)(?::(\d*))?)?", text, re.ASCII)
    if match is None:
        return None
    hour, minute, second = (int(match[part] or 0) for part in (2, 4, 5))
    if match[3] is None and len(text) > 3:
        hour, minute = divmod(hour, 100)
    seconds = hour * 3600 + minute * 60 + second if minute < 60 and second < 60 else OFFSET_END
    return seconds if match[1] == "+" else -seconds


def fixed_zone(seconds: int) -> str:
    """Postgres's name for a fixed offset: ``<+02:30>-02:30``."""
    minutes, rest = divmod(abs(seconds), 60)
    shown = f"{minutes // 60:02d}" + (f":{minutes % 60:02d}" if minutes % 60 or rest else "")
    shown += f":{rest:02d}" if rest else ""
    return f"<-{shown}>+{shown}" if seconds < 0 else f"<+{shown}>-{shown}"
