"""``x = ANY (array)``."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from ivm.distinct import distinct
from ivm.rows import Vector, Words
from ivm.words import BOOL, Kind, SqlType, Storage
from planner.expr import ordering
from planner.expr.functions.array import equality_key
from planner.expr.functions.table import ANYARRAY, ANYELEMENT, CallSite, Made, Raises, per_value
from planner.expr.functions.text.concat import flatten
from planner.expr.rows import nulls_of, taken
from storage.array_columns import arrays, item_words, items_of
from storage.dictionary import Dictionary
from storage.text_columns import equal, of_ids
from storage.types.arrays import elements, shape
from storage.types.codec import encode

MEMBER: Final = "= any"


class Elements(NamedTuple):
    """The elements of an array. ``words``: sorted, those of their equality classes, without NULL. ``null``: whether one
    is NULL, or the array."""

    words: Words
    null: bool


NO_ARRAY: Final = Elements(np.zeros(0, np.int64), True)


def elements_of(datum: Any, element: SqlType, dictionary: Dictionary) -> Elements:
    """The elements of an array datum, whatever its dimensions."""
    items = list(elements(datum, len(shape(datum, element.kind is Kind.INTERVAL))))
    present = [i for i in items if i is not None]
    words = encode(element, present, dictionary).words
    return Elements(distinct(ordering.equality_class(element, words, dictionary)), len(present) < len(items))


def among(value: Vector, given: Elements, element: SqlType, dictionary: Dictionary) -> Vector:
    """Whether each value is one of the elements; NULL if it is NULL, or is none of them and one of them is NULL."""
    words, null = given
    if not len(words) and not null:
        return Vector(np.zeros(len(value.words), np.int64))
    found = np.zeros(len(value.words), np.bool_)
    if len(words):
        rows = slice(None) if value.nulls is None else np.flatnonzero(~value.nulls)
        classes = ordering.equality_class(element, value.words[rows], dictionary)
        found[rows] = words[np.minimum(np.searchsorted(words, classes), len(words) - 1)] == classes
    nulls = value.nulls
    if null:
        nulls = ~found if nulls is None else nulls | ~found
    return Vector(found.astype(np.int64), nulls)


def _among_items(site: CallSite, value: Vector, array: Vector) -> Made | None:
    """Row by row, of the bytes of the elements."""
    element, dictionary, count = site.args[0], site.context.dictionary, site.count
    absent, unknown = nulls_of(value), nulls_of(array)
    rows = np.flatnonzero(~unknown)
    found = items_of(arrays(of_ids(array.words[rows], dictionary)))
    some_null = np.zeros(count, np.bool_)
    some_null[rows[found.rows[found.nulls]]] = True
    looked = np.flatnonzero(~found.nulls & ~absent[rows[found.rows]])
    owners, parts = rows[found.rows[looked]], found.bytes.rows(looked)
    present = np.flatnonzero(~absent)
    place = np.cumsum(~absent) - 1  # among those that are present
    rest, hits = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    given = taken(Vector(value.words), present).words
    if element.storage is Storage.INTERNED and not element.has_equality_class:
        same = equal(of_ids(given, dictionary).rows(place[owners]), parts)
    else:
        words, left = item_words(element, parts, dictionary)
        rest[owners[left]] = True
        classes = ordering.equality_class(element, given, dictionary)
        same = ~left & (
            ordering.equality_class(element, np.where(left, 0, words), dictionary) == classes[place[owners]]
        )
    hits[owners[same]] = True
    empty = np.zeros(count, np.bool_)
    empty[rows] = np.diff(found.firsts) == 0
    return Made(hits.astype(np.int64), ~empty & ~hits & (unknown | absent | some_null), rest & ~hits)


@per_value(
    MEMBER, (ANYELEMENT, ANYARRAY), BOOL, strict=False, needs_site=True, raises=Raises.NEVER, key_is_name=True,
    internal=True, vector=_among_items,
)  # fmt: skip
def member(site: CallSite, value: Any, array: Any) -> bool | None:
    """Row by row; ``planner/expr/evaluate/member.py`` looks but once at an array that all rows have in common."""
    element = site.args[0]
    if array is None:
        return None
    listed = flatten(array, element.kind)
    if not listed or value is None:
        return None if listed else False
    wanted = equality_key(element, value)
    if any(item is not None and equality_key(element, item) == wanted for item in listed):
        return True
    return None if None in listed else False
