"""Several table functions side by side, as ROWS FROM and select lists have them.

Row n has each function's row n; a function that has returned all its rows is padded with NULLs. The whole is a table
function itself, whose key names its parts (``2 generate_series(int4,int4) | 1 unnest``: how many of the arguments each
takes), and which no state and no join is needed for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Vector, Words
from ivm.words import SqlType
from planner.expr.context import Context
from planner.expr.functions.table_functions import TABLE_FUNCTIONS, Expansion, Implementation
from planner.expr.rows import Failures

_BETWEEN: Final = " | "


def lockstep(parts: Sequence[tuple[str, int]]) -> str:
    """The key of these functions side by side: (key, number of arguments) of each."""
    return parts[0][0] if len(parts) == 1 else _BETWEEN.join(f"{count} {key}" for key, count in parts)


def parts_of(key: str, arguments: int) -> list[tuple[str, int]]:
    """The functions of a key, each with its number of arguments; ``arguments``: that of them all."""
    if _BETWEEN not in key:
        return [(key, arguments)]
    pairs = (part.partition(" ") for part in key.split(_BETWEEN))
    return [(name, int(count)) for count, _, name in pairs]


@cache
def implementation(key: str) -> Implementation:
    """What computes the function, or the functions side by side, of a key."""
    return partial(_together, key) if _BETWEEN in key else TABLE_FUNCTIONS[key].implementation


def _together(
    key: str, vectors: Sequence[Vector], types: tuple[SqlType, ...], count: int, context: Context
) -> Expansion:
    expansions = []
    at = 0
    for name, arguments in parts_of(key, len(types)):
        mine = slice(at, at + arguments)
        at += arguments
        expansions.append(TABLE_FUNCTIONS[name].implementation(vectors[mine], types[mine], count, context))
    failures = _merged([e.failures for e in expansions if e.failures is not None])
    lengths = [np.bincount(e.source, minlength=count) for e in expansions]
    most = np.maximum.reduce(lengths)
    if failures is not None:
        most[failures.rows] = 0
    source = np.repeat(np.arange(count), most)
    place = np.arange(len(source)) - np.repeat(np.cumsum(most) - most, most)
    columns = [
        _padded(column, length, source, place)
        for expansion, length in zip(expansions, lengths, strict=True)
        for column in expansion.columns
    ]
    return Expansion(source, columns, failures)


def _padded(column: Vector, lengths: Words, source: Words, place: Words) -> Vector:
    """A function's column with NULLs after its last row. ``place``: the number of each row within its source."""
    missing = place >= lengths[source]
    at = np.where(missing, 0, (np.cumsum(lengths) - lengths)[source] + place)
    if not len(column.words):
        return Vector(np.zeros(len(source), np.int64), missing)
    nulls = missing if column.nulls is None else missing | column.nulls[at]
    return Vector(np.where(missing, 0, column.words[at]), nulls)


def _merged(found: Sequence[Failures]) -> Failures | None:
    """One error for each row that failed: that of the first function."""
    errors: dict[int, SqlError] = {}
    for failures in reversed(found):
        errors |= dict(zip(failures.rows.tolist(), failures.errors, strict=True))
    if not errors:
        return None
    rows = sorted(errors)
    return Failures(np.array(rows, np.int64), [errors[row] for row in rows])
