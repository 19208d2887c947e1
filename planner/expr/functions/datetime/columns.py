"""Vector forms of functions of dates, timestamps and intervals. Infinite moments, those near the ends of the range, and
units that are not listed here are left to the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ivm.errors import SqlError
from ivm.rows import Mask, Words
from ivm.words import Kind
from planner.expr.functions.datetime.fields import TRUNCATED, unit_of
from planner.expr.functions.datetime.intervals import infinite_words
from planner.expr.functions.table import CallSite, Made, VectorForm
from planner.expr.functions.text.columns import constant
from storage.text_columns import TextColumn, of_ids, packed
from storage.types.calendar import DAY, EPOCH_DAYS, HOUR, MINUTE, SECOND
from storage.types.calendar_columns import civil, days_of, month_lengths
from storage.types.codec import float_to_word, word_to_float
from storage.types.numeric import INLINE_LIMIT, inline_words
from storage.types.zone_abbreviations import DYNAMIC
from storage.types.zone_columns import local_offsets, offsets
from storage.types.zones import Zone, find_zone, zone_meant

_LEAST, _MOST = -2.118e17, 9.2233e18
"""Within the range of timestamps, by more than a double's error."""

Local = Callable[[CallSite, Words], Words | None]
"""Moments → wall-clock times; None: the function is to say why there are none."""


def _near(estimate: NDArray[np.float64]) -> Mask:
    """Where a timestamp, as a double, is not certainly in range."""
    outside: Mask = ~((estimate > _LEAST) & (estimate < _MOST))
    return outside


def of_epoch(_site: CallSite, words: Words) -> Made:
    """Seconds since 1970."""
    with np.errstate(all="ignore"):
        micros = np.rint((word_to_float(np.ascontiguousarray(words)) - EPOCH_DAYS * 86400) * SECOND)
    rest = _near(micros)
    return Made(np.where(rest, 0.0, micros).astype(np.int64), None, rest)


def interval_parts(site: CallSite, ids: Words) -> tuple[Words, Words, Words]:
    """(months, days, µs) of intervals."""
    few = ids[:1] if constant(ids) else ids
    column: TextColumn = of_ids(few, site.context.dictionary)
    parts = packed(column)[0][: 24 * len(few)].view(">i8").reshape(-1, 3).astype(np.int64)
    if constant(ids):
        parts = np.broadcast_to(parts, (len(ids), 3))
    return parts[:, 0], parts[:, 1], parts[:, 2]


def _moved(stamps: Words, months: Words, days: Words, micros: Words) -> tuple[Words, Mask]:
    """Wall-clock times plus months, then days and time; and the rows in which that is left to the function."""
    rest = infinite_words(stamps)
    if np.count_nonzero(months):
        date, time = np.divmod(stamps, DAY)
        year, month, day = civil(date)
        year, month = np.divmod(year * 12 + month - 1 + months, 12)
        date = days_of(year, month + 1, np.minimum(day, month_lengths(year, month + 1)))
        rest = rest | _near(date.astype(np.float64) * DAY)
        stamps = date * DAY + time
    rest = rest | _near(stamps.astype(np.float64) + days.astype(np.float64) * DAY + micros)
    return stamps + days * DAY + micros, rest


def shifted(sign: int, interval_first: bool = False) -> VectorForm:
    """timestamp ± interval."""

    def form(site: CallSite, first: Words, second: Words) -> Made:
        stamps, ids = (second, first) if interval_first else (first, second)
        months, days, micros = (sign * part for part in interval_parts(site, ids))
        words, rest = _moved(stamps, months, days, micros)
        return Made(words, None, rest)

    return form


def shifted_date(sign: int, interval_first: bool = False) -> VectorForm:
    """date ± interval."""
    form = shifted(sign, interval_first)

    def on_days(site: CallSite, first: Words, second: Words) -> Made | None:
        days = second if interval_first else first
        far = infinite_words(days) | _near(days.astype(np.float64) * DAY)
        stamps = np.where(far, 0, days) * DAY
        made = form(site, *((first, stamps) if interval_first else (stamps, second)))
        return None if made is None else Made(made.words, None, far if made.rest is None else made.rest | far)

    return on_days


