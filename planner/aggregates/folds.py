"""Aggregates computed from all of a group's rows, in order: the ``fold`` of entries in ``planner.aggregates.table``."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from planner.aggregates.function import FoldRule
from planner.expr.functions.room import joined
from storage.types.arrays import bounded, check_dimensions, lower_bounds, shape


def array_agg(type_: SqlType, values: list[Any], _: list[Any]) -> object:
    """array_agg: the values as an array; arrays give one with one more dimension. Raises 22004, 2202E, 54000."""
    return _array_of_arrays(values, type_) if type_.kind is Kind.ARRAY else tuple(values)


def _array_of_arrays(values: list[Any], type_: SqlType) -> object:
    """An array of arrays, with one more dimension than they have. Raises 22004, 2202E, 54000."""
    if None in values:
        raise SqlError("22004", "cannot accumulate null arrays")
    if () in values:
        raise SqlError("2202E", "cannot accumulate empty arrays")
    assert type_.element is not None
    of_intervals = type_.element.kind is Kind.INTERVAL
    shapes = {(lengths := shape(value, of_intervals), lower_bounds(value, len(lengths))) for value in values}
    if len(shapes) > 1:
        raise SqlError("2202E", "cannot accumulate arrays of different dimensionality")
    ((lengths, lower),) = shapes
    check_dimensions(1 + len(lengths))
    return bounded(tuple(map(tuple, values)), (1, *lower))


def string_agg(_: SqlType, values: list[Any], delimiters: list[Any]) -> str | bytes | None:
    """string_agg: the values that are not NULL; each but the first is preceded by its own row's delimiter."""
    kept = [(value, delimiter) for value, delimiter in zip(values, delimiters, strict=True) if value is not None]
    if not kept:
        return None
    empty = kept[0][0][:0]
    pieces = [piece for value, delimiter in kept for piece in (delimiter or empty, value)]
    joined(sum(map(len, pieces)))
    together: str | bytes = empty.join(pieces[1:])
    return together


def bits(rule: Callable[[str, str], str]) -> FoldRule:
    """bit_and, bit_or or bit_xor of bit strings; ``rule``: of two. Raises 22026."""

    def fold(_: SqlType, values: list[Any], __: list[Any]) -> str | None:
        kept = [value for value in values if value is not None]
        return reduce(rule, kept) if kept else None

    return fold
