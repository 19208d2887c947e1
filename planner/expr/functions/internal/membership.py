"""``x = ANY (array)``."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from ivm.distinct import distinct
from ivm.rows import Vector, Words
from ivm.words import BOOL, Kind, SqlType
from planner.expr import ordering
from planner.expr.functions.table import ANYARRAY, ANYELEMENT, CallSite, Raises, vectorised
from storage.dictionary import Dictionary
from storage.types.arrays import elements, shape
from storage.types.codec import decode, encode

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


@vectorised(MEMBER, (ANYELEMENT, ANYARRAY), BOOL, strict=False, raises=Raises.NEVER, key_is_name=True, internal=True)
def member(site: CallSite, value: Vector, array: Vector) -> Vector:
    """Row by row; ``planner/expr/evaluate/member.py`` looks but once at an array that all rows have in common."""
    element, dictionary = site.args[0], site.context.dictionary
    made = []
    for row, datum in enumerate(decode(site.args[1], array, dictionary)):
        one = Vector(value.words[row : row + 1], None if value.nulls is None else value.nulls[row : row + 1])
        given = NO_ARRAY if datum is None else elements_of(datum, element, dictionary)
        made.append(among(one, given, element, dictionary))
    words = np.concatenate([m.words for m in made])
    return Vector(words, np.concatenate([np.zeros(1, np.bool_) if m.nulls is None else m.nulls for m in made]))