def shifted_zoned(sign: int, interval_first: bool = False) -> VectorForm:
    """timestamptz ± interval: months and days on the wall clock of the session's zone, the rest in elapsed time."""

    def form(site: CallSite, first: Words, second: Words) -> Made | None:
        stamps, ids = (second, first) if interval_first else (first, second)
        months, days, micros = (sign * part for part in interval_parts(site, ids))
        if np.count_nonzero(months) or np.count_nonzero(days):
            zone = find_zone(site.context.timezone)
            if zone is None:
                return None
            rest = infinite_words(stamps) | _near(stamps.astype(np.float64))
            known = np.where(rest, 0, stamps)
            local, far = _moved(known + offsets(zone, known) * SECOND, months, days, 0 * micros)
            rest |= far
            known = np.where(rest, 0, local)
            moved = known - local_offsets(zone, known) * SECOND
            by_clock = (months != 0) | (days != 0)
            stamps = np.where(by_clock & ~rest, moved, stamps)
        else:
            rest = np.zeros(len(stamps), np.bool_)
        rest = rest | infinite_words(stamps) | _near(stamps.astype(np.float64) + micros)
        return Made(stamps + micros, None, rest)

    return form


def wall_clock(_site: CallSite, stamps: Words) -> Words:
    """Timestamps without a zone are wall-clock times."""
    return stamps


def in_session(site: CallSite, stamps: Words) -> Words | None:
    """Wall-clock times of the session's zone."""
    zone = find_zone(site.context.timezone)
    return None if zone is None else stamps + offsets(zone, stamps) * SECOND


def _zone(site: CallSite, names: Words) -> Zone | None:
    """The zone that a constant names and that does not mean different offsets at different times."""
    if not constant(names):
        return None
    name = site.context.dictionary.lookup_one(int(names[0])).decode()
    return None if name.lower() in DYNAMIC else find_zone(zone_meant(name))


def at_zone(site: CallSite, names: Words, locals_: Words) -> Made | None:
    """timestamp AT TIME ZONE"""
    zone, rest = _zone(site, names), _near(locals_.astype(np.float64))
    if zone is None:
        return None
    known = np.where(rest, 0, locals_)
    made = known - local_offsets(zone, known) * SECOND
    return Made(made, None, rest | _near(made.astype(np.float64)))


def at_zone_zoned(site: CallSite, names: Words, stamps: Words) -> Made | None:
    """timestamptz AT TIME ZONE"""
    zone, rest = _zone(site, names), _near(stamps.astype(np.float64))
    if zone is None:
        return None
    known = np.where(rest, 0, stamps)
    made = known + offsets(zone, known) * SECOND
    return Made(made, None, rest | _near(made.astype(np.float64)))


def binned(site: CallSite, strides: Words, stamps: Words, origins: Words) -> Made | None:
    """date_bin by a constant."""
    if not constant(strides):
        return None
    months, days, micros = (int(part[0]) for part in interval_parts(site, strides[:1]))
    width = days * DAY + micros
    if months or not 0 < width < 2**62:
        return None
    distance = stamps.astype(np.float64) - origins
    rest = _near(stamps.astype(np.float64)) | _near(origins.astype(np.float64)) | ~(np.abs(distance) < 9e18)
    since = np.where(rest, 0, stamps - origins)
    made = origins + since // width * width
    return Made(made, None, rest | _near(origins.astype(np.float64) + since - width))


def _unit(site: CallSite, names: Words, label: str) -> str | None:
    """The field that a constant names; None: it names none, which is the function's to say."""
    if not constant(names):
        return None
    try:
        return unit_of(site.context.dictionary.lookup_one(int(names[0])).decode(), label)
    except SqlError:
        return None


_DAY_UNITS: Final = ("day", "week", "month", "quarter", "year")


