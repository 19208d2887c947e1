"""The fast path of ``storage/types/text.py``: whole columns of common types in their plain forms, without a datum per
value.

Both functions return None if the general path must be taken (another type, an unusual form, an error to report).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ivm.rows import Mask, Vector, Words
from ivm.words import NEGATIVE_INFINITY, POSITIVE_INFINITY, Kind, SqlType, Storage
from storage.dictionary import Dictionary
from storage.types.calendar import DAY, EPOCH_DAYS, SECOND
from storage.types.numeric import DIRECT_NAN, word_text
from storage.types.text_style import TextStyle

_LIMITS: Final = {
    Kind.INT2: (-(2**15), 2**15 - 1), Kind.INT4: (-(2**31), 2**31 - 1), Kind.INT8: (-(2**63), 2**63 - 1),
}  # fmt: skip
_DIGITS: Final = frozenset("0123456789-+ \n")
_STAMP: Final = frozenset("0123456789-: \n")
TEXT_KINDS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME, Kind.UNKNOWN)
_UTC: Final = ("UTC", "utc", "GMT", "Etc/UTC")
# the range that datetime_as_string prints with four-digit years, in days since 2000: years 1 to 9999
_FIRST_DAY: Final = -730_119
_LAST_DAY: Final = 2_921_939


def parse_bulk(type_: SqlType, values: Sequence[str | None], dictionary: Dictionary) -> Vector | None:
    """Text → words for integers, text, ISO dates and timestamps; None if not all values are in plain form."""
    if len(values) < 8:
        return None
    nulls: Mask | None = None
    present: Sequence[str | None] = values
    if None in values:
        nulls = np.fromiter((v is None for v in values), np.bool_, len(values))
        present = [v for v in values if v is not None]
    words = _parse_present(type_, present, dictionary)  # type: ignore[arg-type]
    if words is None or nulls is None:
        return None if words is None else Vector(words)
    spread = np.zeros(len(values), np.int64)
    spread[~nulls] = words
    return Vector(spread, nulls)


def _parse_present(type_: SqlType, values: Sequence[str], dictionary: Dictionary) -> Words | None:
    kind = type_.kind
    joined = "\n".join(values)
    if kind in _LIMITS:
        return _integers(values, joined, _LIMITS[kind])
    if kind in (Kind.TEXT, Kind.VARCHAR) and type_.precision is None:
        return None if "\x00" in joined else dictionary.intern([v.encode() for v in values])
    if kind is Kind.DATE and set(joined) <= _STAMP and all(len(v) == 10 for v in values):
        return _datetimes(values, "M8[D]", EPOCH_DAYS)
    plain = kind is Kind.TIMESTAMP and type_.precision is None and set(joined) <= _STAMP
    if plain and all(len(v) == 19 and v[10] == " " for v in values):
        return _datetimes(values, "M8[us]", EPOCH_DAYS * DAY)
    return None


def _integers(values: Sequence[str], joined: str, limits: tuple[int, int]) -> Words | None:
    if not set(joined) <= _DIGITS:
        return None
    try:
        words = np.array(list(map(int, values)), np.int64)
    except (ValueError, OverflowError):
        return None
    if len(words) and (words.min() < limits[0] or words.max() > limits[1]):
        return None
    return words


def _datetimes(values: Sequence[str], unit: str, origin: int) -> Words | None:
    if any(v[:4] == "0000" or not v[:4].isdigit() or v[4] != "-" or v[7] != "-" for v in values):
        return None
    try:
        return np.array(values, unit).astype(np.int64) - origin
    except ValueError:
        return None


def format_bulk(type_: SqlType, vector: Vector, dictionary: Dictionary, style: TextStyle) -> list[bytes | None] | None:
    """Words → text for booleans, integers, text kinds, scaled numerics, dates and timestamps; None for other cases."""
    words, nulls = vector.words, vector.nulls
    if nulls is None:
        return _format_present(type_, words, dictionary, style)
    present = ~nulls
    shown = _format_present(type_, words[present], dictionary, style)
    if shown is None:
        return None
    texts = iter(shown)
    return [None if null else next(texts) for null in nulls.tolist()]


def _format_present(
    type_: SqlType, words: Words, dictionary: Dictionary, style: TextStyle
) -> list[bytes | None] | None:
    kind = type_.kind
    if kind in TEXT_KINDS:
        return list(dictionary.lookup(words))
    if kind in _LIMITS or kind is Kind.OID:
        return [b"%d" % word for word in words.tolist()]
    if kind is Kind.BOOL:
        return [b"t" if word else b"f" for word in words.tolist()]
    if kind is Kind.NUMERIC and type_.storage is Storage.DIRECT:
        return _scaled(words, type_.scale or 0) if DIRECT_NAN not in words else None
    if kind is Kind.NUMERIC:
        return [word_text(word, dictionary) for word in words.tolist()]
    if len(words) < 16 or style.formats.date != "ISO":
        return None
    if kind is Kind.DATE:
        return _dates(words)
    if kind is Kind.TIMESTAMP or (kind is Kind.TIMESTAMPTZ and style.timezone in _UTC):
        return _stamps(words, b"" if kind is Kind.TIMESTAMP else b"+00")
    return None


def _scaled(words: Words, scale: int) -> list[bytes | None]:
    if not scale:
        return [b"%d" % word for word in words.tolist()]
    unit = 10**scale
    return [b"%s%d.%0*d" % (b"-" if w < 0 else b"", abs(w) // unit, scale, abs(w) % unit) for w in words.tolist()]


def _dates(words: Words) -> list[bytes | None] | None:
    if len(words) and (words.min() < _FIRST_DAY or words.max() > _LAST_DAY):
        return None
    texts = np.datetime_as_string((words + EPOCH_DAYS).astype("M8[D]"))
    return [text.encode() for text in texts.tolist()]


def _stamps(words: Words, suffix: bytes) -> list[bytes | None] | None:
    infinite = (words == POSITIVE_INFINITY) | (words == NEGATIVE_INFINITY)
    if infinite.any() or words.min() < _FIRST_DAY * DAY or words.max() >= (_LAST_DAY + 1) * DAY:
        return None
    whole = not (words % SECOND).any()
    stamps = (words + EPOCH_DAYS * DAY).astype("M8[us]")
    texts = np.datetime_as_string(stamps, unit="s" if whole else "us").tolist()
    if whole:
        return [text.replace("T", " ").encode() + suffix for text in texts]
    return [text.replace("T", " ").rstrip("0").rstrip(".").encode() + suffix for text in texts]
