"""The proleptic Gregorian calendar and time zones, in Postgres's units: days and µs since 2000-01-01."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ivm.errors import SqlError

DAY: Final = 86_400_000_000
SECOND: Final = 1_000_000
MINUTE: Final = 60_000_000
HOUR: Final = 3_600_000_000
EPOCH_DAYS: Final = 10_957
"""Days from 1970-01-01 to 2000-01-01."""
MIN_DATE: Final = -2_451_545
"""4714-11-24 BC."""
MAX_DATE: Final = 2_145_031_948
"""5874897-12-31."""
MIN_TIMESTAMP: Final = -211_813_488_000_000_000
END_TIMESTAMP: Final = 9_223_371_331_200_000_000
"""294277-01-01, the first timestamp out of range."""

_FIXED: Final = re.compile(r"(?:utc|gmt|<[^>]*>)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?\Z", re.IGNORECASE)

# the commonly used abbreviations of Postgres's default set: seconds east of Greenwich
ABBREVIATIONS: Final[dict[str, int]] = {
    "z": 0, "utc": 0, "gmt": 0, "zulu": 0, "uct": 0, "wet": 0, "west": 3600, "bst": 3600, "cet": 3600, "cest": 7200,
    "met": 3600, "mest": 7200, "eet": 7200, "eest": 10800, "msk": 10800, "est": -18000, "edt": -14400, "cst": -21600,
    "cdt": -18000, "mst": -25200, "mdt": -21600, "pst": -28800, "pdt": -25200, "akst": -32400, "akdt": -28800,
    "hst": -36000, "jst": 32400, "kst": 32400, "sgt": 28800, "hkt": 28800, "aest": 36000, "aedt": 39600,
    "acst": 34200, "acdt": 37800, "awst": 28800, "nzst": 43200, "nzdt": 46800, "brt": -10800, "art": -10800,
    "sast": 7200, "eat": 10800, "pkt": 18000, "ist": 7200, "idt": 10800, "nst": -12600, "ndt": -9000, "ast": -14400,
    "adt": -10800,
}  # fmt: skip


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 2000-01-01 of a date; the year is astronomical (0 is 1 BC). Howard Hinnant's algorithm."""
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468 - EPOCH_DAYS


def civil_from_days(days: int) -> tuple[int, int, int]:
    """The inverse: (astronomical year, month, day)."""
    shifted = days + EPOCH_DAYS + 719468
    era = shifted // 146097
    of_era = shifted - era * 146097
    of_era_year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * of_era_year + of_era_year // 4 - of_era_year // 100)
    shifted_month = (5 * of_year + 2) // 153
    month = shifted_month + (3 if shifted_month < 10 else -9)
    return of_era_year + era * 400 + (month <= 2), month, of_year - (153 * shifted_month + 2) // 5 + 1


def days_in_month(year: int, month: int) -> int:
    """The number of days in a month of an astronomical year."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@lru_cache(1024)
def zone(name: str) -> ZoneInfo | int:
    """A time zone by name: a ZoneInfo, or a fixed offset in seconds east of Greenwich. 22023 if there is none.

    A POSIX offset (``UTC+3``, ``+3``) is positive to the west, as in POSIX and Postgres. What SET TIME ZONE accepts as
    hours east of Greenwich is passed here as a ``fixed_zone``.
    """
    lower = name.strip().lower()
    if lower in ABBREVIATIONS:
        return ABBREVIATIONS[lower]
    fixed = _FIXED.match(lower)
    if fixed:
        seconds = int(fixed[2]) * 3600 + int(fixed[3] or 0) * 60 + int(fixed[4] or 0)
        return -seconds if fixed[1] == "+" else seconds
    found = _zone_info(name.strip())
    if found is None:
        raise SqlError("22023", f'time zone "{name}" not recognized')
    return found


def _zone_info(name: str) -> ZoneInfo | None:
    for spelling in (name, name.title().replace("Of_", "of_"), name.upper(), "/".join(_titled(name))):
        try:
            return ZoneInfo(spelling)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    return None


def _titled(name: str) -> list[str]:
    return ["_".join(word.capitalize() for word in part.split("_")) for part in name.split("/")]


def parse_iso_offset(text: str) -> int | None:
    """``+05``, ``-0330``, ``+05:30:15`` → seconds east of Greenwich; None for any other form."""
    match = re.fullmatch(r"([+-])(\d{1,2})(?::(\d{1,2})(?::(\d{1,2}))?|(\d{2})(\d{2})?)?", text)
    if match is None:
        return None
    seconds = int(match[2]) * 3600 + int(match[3] or match[5] or 0) * 60 + int(match[4] or match[6] or 0)
    return seconds if match[1] == "+" else -seconds


def fixed_zone(seconds: int) -> str:
    """Postgres's name for a fixed offset in seconds east of Greenwich: ``<+02:30>-02:30``."""
    minutes, rest = divmod(abs(seconds), 60)
    shown = f"{minutes // 60:02d}" + (f":{minutes % 60:02d}" if minutes % 60 or rest else "")
    shown += f":{rest:02d}" if rest else ""
    return f"<-{shown}>+{shown}" if seconds < 0 else f"<+{shown}>-{shown}"


def utc_offset(stamp: int, timezone: str) -> int:
    """A zone's offset in seconds east of Greenwich at an instant (µs since 2000 UTC)."""
    place = zone(timezone)
    if isinstance(place, int):
        return place
    moment = _representable(stamp).replace(tzinfo=UTC)
    offset = moment.astimezone(place).utcoffset()
    assert offset is not None
    return round(offset.total_seconds())


def zone_abbreviation(stamp: int, timezone: str) -> str | None:
    """A zone's abbreviation at an instant: ``PST``, ``UTC``, ``-03``; None for a bare offset."""
    place = zone(timezone)
    return None if isinstance(place, int) else _representable(stamp).replace(tzinfo=UTC).astimezone(place).tzname()


def local_offset(local: int, timezone: str) -> int:
    """The offset of a wall-clock time. In a gap: the offset before the change. If ambiguous: standard time."""
    place = zone(timezone)
    if isinstance(place, int):
        return place
    moment = _representable(local).replace(tzinfo=place)
    first, second = moment.utcoffset(), moment.replace(fold=1).utcoffset()
    assert first is not None
    assert second is not None
    return round(min(first, second).total_seconds())


def _representable(stamp: int) -> datetime:
    # Gregorian years repeat every 400, and no zone's rules extend beyond datetime's range
    days, rest = divmod(stamp, DAY)
    year, month, day = civil_from_days(days)
    if year > 9000:
        year = 8600 + year % 400
    elif year < 10:
        year, month, day = 10, 1, 1
    return datetime(year, month, day) + timedelta(microseconds=rest)


def to_utc(local: int, timezone: str) -> int:
    """A wall-clock time in a zone → the instant."""
    return local - local_offset(local, timezone) * SECOND


def to_local(stamp: int, timezone: str) -> int:
    """An instant → the wall-clock time in a zone."""
    return stamp + utc_offset(stamp, timezone) * SECOND


def is_zone(text: str) -> bool:
    """Whether the text names a time zone."""
    try:
        zone(text)
    except SqlError:
        return False
    return True
