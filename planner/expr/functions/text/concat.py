"""Functions that make text from values of any type: concat, concat_ws, ||, format, quote_*, array_to_string."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Mask, Vector, Words
from ivm.stops import polled
from ivm.words import TEXT, Kind, SqlType
from planner.expr.functions import array_columns
from planner.expr.functions.casts.text import style_of
from planner.expr.functions.room import joined
from planner.expr.functions.table import ANY, ANYARRAY, ANYELEMENT, ANYNONARRAY, CallSite, Made, Raises, per_value
from planner.expr.functions.text.columns import made_texts
from planner.identifiers import quoted
from storage.text_columns import TextColumn
from storage.types.arrays import elements, shape
from storage.types.definitions import DEFINITIONS
from storage.types.shown_columns import shown
from storage.types.text import format_datum

_FORMAT: Final = re.compile(r"%(?:(\d+)\$)?(-)?(\*(?:\d+\$)?|\d+)?(.?)", re.DOTALL)


def to_text(site: CallSite, type_: SqlType, value: Any) -> str:
    """A value's text by its type's output function, as in concat and format: a boolean is t or f."""
    return format_datum(type_, value, style_of(site))


def cast_to_text(site: CallSite, type_: SqlType, value: Any) -> str:
    """A value cast to text: as ``to_text``, but a boolean is true or false, an inet has its mask, and character(n)
    loses its padding."""
    if type_.kind is Kind.BOOL:
        return "true" if value else "false"
    own = DEFINITIONS.get(type_.kind)
    if own is not None and own.cast_text is not None:
        return own.cast_text(value)
    text = to_text(site, type_, value)
    return text.rstrip(" ") if type_.kind is Kind.BPCHAR else text


def _columns(
    site: CallSite, types: Sequence[SqlType], vectors: Sequence[Vector]
) -> tuple[list[TextColumn], list[Mask], Mask] | None:
    """The arguments' texts (nothing for NULL), where they are NULL, and the rows that are left to the function."""
    parts, absent, rest = [], [], np.zeros(site.count, np.bool_)
    for type_, vector in zip(types, vectors, strict=True):
        nulls = np.zeros(site.count, np.bool_) if vector.nulls is None else vector.nulls
        present = np.flatnonzero(~nulls)
        found = shown(type_, vector.words[present], site.context.dictionary, style_of(site))
        if found is None:
            return None
        column, left = found
        starts, lengths = np.zeros(site.count, np.int64), np.zeros(site.count, np.int64)
        starts[present], lengths[present], rest[present] = column.starts, column.lengths, rest[present] | left
        parts.append(TextColumn(starts, lengths, column.held))
        absent.append(nulls)
    return parts, absent, rest


def _concat(site: CallSite, *vectors: Vector) -> Made | None:
    found = _columns(site, site.args, vectors)
    return None if found is None else made_texts(site, found[2], *found[0])


def _concat_ws(site: CallSite, separator: Vector, *vectors: Vector) -> Made | None:
    found = _columns(site, site.args, (separator, *vectors))
    if found is None:
        return None
    (between, *parts), (missing, *absent), rest = found
    put: list[TextColumn] = []
    begun = np.zeros(site.count, np.bool_)
    for part, nulls in zip(parts, absent, strict=True):
        put += [TextColumn(between.starts, np.where(begun & ~nulls, between.lengths, 0), between.held), part]
        begun |= ~nulls
    made = made_texts(site, rest | missing, *put)
    return Made(np.where(missing, 0, made.words), missing, rest & ~missing)


def _appended(site: CallSite, *words: Words) -> Made | None:
    """|| of a text and another value, in either order."""
    if any(t.kind is Kind.BOOL or t.kind in DEFINITIONS for t in site.args):
        return None
    return _concat(site, *map(Vector, words))


@per_value(
    "concat", (ANY,), TEXT, strict=False, volatility="settings", variadic=True, needs_site=True, vector=_concat
)  # fmt: skip
def concat(site: CallSite, *values: Any) -> str:
    return _together("", [to_text(site, t, v) for t, v in zip(site.args, values, strict=True) if v is not None])


@per_value(
    "concat_ws", (TEXT, ANY), TEXT, strict=False, volatility="settings", variadic=True, needs_site=True,
    vector=_concat_ws,
)  # fmt: skip
def concat_ws(site: CallSite, separator: str | None, *values: Any) -> str | None:
    if separator is None:
        return None
    texts = [to_text(site, t, v) for t, v in zip(site.args[1:], values, strict=True) if v is not None]
    return _together(separator, texts)


def _together(separator: str, texts: list[str]) -> str:
    joined(sum(map(len, texts)) + len(separator) * max(len(texts) - 1, 0))
    return separator.join(texts)


