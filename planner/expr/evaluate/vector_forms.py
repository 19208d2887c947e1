"""Running the vector form of a function of datums, and the function itself on the rows that the form leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ivm.rows import Vector
from ivm.stops import poll
from planner.expr.functions.table import CallSite, Function, Made
from planner.expr.rows import nulls_of, some, taken
from storage.text_columns import TooLarge

FEW: Final = 32
"""Up to so many rows are computed one by one, 4 to 12 µs each: no more than the calls of numpy take, 80 to 350 µs."""
_SOME: Final = 512
"""Of up to so many rows it is asked whether they repeat few values, whose results may be known."""
_PART: Final = 1 << 14
"""Rows between two looks at whether the work is to end."""

ByValue = Callable[[CallSite, list[Vector]], Vector]
"""The function on each row of a site's arguments by itself."""


def has_form(function: Function, vectors: list[Vector], count: int) -> bool:
    """Whether a call on ``count`` rows is made by the function's vector form."""
    if function.vector is None or count <= FEW:
        return False
    varying = [v.words for v in vectors if v.words.strides != (0,)]
    return count > _SOME or any(len(set(words.tolist())) > FEW for words in varying)


def by_form(function: Function, site: CallSite, vectors: list[Vector], by_value: ByValue) -> Vector:
    """The call's values. ``vectors`` have no NULLs if the function is strict."""
    if site.count <= _PART:
        return _part(function, site, vectors, by_value)
    words, nulls = np.empty(site.count, np.int64), np.zeros(site.count, np.bool_)
    for at in range(0, site.count, _PART):
        poll()
        rows = np.arange(at, min(at + _PART, site.count))
        part = _part(function, site.part(rows), [taken(v, slice(at, at + _PART)) for v in vectors], by_value)
        words[rows], nulls[rows] = part.words, nulls_of(part)
    return Vector(words, some(nulls))


def _part(function: Function, site: CallSite, vectors: list[Vector], by_value: ByValue) -> Vector:
    made = _made(function, site, vectors)
    if made is None:
        return by_value(site, vectors)
    rest = np.zeros(0, np.int64) if made.rest is None else np.flatnonzero(made.rest)
    if not len(rest):
        return Vector(made.words, made.nulls)
    if len(rest) == site.count:
        return by_value(site, vectors)
    found = by_value(site.part(rest), [taken(v, rest) for v in vectors])
    words, nulls = made.words.copy(), nulls_of(Vector(made.words, made.nulls)).copy()
    words[rest], nulls[rest] = found.words, nulls_of(found)
    return Vector(words, some(nulls))


def _made(function: Function, site: CallSite, vectors: list[Vector]) -> Made | None:
    assert function.vector is not None
    try:
        return function.vector(site, *([v.words for v in vectors] if function.strict else vectors))
    except TooLarge:
        return None
