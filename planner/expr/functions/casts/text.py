"""Casts among strings, and between strings and everything else by the types' text forms (``storage.types.text``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Vector, Words
from ivm.words import NAMED_OIDS, NUMERIC, Kind
from planner.expr.functions.casts.registry import cast_per_value, cast_vectorised
from planner.expr.functions.table import CallSite, Made, Raises, Volatility
from planner.expr.functions.text.columns import made_texts
from storage.text_columns import decimals, of_ids
from storage.types.codec import decode, float_to_word
from storage.types.definitions import DEFINITIONS
from storage.types.float_columns import decimal_floats
from storage.types.numeric import INLINE_LIMIT, inline_words
from storage.types.shown_columns import shown
from storage.types.text import TextStyle, fit_string, format_text, parse_rows
from storage.types.text_char import format_char1, parse_char1

STRINGS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME)
_PLAIN: Final = (Kind.TEXT, Kind.VARCHAR, Kind.UNKNOWN)
"""Strings whose words are those of text with the same characters."""
_LIMITS: Final = {Kind.INT2: 2**15, Kind.INT4: 2**31, Kind.INT8: 2**60}
_OTHERS: Final = (
    Kind.VOID, Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC,
    Kind.JSON, Kind.JSONB, Kind.OID, *(kind for kind, own in DEFINITIONS.items() if not own.by_settings),
)  # fmt: skip
# the text forms of these types depend on the time zone, the current time, or the catalog
_BY_SETTINGS: Final = (
    Kind.DATE,
    Kind.TIME,
    Kind.TIMESTAMP,
    Kind.TIMESTAMPTZ,
    Kind.INTERVAL,
    Kind.ARRAY,
    Kind.RECORD,
    *(kind for kind, own in DEFINITIONS.items() if own.by_settings),
)
_BY_CATALOG: Final = NAMED_OIDS


def style_of(site: CallSite) -> TextStyle:
    """The settings that text forms depend on, from the context."""
    context = site.context
    return TextStyle(context.timezone, context.now, context.session, context.formats)


@cast_per_value((Kind.BPCHAR, Kind.NAME), STRINGS, needs_assignment=True, raises=Raises.TYPMOD)
@cast_per_value(_PLAIN, (Kind.VARCHAR, Kind.BPCHAR, Kind.NAME), needs_assignment=True, raises=Raises.TYPMOD)
def string_to_string(site: CallSite, value: str, assignment: bool) -> str:
    if site.args[0].kind is Kind.BPCHAR and site.result.kind is not Kind.BPCHAR:
        value = value.rstrip(" ")
    return fit_string(value, site.result, assignment)


@cast_vectorised(_PLAIN, (Kind.TEXT,), total=True)
def same_text(_site: CallSite, words: Words) -> Words:
    return words


def _strings(site: CallSite, texts: Sequence[bytes | None], assignment: bool) -> Words:
    """Parses texts as the result type; gives their words."""
    target = site.result
    dictionary = site.context.dictionary
    present = [t or b"" for t in texts]
    if target.precision is None and target.kind is not Kind.NAME:
        return dictionary.intern(present)
    fitted: list[bytes] = []
    for row, text in enumerate(present):
        try:
            fitted.append(fit_string(text.decode(), target, assignment).encode())
        except SqlError as error:
            site.fail(np.array([row]), error.with_traceback(None))
            fitted.append(b"")
    return dictionary.intern(fitted)


def _output(site: CallSite, words: Words, assignment: bool) -> Words:
    source = site.args[0]
    if source.kind is Kind.BOOL:
        # the cast gives true and false, the output function t and f
        yes, no = (b"t", b"f") if site.result.kind is Kind.NAME else (b"true", b"false")
        return _strings(site, [yes if w else no for w in words.tolist()], assignment)
    own = DEFINITIONS.get(source.kind)
    if own is not None and own.cast_text is not None and site.result.kind is not Kind.NAME:
        datums = decode(source, Vector(words), site.context.dictionary)
        return _strings(site, [own.cast_text(datum).encode() for datum in datums], assignment)
    texts = format_text(source, Vector(words), site.context.dictionary, style_of(site))
    return _strings(site, texts, assignment)


def _output_of_many(site: CallSite, words: Words) -> Made | None:
    source, target = site.args[0], site.result
    if target.precision is not None or target.kind is Kind.NAME or source.kind is Kind.BOOL:
        return None
    found = shown(source, words, site.context.dictionary, style_of(site))
    return None if found is None else made_texts(site, found[1], found[0])


def _input_of_many(site: CallSite, words: Words) -> Made | None:
    """Numbers in plain form; PostgreSQL takes spaces and exponents too."""
    target = site.result
    limit = _LIMITS.get(target.kind, 0)
    real = target.kind in (Kind.FLOAT4, Kind.FLOAT8)
    if not limit and not real and target != NUMERIC:
        return None
    column = of_ids(words, site.context.dictionary)
    mantissas, scales = decimals(column)
    if real:
        values, rest = decimal_floats(mantissas, scales)
        if target.kind is Kind.FLOAT4:
            values = values.astype(np.float32).astype(np.float64)
        return Made(float_to_word(values), None, rest | ((mantissas == 0) & (column.lengths > 1)))  # it may be -0
    if limit:
        return Made(mantissas, None, (scales != 0) | (mantissas < -limit) | (mantissas >= limit))
    return Made(inline_words(mantissas, scales), None, (scales < 0) | (np.abs(mantissas) >= INLINE_LIMIT))


def _input(site: CallSite, words: Words) -> Vector:
    dictionary = site.context.dictionary
    texts = [b.decode() for b in dictionary.lookup(words)]
    vector, failures = parse_rows(site.result, texts, dictionary, style_of(site))
    for row, error in failures:
        site.fail(np.array([row]), error)
    return vector


def _register(kinds: tuple[Kind, ...], volatility: Volatility, read: Volatility | None = None) -> None:
    """``read``: the volatility of the casts from strings, if it is another one."""
    cast_vectorised(
        kinds, STRINGS, volatility=volatility, needs_assignment=True, raises=Raises.TYPMOD, vector=_output_of_many
    )(_output)
    cast_vectorised((*STRINGS, Kind.UNKNOWN), kinds, volatility=read or volatility, vector=_input_of_many)(_input)


# a missing label may be added later; existing ones never go away (one that a view depends on is never renamed)
cast_vectorised((Kind.ENUM,), STRINGS, needs_assignment=True, raises=Raises.TYPMOD)(_output)
cast_vectorised((*STRINGS, Kind.UNKNOWN), (Kind.ENUM,), volatility="stable")(_input)
_register(_OTHERS, "immutable")
_register(_BY_SETTINGS, "settings")
_register((Kind.BYTEA,), "settings", "immutable")
_register(_BY_CATALOG, "stable")


cast_per_value((*STRINGS, Kind.UNKNOWN), (Kind.CHAR1,))(parse_char1)


@cast_per_value((Kind.CHAR1,), STRINGS, needs_assignment=True, raises=Raises.TYPMOD)
def from_char1(site: CallSite, value: str, assignment: bool) -> str:
    return fit_string(format_char1(value), site.result, assignment)


@cast_vectorised((Kind.INT4,), (Kind.CHAR1,))
def integer_to_char1(site: CallSite, words: Words) -> Words:
    site.fail_where((words < -128) | (words > 127), SqlError("22003", '"char" out of range'))
    return words & 255


@cast_vectorised((Kind.CHAR1,), (Kind.INT4,), total=True)
def char1_to_integer(_site: CallSite, words: Words) -> Words:
    return (words ^ 128) - 128
