"""SQL values as columns of JSON texts: the vector forms of what ``values.json_text`` and ``json_value`` write.

A form leaves what it does not know to the functions: arrays and rows inside, keys that vary, numbers with an exponent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import numpy as np

from ivm.rows import Mask, Vector, Words
from ivm.stops import poll, polled
from ivm.words import Kind, SqlType, Storage
from planner.expr.functions.json.values import NO_KEYS, NUMBERS, json_key, json_style, json_text
from planner.expr.functions.table import CallSite, Made, VectorForm
from planner.expr.functions.text.columns import made_texts
from planner.expr.rows import some
from storage.array_columns import arrays, item_words, items_of, together
from storage.dictionary import Dictionary
from storage.json_columns import quoted
from storage.text_columns import TextColumn, joined, of_choices, of_ids, of_texts, of_value, packed
from storage.types.codec import decode, decode_one
from storage.types.shown_columns import shown
from storage.types.text_json import quoted as quoted_text
from storage.types.text_style import TextStyle

_STRINGS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.NAME, Kind.UNKNOWN)
_MOMENTS: Final = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_MOST_MEMBERS: Final = 200
"""Each has columns of its own, whose addresses take more than a short text."""

Written = tuple[list[TextColumn], Mask]
"""Texts that stand one after the other, and the rows that are left to the function."""


def _written(site: CallSite, type_: SqlType, words: Words, style: TextStyle, canonical: bool) -> Written | None:
    """The JSON texts of values that are not NULL; ``canonical``: as jsonb's."""
    dictionary, kind, count = site.context.dictionary, type_.kind, len(words)
    fine = np.zeros(count, np.bool_)
    if kind in _STRINGS:
        return [quoted(of_ids(words, dictionary))], fine
    if kind is Kind.BOOL:
        return [of_choices((b"false", b"true"), words)], fine
    if kind is Kind.JSONB or (kind is Kind.JSON and not canonical):
        return [of_ids(words, dictionary)], fine
    if kind is Kind.ARRAY:
        return _array(site, type_, words, style, canonical)
    found = None if kind is Kind.JSON else shown(type_, words, dictionary, style)
    if found is None:
        return None if canonical else ([_one_by_one(type_, words, dictionary, style)], fine)
    column, rest = found
    if kind in NUMBERS:
        return [column], rest | _odd_numbers(type_, words, column, canonical)
    parts = _moments(column, kind) if kind in _MOMENTS else [column]
    quote = of_value(b'"', count)
    return [quote, *parts, quote], rest


def _array(site: CallSite, type_: SqlType, words: Words, style: TextStyle, canonical: bool) -> Written | None:
    """Arrays of one dimension."""
    element, count = type_.element, len(words)
    assert element is not None
    dictionary = site.context.dictionary
    column = arrays(of_ids(words, dictionary))
    found, rest = items_of(column), column.depths > 1
    present = np.flatnonzero(~found.nulls)
    made, left = item_words(element.plain, found.bytes.rows(present), dictionary)
    written = _written(site, element.plain, np.where(left, 0, made), style, canonical) if len(present) else ([], left)
    if written is None:
        return None
    rest[found.rows[present[left | written[1]]]] = True
    texts = of_value(b"null", len(found.nulls))
    if len(present):
        whole = joined(*written[0])
        texts.starts[present], texts.lengths[present] = whole.starts, whole.lengths
        texts.held = (*texts.held, *whole.held)
    between = of_value(b", " if canonical else b",", len(found.nulls))
    between.lengths[found.firsts[:-1][column.counts > 0]] = 0
    return [of_value(b"[", count), together(found, between, texts), of_value(b"]", count)], rest


def _one_by_one(type_: SqlType, words: Words, dictionary: Dictionary, style: TextStyle) -> TextColumn:
    """Values of a type that has no columns, so that others beside it need not do without. It cannot fail."""
    poll()
    if type_.storage is Storage.INTERNED:
        of_ids(words, dictionary)  # raises TooLarge
    values = decode(type_, Vector(words), dictionary)
    return of_texts([json_text(type_, value, style).encode() for value in polled(values)])


def _odd_numbers(type_: SqlType, words: Words, column: TextColumn, canonical: bool) -> Mask:
    """Numbers that JSON does not have, or that jsonb writes otherwise."""
    odd: Mask = np.zeros(len(words), np.bool_)
    long = np.flatnonzero(words & 1)
    if type_.storage is Storage.NUMERIC and len(long):
        data, offsets = packed(column.rows(long))
        last = data[offsets[1:] - 1]
        odd[long] = (last < ord("0")) | (last > ord("9"))  # NaN and infinities
    if type_.kind not in (Kind.FLOAT4, Kind.FLOAT8) or not canonical:
        return odd
    data, offsets = packed(column)
    exponents = np.flatnonzero(data[: offsets[-1]] == ord("e"))
    odd[np.searchsorted(offsets, exponents, side="right") - 1] = True
    odd |= (column.lengths == 2) & (data[offsets[:-1]] == ord("-")) & (data[offsets[:-1] + 1] == ord("0"))
    return odd