@per_value(
    "||", (TEXT, ANYNONARRAY), TEXT, volatility="settings", needs_site=True, makes_null=False, raises=Raises.NEVER,
    vector=_appended,
)  # fmt: skip
def append_any(site: CallSite, left: str, right: Any) -> str:
    return _together("", [left, cast_to_text(site, site.args[1], right)])


@per_value(
    "||", (ANYNONARRAY, TEXT), TEXT, volatility="settings", needs_site=True, makes_null=False, raises=Raises.NEVER,
    vector=_appended,
)  # fmt: skip
def prepend_any(site: CallSite, left: Any, right: str) -> str:
    return _together("", [cast_to_text(site, site.args[0], left), right])


@per_value("quote_ident", (TEXT,), TEXT)
def quote_ident(value: str) -> str:
    return quoted(value)


@per_value("quote_literal", (TEXT,), TEXT)
def quote_literal(value: str) -> str:
    prefix = "E" if "\\" in value else ""
    return prefix + "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


@per_value("quote_literal", (ANYELEMENT,), TEXT, volatility="settings", needs_site=True)
def quote_literal_any(site: CallSite, value: Any) -> str:
    return quote_literal(cast_to_text(site, site.args[0], value))


@per_value("quote_nullable", (TEXT,), TEXT, strict=False)
def quote_nullable(value: str | None) -> str:
    return "NULL" if value is None else quote_literal(value)


@per_value("quote_nullable", (ANYELEMENT,), TEXT, strict=False, volatility="settings", needs_site=True)
def quote_nullable_any(site: CallSite, value: Any) -> str:
    return "NULL" if value is None else quote_literal_any(site, value)


@per_value("format", (TEXT,), TEXT, strict=False, volatility="settings", needs_site=True)
@per_value("format", (TEXT, ANY), TEXT, strict=False, volatility="settings", variadic=True, needs_site=True)
def format_text(site: CallSite, template: str | None, *values: Any) -> str | None:
    if template is None:
        return None
    types = site.args[1:]
    following = length = at = 0
    out: list[str] = []
    for match in polled(_FORMAT.finditer(template)):
        out.append(template[at : match.start()])
        at = match.end()
        position, minus, width, conversion = match.groups()
        if conversion == "%":
            out.append("%")
            continue
        if width and width.startswith("*"):
            index, following = _argument(width[1:-1], following, len(values))
            size = int(values[index] or 0)
            minus, width = ("-" if size < 0 else minus), str(abs(size))
        index, following = _argument(position, following, len(values))
        piece = _conversion(site, conversion, types[index], values[index])
        size = int(width[:12] if width else 0)
        length += max(size, len(piece)) + len(out[-1])
        joined(length)
        out.append(piece.ljust(size) if minus else piece.rjust(size))
    return "".join(out) + template[at:]


def _argument(position: str | None, following: int, count: int) -> tuple[int, int]:
    if position == "0":
        raise SqlError("22023", "format specifies argument 0, but arguments are numbered from 1")
    index = int(position) - 1 if position else following
    if index >= count:
        raise SqlError("22023", "too few arguments for format()")
    return index, index + 1


def _conversion(site: CallSite, conversion: str, type_: SqlType, value: Any) -> str:
    if conversion not in ("s", "I", "L"):
        if not conversion:
            raise SqlError("22023", "unterminated format() type specifier", hint='For a single "%" use "%%".')
        hint = 'For a single "%" use "%%".'
        raise SqlError("22023", f'unrecognized format() type specifier "{conversion}"', hint=hint)
    if value is None:
        if conversion == "I":
            raise SqlError("22004", "null values cannot be formatted as an SQL identifier")
        return "" if conversion == "s" else "NULL"
    text = to_text(site, type_, value)
    if conversion == "s":
        return text
    return quote_ident(text) if conversion == "I" else quote_literal(text)


def flatten(value: Any, kind: Kind) -> list[Any]:
    """The elements of an array datum, whatever its dimensions."""
    return list(elements(value, len(shape(value, kind is Kind.INTERVAL))))


@per_value(
    "array_to_string", (ANYARRAY, TEXT), TEXT, volatility="settings", needs_site=True, vector=array_columns.to_string
)  # fmt: skip
def array_to_string(site: CallSite, value: Any, delimiter: str) -> str:
    return _joined(site, value, delimiter, None)


@per_value(
    "array_to_string", (ANYARRAY, TEXT, TEXT), TEXT, strict=False, volatility="settings", needs_site=True,
    vector=array_columns.to_string_null,
)  # fmt: skip
def array_to_string_null(site: CallSite, value: Any, delimiter: str | None, null: str | None) -> str | None:
    return None if value is None or delimiter is None else _joined(site, value, delimiter, null)


def _joined(site: CallSite, value: Sequence[Any], delimiter: str, null: str | None) -> str:
    element = site.args[0].element
    assert element is not None
    items = polled(flatten(value, element.kind))
    texts = [null if item is None else to_text(site, element, item) for item in items]
    return _together(delimiter, [text for text in texts if text is not None])
