"""Output functions for whole columns: words → the texts that ``storage.types.text.format_text`` gives, as columns."""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.rows import Mask, Words
from ivm.words import Kind, SqlType, Storage
from storage.dictionary import Dictionary
from storage.text_columns import TextColumn, joined, of_choices, of_decimals, of_ids, of_value, packed
from storage.types.calendar import DAY, HOUR, MINUTE, SECOND
from storage.types.calendar_columns import civil
from storage.types.codec import word_to_float
from storage.types.float_columns import float_texts
from storage.types.numeric import DIRECT_NAN, inline_parts
from storage.types.text_style import TextStyle
from storage.types.time_output import format_offset
from storage.types.zone_columns import offsets
from storage.types.zones import find_zone

_WHOLE: Final = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.OID)
_THEMSELVES: Final = (Kind.TEXT, Kind.VARCHAR, Kind.NAME, Kind.UNKNOWN, Kind.JSON, Kind.JSONB)
_TWO: Final = [b"%02d" % number for number in range(100)]
_FIRST_DAY, _LAST_DAY = -730_119, 2_921_939
"""Of the years 1 to 9999."""

Shown = tuple[TextColumn, Mask]
"""The texts, and the rows whose texts must be made otherwise."""


def shown(type_: SqlType, words: Words, dictionary: Dictionary, style: TextStyle) -> Shown | None:
    """The texts of words that are not NULL; None where all are to be made otherwise. Raises TooLarge."""
    kind, fine = type_.kind, _none(words)
    if kind in _WHOLE:
        return of_decimals(words, 0), fine
    if kind in _THEMSELVES:
        return of_ids(words, dictionary), fine
    if kind is Kind.BOOL:
        return of_choices((b"f", b"t"), words), fine
    if kind is Kind.NUMERIC:
        return _numerics(type_, words, dictionary)
    if kind in (Kind.FLOAT4, Kind.FLOAT8):
        return float_texts(word_to_float(words), kind is Kind.FLOAT4) if style.float_digits > 0 else None
    if kind is Kind.INTERVAL:
        return _intervals(of_ids(words, dictionary)) if style.formats.interval == "postgres" else None
    if style.formats.date != "ISO":
        return None
    if kind is Kind.DATE:
        rest = (words < _FIRST_DAY) | (words > _LAST_DAY)
        return joined(*_dates(np.where(rest, 0, words))), rest
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return _stamps(words, style.timezone if kind is Kind.TIMESTAMPTZ else None)
    return None


def _none(words: Words) -> Mask:
    return np.zeros(len(words), np.bool_)


def _numerics(type_: SqlType, words: Words, dictionary: Dictionary) -> Shown | None:
    if type_.storage is Storage.DIRECT:
        return of_decimals(words, type_.scale or 0), words == DIRECT_NAN
    far = np.flatnonzero(words & 1)
    mantissas, scales = inline_parts(words)
    if not len(far):
        return of_decimals(mantissas, scales), _none(words)
    mantissas[far] = scales[far] = 0
    column, other = of_decimals(mantissas, scales), of_ids(words[far], dictionary)
    column.starts[far], column.lengths[far] = other.starts, other.lengths
    return TextColumn(column.starts, column.lengths, (*column.held, *other.held)), _none(words)


def two_digits(values: Words) -> TextColumn:
    """Numbers from 0 to 99 as two digits."""
    return of_choices(_TWO, values)


def _dates(days: Words) -> list[TextColumn]:
    """Of years from 1 to 9999."""
    year, month, day = civil(days)
    dash = of_value(b"-", len(days))
    return [two_digits(year // 100), two_digits(year % 100), dash, two_digits(month), dash, two_digits(day)]


def _stamps(words: Words, timezone: str | None) -> Shown | None:
    rest = (words < (_FIRST_DAY + 1) * DAY) | (words >= _LAST_DAY * DAY)
    local = np.where(rest, 0, words)
    suffix: list[TextColumn] = []
    if timezone is not None:
        zone = find_zone(timezone)
        if zone is None:
            return None
        shifts = offsets(zone, local)
        local = local + shifts * SECOND
        distinct, which = np.unique(shifts, return_inverse=True)
        suffix = [of_choices([format_offset(shift).encode() for shift in distinct.tolist()], which)]
    days, micros = np.divmod(local, DAY)
    colon = of_value(b":", len(words))
    clock = [two_digits(micros // HOUR), colon, two_digits(micros // MINUTE % 60), colon]
    clock.append(two_digits(micros // SECOND % 60))
    parts = [*_dates(days), of_value(b" ", len(words)), *clock, *_fraction(micros % SECOND), *suffix]
    return joined(*parts), rest


def _fraction(micros: Words) -> list[TextColumn]:
    """The fraction of a second, without zeros at its end."""
    if not np.count_nonzero(micros):
        return []
    zeros = np.zeros(len(micros), np.int64)
    for places in range(1, 6):
        zeros += micros % 10**places == 0
    digits = of_decimals(micros + SECOND, 0)
    lengths = np.where(micros == 0, 0, 6 - zeros)
    point = of_value(b".", len(micros))
    point.lengths[micros == 0] = 0
    return [point, TextColumn(digits.starts + 1, lengths, digits.held)]


def _intervals(column: TextColumn) -> Shown:
    """``format_interval`` of each, in the style postgres."""
    count = len(column)
    months, days, micros = packed(column)[0][: 24 * count].view(">i8").reshape(-1, 3).astype(np.int64).T
    rest = micros == -(2**63)
    years = np.sign(months) * (np.abs(months) // 12)
    parts: list[TextColumn] = []
    begun, below = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    for value, unit in ((years, b"year"), (months - 12 * years, b"mon"), (days, b"day")):
        there = value != 0
        sign = of_choices((b"", b" ", b" +"), begun.astype(np.int64) + (below & (value > 0)))
        name = of_choices((b" " + unit + b"s", b" " + unit), (value == 1).astype(np.int64))
        parts += [_only(part, there) for part in (sign, of_decimals(value, 0), name)]
        below = np.where(there, value < 0, below)
        begun |= there
    clock = (micros != 0) | ~begun
    sign = of_choices((b"", b"+", b"-", b"", b" ", b" +", b" -", b" -"), _clock_sign(micros, begun, below))
    seconds, fraction = np.divmod(np.abs(np.where(rest, 0, micros)), SECOND)
    hours, colon = seconds // 3600, of_value(b":", count)
    zero = of_choices((b"", b"0"), (hours < 10).astype(np.int64))
    time = [sign, zero, of_decimals(hours, 0), colon, two_digits(seconds // 60 % 60), colon, two_digits(seconds % 60)]
    parts += [_only(part, clock) for part in (*time, *_fraction(fraction))]
    return joined(*parts), rest


def _clock_sign(micros: Words, begun: Mask, below: Mask) -> Words:
    """Which of the signs: a blank behind other parts, a plus behind negative ones, a minus."""
    found: Words = 4 * begun.astype(np.int64) + np.where(micros < 0, 2, below.astype(np.int64))
    return found


def _only(column: TextColumn, rows: Mask) -> TextColumn:
    """The column's values in some rows, and nothing in the others."""
    return TextColumn(column.starts, np.where(rows, column.lengths, 0), column.held)
