"""Vector forms of functions that make intervals. Results out of range, and what is not finite, are left to the
functions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ivm.rows import Mask, Words
from ivm.words import Kind
from planner.expr.functions.datetime.columns import in_session, interval_parts, wall_clock
from planner.expr.functions.datetime.intervals import MONTH_DAYS, infinite_words
from planner.expr.functions.table import CallSite, Made, VectorForm
from storage.types.calendar import DAY
from storage.types.calendar_columns import civil, month_lengths
from storage.types.codec import word_to_float

Floats = NDArray[np.float64]
_FAR = 9.2e18
"""Below 2**63, by more than a double's error."""


def _interned(site: CallSite, months: Words, days: Words, micros: Words, rest: Mask) -> Made:
    """The ids of intervals of these parts."""
    rest = rest | (months < -(2**31)) | (months >= 2**31) | (days < -(2**31)) | (days >= 2**31)
    words, rows = np.zeros(len(rest), np.int64), np.flatnonzero(~rest)
    parts = np.stack([months[rows], days[rows], micros[rows]], axis=1).astype(">i8")
    data = np.frombuffer(bytearray(parts.tobytes() + b"\0"), np.uint8)
    words[rows] = site.context.dictionary.intern_packed(data, 24 * np.arange(len(rows) + 1))
    return Made(words, None, rest)


def summed(sign: int) -> VectorForm:
    """interval ± interval."""

    def form(site: CallSite, left: Words, right: Words) -> Made:
        (months1, days1, micros1), (months2, days2, micros2) = interval_parts(site, left), interval_parts(site, right)
        far: Mask = ~(np.abs(micros1.astype(np.float64) + sign * micros2.astype(np.float64)) < _FAR)
        return _interned(site, months1 + sign * months2, days1 + sign * days2, micros1 + sign * micros2, far)

    return form


def between(site: CallSite, left: Words, right: Words) -> Made:
    """timestamp - timestamp."""
    far = infinite_words(left) | infinite_words(right) | ~(np.abs(left.astype(np.float64) - right) < _FAR)
    apart = np.where(far, 0, left - right)
    days = np.abs(apart) // DAY * np.sign(apart)
    return _interned(site, 0 * days, days, apart - days * DAY, far)


def scaled(by: Callable[[Floats, Floats], Floats], number_first: bool = False) -> VectorForm:
    """An interval multiplied or divided by a number, as ``intervals.scale_interval`` does it."""

    def form(site: CallSite, first: Words, second: Words) -> Made:
        ids, numbers = (second, first) if number_first else (first, second)
        number = word_to_float(np.ascontiguousarray(numbers))
        with np.errstate(all="ignore"):
            months, days, micros = (by(part.astype(np.float64), number) for part in interval_parts(site, ids))
            far: Mask = ~((np.abs(months) < _FAR) & (np.abs(days) < _FAR) & (np.abs(micros) < _FAR)) | ~np.isfinite(
                number
            )
            months, days, micros = (np.where(far, 0.0, part) for part in (months, days, micros))
            whole_months, whole_days = np.trunc(months), np.trunc(days)
            month_rest = _snapped((months - whole_months) * MONTH_DAYS)
            seconds = _snapped((days - whole_days + month_rest - np.trunc(month_rest)) * 86400)
            more = np.trunc(seconds / 86400)
            exact = np.rint(micros + (seconds - more * 86400) * 1_000_000)
            far |= ~(np.abs(exact) < _FAR)
        added = more.astype(np.int64) + np.trunc(month_rest).astype(np.int64)
        parts = whole_months.astype(np.int64), whole_days.astype(np.int64) + added
        return _interned(site, *parts, np.where(far, 0.0, exact).astype(np.int64), far)

    return form


def _snapped(values: Floats) -> Floats:
    snapped: Floats = np.rint(values * 1_000_000) / 1_000_000
    return snapped


def aged(site: CallSite, left: Words, right: Words) -> Made | None:
    """``intervals.age``, of wall-clock times or in the session's zone."""
    rest = infinite_words(left) | infinite_words(right)
    local = in_session if site.args[0].kind is Kind.TIMESTAMPTZ else wall_clock
    one, other = local(site, np.where(rest, 0, left)), local(site, np.where(rest, 0, right))
    if one is None or other is None:
        return None
    backwards = one < other
    (date1, time1), (date2, time2) = np.divmod(one, DAY), np.divmod(other, DAY)
    (year1, month1, day1), (year2, month2, day2) = civil(date1), civil(date2)
    sign = np.where(backwards, -1, 1)
    micros, days = sign * (time1 - time2), sign * (day1 - day2)
    months = sign * ((year1 * 12 + month1) - (year2 * 12 + month2))
    days -= micros < 0
    micros += DAY * (micros < 0)
    lengths = month_lengths(np.where(backwards, year1, year2), np.where(backwards, month1, month2))
    while np.count_nonzero(borrowed := days < 0):
        days, months = days + lengths * borrowed, months - borrowed
    return _interned(site, sign * months, sign * days, sign * micros, rest)


def aged_today(today: Callable[[CallSite], int]) -> VectorForm:
    """The age on the day that begins at a moment."""

    def form(site: CallSite, stamps: Words) -> Made | None:
        return aged(site, np.full(len(stamps), today(site)), stamps)

    return form
