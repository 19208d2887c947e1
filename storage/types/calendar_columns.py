"""``storage.types.calendar`` for whole columns: int64 arrays in, int64 arrays out."""

from __future__ import annotations

import numpy as np

from ivm.rows import Words
from storage.types.calendar import EPOCH_DAYS

_SHIFT = 719468
"""Days from 0000-03-01 to 1970-01-01."""
_LENGTHS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)


def days_of(year: Words, month: Words, day: Words) -> Words:
    """``days_from_civil`` of each."""
    year = year - (month <= 2)
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    days: Words = era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - _SHIFT - EPOCH_DAYS
    return days


def civil(days: Words) -> tuple[Words, Words, Words]:
    """``civil_from_days`` of each: (astronomical years, months, days)."""
    shifted = days + (EPOCH_DAYS + _SHIFT)
    era = shifted // 146097
    of_era = shifted - era * 146097
    of_era_year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * of_era_year + of_era_year // 4 - of_era_year // 100)
    shifted_month = (5 * of_year + 2) // 153
    month = shifted_month + np.where(shifted_month < 10, 3, -9)
    return of_era_year + era * 400 + (month <= 2), month, of_year - (153 * shifted_month + 2) // 5 + 1


def month_lengths(year: Words, month: Words) -> Words:
    """``days_in_month`` of each."""
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    lengths: Words = _LENGTHS[month] + (leap & (month == 2))
    return lengths
