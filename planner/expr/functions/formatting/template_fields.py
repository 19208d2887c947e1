"""The fields that a template of to_date or to_timestamp found in a text, and the date and time that they mean."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from ivm.errors import SqlError
from storage.types.calendar import HOUR, MINUTE, SECOND, civil_from_days, days_from_civil, days_in_month
from storage.types.text_time import out_of_range

_JULIAN_2000: Final = 2_451_545
_MAX_ZONE_HOUR: Final = 15


class TemplateFields:
    """Fields by name; 0 is not given. ``digits``: of FF1 to FF6; ``year_digits``: of the year's pattern."""

    def __init__(self) -> None:
        self.found: defaultdict[str, int] = defaultdict(int)
        self.iso: bool | None = None
        self.twelve = False
        self.digits = self.year_digits = self.zone_sign = 0

    def use(self, *, iso: bool) -> None:
        """Notes a pattern of the ISO week calendar, or of the Gregorian one. Raises 22007 if both are used."""
        if self.iso is not None and self.iso is not iso:
            hint = "Do not mix Gregorian and ISO week date conventions in a formatting template."
            raise SqlError("22007", "invalid combination of date conventions", hint=hint)
        self.iso = iso

    def put(self, name: str, value: int, pattern: str) -> None:
        """Sets a field. Raises 22007 if it has another value."""
        if self.found[name] not in (0, value):
            detail = "This value contradicts a previous setting for the same field type."
            raise SqlError("22007", f'conflicting values for "{pattern}" field in formatting string', detail)
        self.found[name] = value

    def adjust_year(self, *, short: bool, digits: int) -> None:
        """``short``: a year of less than four digits is the one nearest to 2020."""
        year = self.found["year"]
        if short and year < 1000:
            self.found["year"] = year + (2000 if year < 70 or 100 <= year < 520 else 1900 if year < 100 else 1000)
        self.year_digits = digits

    def resolve(self, text: str) -> tuple[int, int]:
        """The date as days since 2000, the time of day in µs. Raises 22007 and 22008."""
        clock = self._clock()
        year, month, day = self._date()
        if not (1 <= month <= 12 and 1 <= day <= 31) or (self._is_whole() and day > days_in_month(year, month)):
            raise out_of_range(text)
        return days_from_civil(year, month, day), self._micros(clock, text)

    def offset(self, text: str) -> int | None:
        """The zone, in seconds east of Greenwich."""
        if not self.zone_sign:
            return None
        hour, minute = self.found["zone_hour"], self.found["zone_minute"]
        if not (0 <= hour <= _MAX_ZONE_HOUR and 0 <= minute < 60):
            raise SqlError("22009", f'time zone displacement out of range: "{text}"')
        return self.zone_sign * (hour * 3600 + minute * 60)

    def _clock(self) -> tuple[int, int, int]:
        """Hour, minute and second as given. Raises 22007 for an hour that the 12-hour clock has not."""
        f = self.found
        minutes, second = divmod(f["seconds"], 60)
        hour, minute = divmod(minutes, 60)
        hour, minute, second = f["hour"] or hour, f["minute"] or minute, f["second"] or second
        if self.twelve:
            if not 1 <= hour <= 12:
                hint = "Use the 24-hour clock, or give an hour between 1 and 12."
                raise SqlError("22007", f'hour "{hour}" is invalid for the 12-hour clock', hint=hint)
            hour = hour % 12 + (12 if f["afternoon"] else 0)
        return hour, minute, second

    def _micros(self, clock: tuple[int, int, int], text: str) -> int:
        hour, minute, second = clock
        fraction = self.found["milliseconds"] * 1000 + self.found["microseconds"]
        if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= fraction < SECOND):
            raise out_of_range(text)
        return hour * HOUR + minute * MINUTE + second * SECOND + fraction

    def _is_whole(self) -> bool:
        """Whether year, month and day are all given; only then is the day checked against the month."""
        f = self.found
        if f["julian"] or (self.iso and (f["week"] or f["ordinal"])):
            return True
        year = f["year"] or f["century"]
        return bool(year and (f["ordinal"] or f["week"] or ((f["day"] or f["month_week"]) and f["month"])))

    def _year(self) -> int:
        """The astronomical year; by default 1 BC."""
        year, century, bc = self.found["year"], self.found["century"], bool(self.found["bc"])
        if bc:
            century = -century
        if not year:
            return 0 if not century else (century - 1) * 100 + 1 if century > 0 else century * 100 + 1
        if not century or self.year_digits > 2:
            year = -year if bc else year
            return year + 1 if year < 0 else year
        rest = year % 100
        if not rest:
            return century * 100 + (century < 0)
        return (century - 1) * 100 + rest if century > 0 else (century + 1) * 100 - rest + 1

    def _date(self) -> tuple[int, int, int]:
        f = self.found
        year, month, day = self._year(), 1, 1
        if f["julian"]:
            year, month, day = civil_from_days(f["julian"] - _JULIAN_2000)
        ordinal = f["ordinal"]
        if f["week"] and self.iso:
            weekday = f["weekday"] or 2
            # Sunday is day 1 of the fields and the last one of the week
            after = weekday - 2 if weekday > 1 else 6
            year, month, day = civil_from_days(_monday(year, f["week"]) + after)
        elif f["week"]:
            ordinal = (f["week"] - 1) * 7 + 1
        day = (f["month_week"] - 1) * 7 + 1 if f["month_week"] else f["day"] or day
        month = f["month"] or month
        if ordinal and (month <= 1 or day <= 1):
            year, month, day = self._ordinal(year, month, day, ordinal)
        return year, month, day

    def _ordinal(self, year: int, month: int, day: int, ordinal: int) -> tuple[int, int, int]:
        """The month and the day that were not given, by the day of the year."""
        if not year and not self.found["bc"]:
            raise SqlError("22007", "cannot calculate day of year without year information")
        if self.iso:
            return civil_from_days(_monday(year, 1) + ordinal - 1)
        found, before = 1, 0
        while found <= 12 and ordinal > before + days_in_month(year, found):
            before += days_in_month(year, found)
            found += 1
        return year, found if month <= 1 else month, ordinal - before if day <= 1 else day


def _monday(year: int, week: int) -> int:
    """The first day of a week of the ISO calendar."""
    fourth = days_from_civil(year, 1, 4)
    return fourth - (fourth + 5) % 7 + (week - 1) * 7
