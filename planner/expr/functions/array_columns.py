"""Vector forms of functions of arrays, which read the few bytes that they need (layout: ``storage.types.arrays``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ivm.rows import Bytes, Mask, Vector, Words
from ivm.words import Kind, SqlType, Storage
from planner.expr.functions.casts.text import style_of
from planner.expr.functions.table import CallSite, Made
from planner.expr.functions.text.columns import constant, made_texts
from planner.expr.rows import nulls_of, taken
from storage.array_columns import THEMSELVES, Items, arrays, headers, item_words, items_of, sizes, together, word_bytes
from storage.text_columns import TextColumn, interned, of_ids, of_parts, packed
from storage.types.shown_columns import shown

_MOST_PLACE = 64
_THEMSELVES = (Kind.TEXT, Kind.VARCHAR, Kind.BYTEA, Kind.UUID, Kind.JSONB)


def _numbers(data: Bytes, starts: Words, size: int) -> Words:
    """The big-endian integers of ``size`` bytes from ``starts`` on: unsigned of 4, signed of 8."""
    taken: NDArray[np.uint8] = data[starts[:, None] + np.arange(size)]
    numbers: Words = taken.view(">u4" if size == 4 else ">i8").reshape(-1).astype(np.int64)
    return numbers


def _arrays(site: CallSite, ids: Words) -> tuple[Bytes, Words, Words, Words]:
    """The arrays' bytes, with room to read behind them, where each begins and ends, and its first byte."""
    data, offsets = packed(of_ids(ids, site.context.dictionary))
    data = np.concatenate([data, np.zeros(32, np.uint8)])
    return data, offsets[:-1], offsets[1:], data[offsets[:-1]].astype(np.int64)


def _dimensions(firsts: Words) -> Words:
    """The numbers of dimensions without the mark of lower bounds."""
    return firsts & 0x7F


def length(site: CallSite, ids: Words, dimensions: Words) -> Made:
    data, starts, _, firsts = _arrays(site, ids)
    depths = _dimensions(firsts)
    there = (dimensions >= 1) & (dimensions <= depths)
    lengths = _numbers(data, starts + np.where(there, 4 * dimensions - 3, 0), 4)
    return Made(np.where(there, lengths, 0), ~there)


def cardinality(site: CallSite, ids: Words) -> Made:
    data, starts, _, firsts = _arrays(site, ids)
    depths = _dimensions(firsts)
    count = np.where(depths == 0, 0, 1)
    for dimension in range(1, int(depths.max()) + 1):
        there = depths >= dimension
        count *= np.where(there, _numbers(data, starts + np.where(there, 4 * dimension - 3, 0), 4), 1)
    return Made(count)


def subscript(site: CallSite, ids: Words, *places: Words) -> Made | None:
    """An element of arrays of one dimension that starts at 1, by a constant."""
    if site.args[0].zero_based or len(places) != 1 or not constant(places[0]) or not _readable(site.result):
        return None
    place = int(places[0][0])
    if not 1 <= place <= _MOST_PLACE:
        return None
    data, starts, ends, depths = _arrays(site, ids)
    rest = depths > 1
    at = np.where(depths == 1, starts + 5, ends)
    for _ in range(place - 1):
        at = _next(data, at, ends)
    there = at < ends
    sizes = np.where(there, _numbers(data, np.where(there, at, 0), 4), 0)
    nulls = ~there | (sizes == 0)
    rows = np.flatnonzero(~nulls & ~rest)
    words = np.zeros(len(ids), np.int64)
    if site.result.storage is Storage.DIRECT:
        words[rows] = _numbers(data, at[rows] + 4, 8)
    else:
        words[rows] = interned(site.context.dictionary, of_parts(data, at[rows] + 4, sizes[rows] - 1))
    return Made(words, nulls, rest)


def _readable(element: SqlType) -> bool:
    """Whether an element's bytes are those of its word, or the bytes that an id names."""
    return element.kind in _THEMSELVES or (element.storage is Storage.DIRECT and element.kind is not Kind.NUMERIC)


def appended(site: CallSite, array: Vector, item: Vector) -> Made | None:
    """An array and an element behind it."""
    return _put(site, array, site.args[1], item, first=False)


def prepended(site: CallSite, item: Vector, array: Vector) -> Made | None:
    return _put(site, array, site.args[0], item, first=True)


def _put(site: CallSite, array: Vector, type_: SqlType, item: Vector, *, first: bool) -> Made | None:
    absent = nulls_of(item)
    found = _item_bytes(site, type_, item, absent)
    if found is None:
        return None
    value, left = found
    counts, body, rest = _bodies(site, array)
    parts = (sizes(value.lengths, absent), value)
    both = (*parts, body) if first else (body, *parts)
    return made_texts(site, rest | left, headers(counts + 1), *both)