def _truncated(unit: str, stamps: Words) -> Words:
    if unit in TRUNCATED:
        return stamps // TRUNCATED[unit] * TRUNCATED[unit]
    days = stamps // DAY
    if unit == "week":
        days = days - (days + 5) % 7
    elif unit != "day":
        year, month, _ = civil(days)
        first = {"month": month, "quarter": (month - 1) // 3 * 3 + 1, "year": 0 * month + 1}[unit]
        days = days_of(year, first, 0 * first + 1)
    made: Words = days * DAY
    return made


def truncated(site: CallSite, names: Words, stamps: Words) -> Made | None:
    """date_trunc of wall-clock times."""
    unit = _unit(site, names, "timestamp without time zone")
    if unit not in TRUNCATED and unit not in _DAY_UNITS:
        return None
    rest = infinite_words(stamps)
    return Made(_truncated(unit, np.where(rest, 0, stamps)), None, rest)


def truncated_zoned(site: CallSite, names: Words, stamps: Words, zones: Words | None = None) -> Made | None:
    """date_trunc in the session's zone, or in a constant one."""
    unit = _unit(site, names, "timestamp with time zone")
    zone = find_zone(site.context.timezone) if zones is None else _zone(site, zones)
    if zone is None or (unit not in TRUNCATED and unit not in _DAY_UNITS):
        return None
    rest = _near(stamps.astype(np.float64))
    known = np.where(rest, 0, stamps)
    shift = offsets(zone, known) * SECOND
    local = _truncated(unit, known + shift)
    made = local - (shift if unit in TRUNCATED else local_offsets(zone, local) * SECOND)
    return Made(made, None, rest | _near(made.astype(np.float64)))


def _clock_field(unit: str, micros: Words) -> tuple[Words, int] | None:
    match unit:
        case "microseconds":
            return micros % MINUTE, 0
        case "milliseconds":
            return micros % MINUTE, 3
        case "second":
            return micros % MINUTE, 6
        case "minute":
            return micros // MINUTE % 60, 0
        case "hour":
            return micros // HOUR, 0
    return None


def _date_field(unit: str, days: Words) -> Words | None:
    match unit:
        case "dow":
            return (days + 6) % 7
        case "isodow":
            return (days + 5) % 7 + 1
        case "day" | "month" | "quarter" | "year" | "doy":
            year, month, day = civil(days)
            found: dict[str, Words] = {"day": day, "month": month, "quarter": (month - 1) // 3 + 1}
            if unit == "doy":
                return days - days_of(year, 0 * year + 1, 0 * year + 1) + 1
            return np.where(year > 0, year, year - 1) if unit == "year" else found[unit]
    return None


def _field(unit: str, local: Words, stamps: Words) -> tuple[Words, int] | None:
    """(mantissas, scale) of a field."""
    if unit == "epoch":
        return stamps + EPOCH_DAYS * DAY, 6
    days, micros = np.divmod(local, DAY)
    found = _date_field(unit, days)
    return (found, 0) if found is not None else _clock_field(unit, micros)


def extracted(local: Local) -> VectorForm:
    """extract, as numeric or (date_part) as double precision."""

    def form(site: CallSite, names: Words, stamps: Words) -> Made | None:
        zoned = site.args[1].kind is Kind.TIMESTAMPTZ
        unit = _unit(site, names, f"timestamp {'with' if zoned else 'without'} time zone")
        rest = _near(stamps.astype(np.float64))
        known = np.where(rest, 0, stamps)
        clock = local(site, known)
        found = None if unit is None or clock is None else _field(unit, clock, known)
        return None if found is None else _shown(site, *found, rest)

    return form


def extracted_of_date(site: CallSite, names: Words, days: Words) -> Made | None:
    """extract of dates, which have no time."""
    unit, rest = _unit(site, names, "date"), infinite_words(days)
    if unit is None:
        return None
    known = np.where(rest, 0, days)
    if unit == "epoch":
        return _shown(site, (known + EPOCH_DAYS) * 86400, 0, rest)
    found = _date_field(unit, known)
    return None if found is None else _shown(site, found, 0, rest)


def _shown(site: CallSite, mantissas: Words, scale: int, rest: Mask) -> Made:
    if site.result.kind is Kind.NUMERIC:
        return Made(inline_words(mantissas, scale), None, rest | (np.abs(mantissas) >= INLINE_LIMIT))
    return Made(float_to_word(mantissas / 10.0**scale), None, rest | (np.abs(mantissas) >= 2**53))
