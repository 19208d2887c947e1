"""to_char, to_date and to_timestamp of many values, with constant templates.

Each pattern is written once for each value of what it shows. Of texts those are read that have as many digits as the
template has letters, and between them its separators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ivm.rows import Mask, Words
from ivm.words import Kind
from planner.expr.functions.datetime.columns import in_session, wall_clock
from planner.expr.functions.formatting.format_datetime import FormatToken, fields_of_stamp, tokens, written
from planner.expr.functions.table import CallSite, Made
from planner.expr.functions.text.columns import constant, made_texts
from storage.text_columns import TextColumn, of_choices, of_ids, of_value, packed
from storage.types.calendar import DAY, HOUR, MINUTE, SECOND
from storage.types.calendar_columns import civil, days_of, month_lengths
from storage.types.zone_columns import local_offsets
from storage.types.zones import find_zone

_MOST_TOKENS: Final = 40
_TABLE: Final = 1 << 12
"""Up to so many values next to one another are told apart by a table, more by sorting."""
_LEAST, _MOST = -730_119 * DAY, 2_921_939 * DAY
"""The years 1 to 9999, but for a day."""
_SEPARATORS: Final = ("-", "/", ".", ":", " ", ",")
_YEAR: Final = ("YYYY", "YYY", "YY", "Y", "Y,YYY", "CC", "AD", "BC", "A.D.", "B.C.")
_MONTH: Final = ("MM", "MONTH", "MON", "RM", "Q")
_HOUR: Final = ("HH", "HH12", "HH24", "AM", "PM", "A.M.", "P.M.")
_FRACTION: Final = ("MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6")
_WEEKDAY: Final = ("D", "ID", "DAY", "DY")
_CALENDAR: Final = ("DDD", "IDDD", "IYYY", "IYY", "IY", "I", "IW", "WW", "J")


class _Shown:
    """What patterns show of wall-clock times, each computed when it is first asked for."""

    def __init__(self, local: Words) -> None:
        self.local = local
        self.days, self.micros = np.divmod(local, DAY)
        self.civil = civil(self.days)
        self.known: dict[str, tuple[Words, Words]] = {}

    def of(self, key: str) -> tuple[Words, Words] | None:
        """(rows, one for each value of what a pattern shows; for each row the place of its value among them)."""
        named = _NAMED.get(key)
        if named is None:
            return None
        name, find = named
        if name not in self.known:
            self.known[name] = _distinct(find(self))
        return self.known[name]


_NAMED: Final[dict[str, tuple[str, Callable[[_Shown], Words]]]] = {
    key: (name, find)
    for keys, name, find in (
        (_YEAR, "year", lambda m: m.civil[0]),
        (_MONTH, "month", lambda m: m.civil[1]),
        (("DD", "W"), "day", lambda m: m.civil[2]),
        (_HOUR, "hour", lambda m: m.micros // HOUR),
        (("MI",), "minute", lambda m: m.micros // MINUTE % 60),
        (("SS",), "second", lambda m: m.micros // SECOND % 60),
        (_FRACTION, "fraction", lambda m: m.micros % SECOND),
        (("SSSS", "SSSSS"), "seconds", lambda m: m.micros // SECOND),
        (_WEEKDAY, "weekday", lambda m: m.days % 7),
        (_CALENDAR, "date", lambda m: m.days),
    )
    for key in keys
}


def _distinct(values: Words) -> tuple[Words, Words]:
    least = int(values.min())
    if int(values.max()) - least >= _TABLE:
        _, rows, which = np.unique(values, return_index=True, return_inverse=True)
        return rows, which.reshape(-1)
    rows = np.full(int(values.max()) - least + 1, -1, np.int64)
    rows[values - least] = np.arange(len(values))
    present = rows >= 0
    return rows[present], (np.cumsum(present) - 1)[values - least]


def to_char(site: CallSite, stamps: Words, templates: Words) -> Made | None:
    """to_char with a constant template, of wall-clock times or in the session's zone."""
    if not constant(templates):
        return None
    template = site.context.dictionary.lookup_one(int(templates[0])).decode()
    parts = tokens(template)
    if not 0 < len(parts) <= _MOST_TOKENS:
        return None
    rest = (stamps < _LEAST) | (stamps >= _MOST)
    zoned = site.args[0].kind is Kind.TIMESTAMPTZ
    local = (in_session if zoned else wall_clock)(site, np.where(rest, 0, stamps))
    if local is None:
        return None
    shown = _Shown(local)
    columns = [_column(shown, part) for part in parts]
    return None if None in columns else made_texts(site, rest, *(column for column in columns if column is not None))