def _item_bytes(site: CallSite, type_: SqlType, item: Vector, absent: Mask) -> tuple[TextColumn, Mask] | None:
    """The bytes of values in an array (none for NULL), and the rows in which they are not known."""
    rest = np.zeros(site.count, np.bool_)
    present = np.flatnonzero(~absent)
    words = item.words if len(present) == site.count else item.words[present]
    if type_.storage is Storage.DIRECT and type_.kind is not Kind.NUMERIC:
        return _spread(word_bytes(words), present, site.count), rest
    if type_.kind is Kind.NUMERIC:
        found = shown(type_, words, site.context.dictionary, style_of(site))
        if found is None:
            return None
        rest[present] = found[1]
        return _spread(found[0], present, site.count), rest
    return _spread(of_ids(words, site.context.dictionary), present, site.count), rest


def _spread(column: TextColumn, rows: Words, count: int) -> TextColumn:
    """The column's values in these rows of so many, and nothing in the others."""
    if len(column) == count:
        return column
    starts, lengths = np.zeros(count, np.int64), np.zeros(count, np.int64)
    starts[rows], lengths[rows] = column.starts, column.lengths
    return TextColumn(starts, lengths, column.held)


def _bodies(site: CallSite, array: Vector) -> tuple[Words, TextColumn, Mask]:
    """(How many elements, their bytes with their sizes, which are left) of arrays of one dimension; NULL is empty."""
    count = site.count
    rows = np.flatnonzero(~nulls_of(array))
    found = arrays(of_ids(taken(array, rows).words, site.context.dictionary))
    rest, counts = np.zeros(count, np.bool_), np.zeros(count, np.int64)
    rest[rows] = (found.depths > 1) | (found.lowers != 1)
    counts[rows] = found.counts
    header = np.where(found.depths == 0, 1, 5)
    body = TextColumn(found.bytes.starts + header, found.bytes.lengths - header, found.bytes.held)
    return counts, _spread(body, rows, count), rest


def concatenated(site: CallSite, left: Vector, right: Vector) -> Made:
    """Two arrays; one of them alone where the other is empty or NULL."""
    (count1, body1, rest1), (count2, body2, rest2) = _bodies(site, left), _bodies(site, right)
    neither = (count1 > 0) & (count2 > 0)
    words = np.where(nulls_of(right) | (count2 == 0) & ~nulls_of(left) & (count1 > 0), left.words, right.words)
    made = made_texts(site, ~neither | rest1 | rest2, headers(count1 + count2), body1, body2)
    return Made(np.where(neither, made.words, words), nulls_of(left) & nulls_of(right), neither & (rest1 | rest2))


def to_string(site: CallSite, ids: Words, delimiters: Words) -> Made | None:
    return _joined(site, Vector(ids), Vector(delimiters), None)


def to_string_null(site: CallSite, array: Vector, delimiter: Vector, null: Vector) -> Made | None:
    return _joined(site, array, delimiter, null)


def _joined(site: CallSite, array: Vector, delimiter: Vector, null: Vector | None) -> Made | None:
    """The elements' texts with delimiters between them. ``null``: what stands for those that are NULL; they are left
    out where it is NULL, or None."""
    dictionary, count = site.context.dictionary, site.count
    absent = nulls_of(array) | nulls_of(delimiter)
    rows = np.flatnonzero(~absent)
    found = items_of(arrays(of_ids(taken(Vector(array.words), rows).words, dictionary)))
    made = _item_texts(site, found)
    if made is None:
        return None
    texts, left = made
    shown_items = ~found.nulls
    if null is not None:
        named = np.flatnonzero(~nulls_of(null))
        instead = _spread(of_ids(taken(Vector(null.words), named).words, dictionary), named, count).rows(rows)
        instead = instead.rows(found.rows)
        texts = TextColumn(
            np.where(found.nulls, instead.starts, texts.starts),
            np.where(found.nulls, instead.lengths, texts.lengths),
            (texts.held, instead.held),
        )
        shown_items |= ~nulls_of(null)[rows][found.rows]
    between = of_ids(taken(Vector(delimiter.words), rows).words, dictionary).rows(found.rows)
    before: Words = np.cumsum(shown_items) - shown_items
    begun: Mask = before > before[found.firsts[found.rows]]
    between.lengths = np.where(shown_items & begun, between.lengths, 0)
    rest = np.zeros(count, np.bool_)
    rest[rows[found.rows[left]]] = True
    whole = _spread(together(found, between, texts), rows, count)
    return Made(made_texts(site, rest | absent, whole).words, absent, rest)


def _item_texts(site: CallSite, found: Items) -> tuple[TextColumn, Mask] | None:
    """The texts of elements, nothing for NULL, and those that are left; None: all."""
    element = site.args[0].element
    assert element is not None
    left = np.zeros(len(found.nulls), np.bool_)
    if element.kind in THEMSELVES:
        return found.bytes, left
    present = np.flatnonzero(~found.nulls)
    words, odd = item_words(element, found.bytes.rows(present), site.context.dictionary)
    made = shown(element, words, site.context.dictionary, style_of(site))
    if made is None:
        return None
    left[present] = odd | made[1]
    return _spread(made[0], present, len(left)), left


def _next(data: Bytes, at: Words, ends: Words) -> Words:
    """Where the elements after these begin; the end where there is none."""
    there = at < ends
    sizes = _numbers(data, np.where(there, at, 0), 4)
    following: Words = np.where(there, at + 4 + np.maximum(sizes - 1, 0), at)
    return following
