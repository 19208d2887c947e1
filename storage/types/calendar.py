"""The proleptic Gregorian calendar, in Postgres's units: days and µs since 2000-01-01."""

from __future__ import annotations

from typing import Final

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
