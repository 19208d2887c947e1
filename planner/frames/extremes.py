"""Least values over ranges of places."""

from __future__ import annotations

import numpy as np

from ivm.rows import Vector, Words
from ivm.words import SqlType
from planner.expr.ordering import decode_words, is_its_own_order, needs_order_bytes, order_prefix
from storage.dictionary import Dictionary
from storage.types.order import sort_key

NOTHING = np.int64(2**63 - 1)
"""The code of NULL, which is greater than all others."""


def codes(type_: SqlType, column: Vector, greatest: bool, dictionary: Dictionary) -> tuple[Words, Words]:
    """(a code for each value, the word of each code): codes ascend as the values do, or descend (``greatest``)."""
    present = np.ones(len(column.words), np.bool_) if column.nulls is None else ~column.nulls
    words, place = np.unique(column.words[present], return_inverse=True)
    if is_its_own_order(type_):
        ranked = np.arange(len(words))
    elif needs_order_bytes(type_):
        keys = [sort_key(type_, v) for v in decode_words(type_, words, dictionary)]
        ranked = np.array(sorted(range(len(words)), key=lambda i: (keys[i], int(words[i]))), np.int64)
    else:
        ranked = np.lexsort((words, order_prefix(type_, words, dictionary)))
    if greatest:
        ranked = ranked[::-1]
    code_of = np.empty(len(words), np.int64)
    code_of[ranked] = np.arange(len(words))
    found = np.full(len(column.words), NOTHING)
    found[present] = code_of[place]
    return found, words[ranked]


def least(values: Words, low: Words, high: Words) -> Words:
    """The least of ``values[low:high]`` for each range; NOTHING for an empty one.

    Cost: n log n for n values, by the minima of 1, 2, 4, … values from each place on.
    """
    out = np.full(len(low), NOTHING)
    length = high - low
    level = 0
    minima = values
    while len(minima):
        size = 1 << level
        here = np.flatnonzero((length >= size) & (length < 2 * size))
        if len(here):
            out[here] = np.minimum(minima[low[here]], minima[high[here] - size])
        if not (length >= 2 * size).any():
            break
        minima = np.minimum(minima[:-size], minima[size:])
        level += 1
    return out


def words_of(found: Words, by_code: Words) -> Vector:
    """The values that codes stand for."""
    nulls = found == NOTHING
    if not len(by_code):
        return Vector(np.zeros(len(found), np.int64), np.ones(len(found), np.bool_))
    words = by_code[np.where(nulls, 0, found)]
    return Vector(np.where(nulls, 0, words), nulls) if nulls.any() else Vector(words)


def best(type_: SqlType, columns: list[Vector], greatest: bool, dictionary: Dictionary) -> Vector:
    """The least of several values in each row; NULLs do not count."""
    words = np.concatenate([c.words for c in columns])
    nulls = np.concatenate([np.zeros(len(c.words), np.bool_) if c.nulls is None else c.nulls for c in columns])
    found, by_code = codes(type_, Vector(words, nulls), greatest, dictionary)
    return words_of(found.reshape(len(columns), -1).min(axis=0), by_code)