def _column(shown: _Shown, part: FormatToken) -> TextColumn | None:
    if not part.key:
        return of_value(part.text.encode(), len(shown.local))
    found = shown.of(part.key)
    if found is None:
        return None
    rows, which = found
    times = [fields_of_stamp(local, None, "") for local in shown.local[rows].tolist()]
    return of_choices([written(time, part).encode() for time in times], which)


_WIDTHS: Final = {"YYYY": 4, "MM": 2, "DD": 2, "HH24": 2, "MI": 2, "SS": 2}
_FIRST_YEAR: Final = 1


def to_date(site: CallSite, ids: Words, templates: Words) -> Made | None:
    found = _read(site, ids, templates)
    return None if found is None else Made(found[0], None, found[2])


def to_timestamp(site: CallSite, ids: Words, templates: Words) -> Made | None:
    found, zone = _read(site, ids, templates), find_zone(site.context.timezone)
    if found is None or zone is None:
        return None
    days, micros, rest = found
    local = days * DAY + micros
    return Made(local - local_offsets(zone, local) * SECOND, None, rest)


def _read(site: CallSite, ids: Words, templates: Words) -> tuple[Words, Words, Mask] | None:
    """Days, times of day, and the texts that are left."""
    layout = _layout(site.context.dictionary.lookup_one(int(templates[0])).decode()) if constant(templates) else None
    if layout is None:
        return None
    fields, separators, width = layout
    column = of_ids(ids, site.context.dictionary)
    rest: Mask = column.lengths != width
    data, offsets = packed(column)
    data = np.concatenate([data, np.zeros(width, np.uint8)])
    letters = data[np.where(rest, 0, offsets[:-1])[:, None] + np.arange(width)]
    for place, separator in separators:
        rest |= letters[:, place] != separator
    digits = letters.astype(np.int64) - ord("0")
    given = {key: _number(digits[:, place : place + _WIDTHS[key]], rest) for key, place in fields.items()}
    one, none = np.ones(len(ids), np.int64), np.zeros(len(ids), np.int64)
    year, month, day = given["YYYY"], given.get("MM", one), given.get("DD", one)
    rest |= (year < _FIRST_YEAR) | (month < 1) | (month > 12) | (day < 1)
    year, month, day = (np.where(rest, 1, part) for part in (year, month, day))
    rest |= day > month_lengths(year, month)
    hour, minute, second = given.get("HH24", none), given.get("MI", none), given.get("SS", none)
    rest |= (hour > 23) | (minute > 59) | (second > 59)
    micros = hour * HOUR + minute * MINUTE + second * SECOND
    return np.where(rest, 0, days_of(year, month, np.where(rest, 1, day))), np.where(rest, 0, micros), rest


def _number(digits: Words, rest: Mask) -> Words:
    """The number that columns of digits make; rows with other letters are added to the rest."""
    found = np.zeros(len(digits), np.int64)
    for place in range(digits.shape[1]):
        found = 10 * found + digits[:, place]
        rest |= (digits[:, place] < 0) | (digits[:, place] > 9)
    return found


def _layout(template: str) -> tuple[dict[str, int], list[tuple[int, int]], int] | None:
    """Where a template has its patterns and its separators, and how wide it is; None: it is not read by columns. A year
    is needed, and a day's month."""
    fields: dict[str, int] = {}
    separators: list[tuple[int, int]] = []
    at = 0
    for part in tokens(template):
        if part.key:
            if part.key not in _WIDTHS or part.key in fields or part.fill or part.suffix:
                return None
            fields[part.key] = at
            at += _WIDTHS[part.key]
            continue
        before = not at or (separators and separators[-1][0] == at - 1)
        if before or part.quoted or part.text not in _SEPARATORS:
            return None
        separators.append((at, ord(part.text)))
        at += 1
    return (fields, separators, at) if "YYYY" in fields and ("MM" in fields or "DD" not in fields) else None