def _moments(column: TextColumn, kind: Kind) -> list[TextColumn]:
    """Timestamps of years of four digits, with a T, and the minutes of an offset that has none."""
    day = TextColumn(column.starts, np.minimum(column.lengths, 10), column.held)
    rest = TextColumn(column.starts + 11, np.maximum(column.lengths - 11, 0), column.held)
    parts = [day, of_value(b"T", len(column)), rest]
    if kind is Kind.TIMESTAMPTZ:
        data, offsets = packed(column)
        signs = data[np.maximum(offsets[1:] - 3, 0)]
        parts.append(of_choices((b"", b":00"), ((signs == ord("+")) | (signs == ord("-"))).astype(np.int64)))
    return parts


def _value(site: CallSite, type_: SqlType, vector: Vector, style: TextStyle, canonical: bool) -> Written | None:
    """The JSON texts of values, null for NULL."""
    nulls = None if vector.nulls is None else some(vector.nulls)
    if nulls is None:
        return _written(site, type_, vector.words, style, canonical)
    count, present = len(vector.words), np.flatnonzero(~nulls)
    found = of_value(b"null", count)
    rest = np.zeros(count, np.bool_)
    if len(present):
        made = _written(site, type_, vector.words[present], style, canonical)
        if made is None:
            return None
        column = joined(*made[0])
        found.starts[present], found.lengths[present], rest[present] = column.starts, column.lengths, made[1]
        found.held = (*found.held, *column.held)
    return [found], rest


def _key(site: CallSite, type_: SqlType, vector: Vector, style: TextStyle) -> str | Written | None:
    """A name as a JSON string, one for all rows if it is a constant. None for NULLs and types that are no names."""
    if type_.kind in NO_KEYS or (vector.nulls is not None and np.count_nonzero(vector.nulls)):
        return None
    if vector.words.strides == (0,):
        return quoted_text(json_key(type_, decode_one(type_, int(vector.words[0]), site.context.dictionary), style))
    found = _written(site, type_, vector.words, style, False)
    if found is None or (type_.kind not in NUMBERS and type_.kind is not Kind.BOOL):
        return found
    quote = of_value(b'"', site.count)
    return [quote, *found[0], quote], found[1]


def _put(site: CallSite, parts: Sequence[str | Written]) -> Made:
    """Constants and columns one after the other."""
    rest, columns, text = np.zeros(site.count, np.bool_), list[TextColumn](), ""
    for part in (*parts, ""):
        if isinstance(part, str) and part:
            text += part
            continue
        if text:
            columns.append(of_value(text.encode(), site.count))
        text = ""
        if not isinstance(part, str):
            columns += part[0]
            rest |= part[1]
    return made_texts(site, rest if np.count_nonzero(rest) else None, *columns)


def members(colon: str, comma: str, canonical: bool, braces: str = "{}") -> VectorForm:
    """Objects of names and values in turn. ``canonical``: as jsonb has it, in its order, of equal names the last."""

    def form(site: CallSite, *vectors: Vector) -> Made | None:
        if len(vectors) % 2 or not 0 < len(vectors) <= 2 * _MOST_MEMBERS:
            return None
        style = json_style(site)
        keys = [_key(site, site.args[i], vectors[i], style) for i in range(0, len(vectors), 2)]
        order: Sequence[int] = range(len(keys))
        if canonical and len(keys) > 1:
            names = {key: i for i, key in enumerate(keys) if isinstance(key, str)}
            if not all(isinstance(key, str) for key in keys):
                return None
            order = [names[key] for key in sorted(names, key=_place)]
        parts: list[str | Written] = []
        for i in order:
            key, value = keys[i], _value(site, site.args[2 * i + 1], vectors[2 * i + 1], style, canonical)
            if key is None or value is None:
                return None
            parts += [comma if parts else braces[:1], key, colon, value]
        return _put(site, [*parts, braces[1:]])

    return form


def _place(key: str) -> tuple[int, bytes]:
    """Where a name, as a JSON string, stands in jsonb's order."""
    name = str(json.loads(key)).encode()
    return len(name), name


def items(canonical: bool) -> VectorForm:
    """Arrays of values."""

    def form(site: CallSite, *vectors: Vector) -> Made | None:
        if not 0 < len(vectors) <= _MOST_MEMBERS:
            return None
        style, parts = json_style(site), list[str | Written]()
        for type_, vector in zip(site.args, vectors, strict=True):
            value = _value(site, type_, vector, style, canonical)
            if value is None:
                return None
            parts += [", " if parts else "[", value]
        return _put(site, [*parts, "]"])

    return form


def value(canonical: bool) -> VectorForm:
    """One value that is not NULL."""

    def form(site: CallSite, words: Words) -> Made | None:
        found = _written(site, site.args[0], words, json_style(site), canonical)
        return None if found is None else made_texts(site, found[1], *found[0])

    return form
