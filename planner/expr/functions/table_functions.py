"""The complete table of table functions: generate_series, unnest, regexp_split_to_table, … and the families that this
module imports. Look functions up here; ``expansion.py`` has the form of an entry.

All here are strict (a NULL argument returns no rows) except ``unnest`` of several arrays, which pads the shorter ones
with NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, TypeVar

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Vector
from ivm.words import (
    INT4,
    INT8,
    INTERVAL,
    NUMERIC,
    REGCLASS,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
)
from planner.expr.context import Context
from planner.expr.functions.datetime.intervals import is_infinite, plus_interval, plus_interval_zoned
from planner.expr.functions.expansion import (
    MAX_ROWS,
    TABLE_FUNCTIONS,
    Expansion,
    Implementation,
    add,
    each,
    each_row,
    failures,
    present,
    table_overloads,
)
from planner.expr.functions.json import sets as json_sets
from planner.expr.functions.jsonpath import calls as jsonpath
from planner.expr.functions.jsonpath import json_table
from planner.expr.functions.system import inputs, objects
from planner.expr.functions.table import ANYARRAY, ANYMULTIRANGE
from planner.expr.functions.text.concat import flatten
from planner.expr.functions.text.regex import TEXTS, all_matches, regexp_split, string_to_array
from planner.expr.functions.textsearch import parsing, vectors
from storage.types import codec
from storage.types.arrays import lower_bounds, shape
from storage.types.numeric import WIDE
from storage.types.order import interval_total
from storage.types.range_values import Multirange
from storage.types.zones import zone_meant

__all__ = ["FAMILIES", "TABLE_FUNCTIONS", "Expansion", "Implementation", "table_overloads"]

FAMILIES: Final = (inputs, json_sets, json_table, jsonpath, objects, parsing, vectors)
"""The modules that have added their functions to the table."""


def _too_many() -> SqlError:
    return SqlError("54000", f"a set-returning function returned more than {MAX_ROWS} rows")


_ZERO_STEP: Final = SqlError("22023", "step size cannot equal zero")


def _integer_series(vectors: Sequence[Vector], types: tuple[SqlType, ...], count: int, context: Context) -> Expansion:
    first, last = vectors[0].words, vectors[1].words
    step = vectors[2].words if len(vectors) > 2 else np.ones(count, np.int64)
    given = present(vectors, count)
    zero = given & (step == 0)
    failed = failures(dict.fromkeys(np.flatnonzero(zero).tolist(), _ZERO_STEP))
    rows = np.flatnonzero(given & ~zero & np.where(step > 0, first <= last, first >= last))
    first, last, step = first[rows], last[rows], step[rows]
    # unsigned, since a series may span more than an int64 holds
    low, high = np.minimum(first, last).view(np.uint64), np.maximum(first, last).view(np.uint64)
    span = high - low
    lengths = (span // np.abs(step).view(np.uint64)).astype(np.float64) + 1
    if context.cut is not None and len(lengths) and lengths.max() > context.cut.most:
        context.cut.reached = True
        lengths = np.minimum(lengths, context.cut.most)
    if lengths.sum() > MAX_ROWS:
        raise _too_many()
    sizes = lengths.astype(np.int64)
    source = np.repeat(rows, sizes)
    ends = np.cumsum(sizes)
    place = np.arange(len(source)) - np.repeat(ends - sizes, sizes)
    values = np.repeat(first, sizes) + place * np.repeat(step, sizes)
    return Expansion(source, [Vector(values)], failed)


T = TypeVar("T", int, Decimal)


def _series(context: Context, first: T, last: T, ascending: bool, following: Callable[[T], T]) -> list[T]:
    out: list[T] = []
    value = first
    while (value <= last) if ascending else (value >= last):
        if context.cut is not None and len(out) >= context.cut.most:
            context.cut.reached = True
            break
        out.append(value)
        value = following(value)
        if len(out) > MAX_ROWS:
            raise _too_many()
    return out


def _numeric_series(context: Context, first: Decimal, last: Decimal, step: Decimal = Decimal(1)) -> list[Decimal]:
    for value, label in ((first, "start value"), (last, "stop value"), (step, "step size")):
        if not value.is_finite():
            kind = "NaN" if value.is_nan() else "infinity"
            raise SqlError("22023", f"{label} cannot be {kind}")
    if step == 0:
        raise _ZERO_STEP
    return _series(context, first, last, step > 0, lambda value: WIDE.add(value, step))


Step = tuple[int, int, int]
"""An interval."""


def _moments(context: Context, first: int, last: int, step: Step, following: Callable[[int], int]) -> list[int]:
    size = interval_total(step)
    if size == 0:
        raise _ZERO_STEP
    return [] if is_infinite(first) else _series(context, first, last, size > 0, following)


def _stamp_series(context: Context, first: int, last: int, step: Step) -> list[int]:
    return _moments(context, first, last, step, lambda stamp: plus_interval(stamp, step))


def _zoned_series(context: Context, first: int, last: int, step: Step, zone: str | None = None) -> list[int]:
    meant = context.timezone if zone is None else zone_meant(zone)
    return _moments(context, first, last, step, lambda stamp: plus_interval_zoned(stamp, step, meant))


def _elements(types: Sequence[SqlType]) -> Sequence[SqlType]:
    """Of arrays their elements, of multiranges their ranges."""
    parts = (type_.subtype if type_.element is None else type_.element for type_ in types)
    return [part for part in parts if part is not None]


def _unnest(vectors: Sequence[Vector], types: tuple[SqlType, ...], count: int, context: Context) -> Expansion:
    lists: list[list[list[Any]]] = []
    for vector, type_ in zip(vectors, types, strict=True):
        assert type_.element is not None
        kind = type_.element.kind
        known: dict[int, list[Any]] = {}
        column: list[list[Any]] = []
        nulls = np.zeros(count, np.bool_) if vector.nulls is None else vector.nulls
        for word, null in zip(vector.words.tolist(), nulls.tolist(), strict=True):
            if null:
                column.append([])
                continue
            items = known.get(word)
            if items is None:
                items = known[word] = flatten(codec.decode_one(type_, word, context.dictionary), kind)
            column.append(items)
        lists.append(column)
    sizes = [max(len(column[row]) for column in lists) for row in range(count)]
    source = np.repeat(np.arange(count), np.array(sizes, np.int64))
    columns: list[Vector] = []
    for column, type_ in zip(lists, types, strict=True):
        assert type_.element is not None
        datums = [d for items, n in zip(column, sizes, strict=True) for d in (*items, *([None] * (n - len(items))))]
        columns.append(codec.encode(type_.element, datums, context.dictionary))
    return Expansion(source, columns)


def _unnest_ranges(vectors: Sequence[Vector], types: tuple[SqlType, ...], count: int, context: Context) -> Expansion:
    assert types[0].subtype is not None

    def compute(context: Context, value: Multirange) -> Sequence[Any]:
        return value.ranges

    return each(types[0].subtype, compute)(vectors, types, count, context)


def _subscripts(vectors: Sequence[Vector], types: tuple[SqlType, ...], count: int, context: Context) -> Expansion:
    element = types[0].element
    assert element is not None
    of_intervals = element.kind is Kind.INTERVAL

    def compute(context: Context, array: tuple[Any, ...], dimension: int, back: bool = False) -> Sequence[int]:
        lengths = shape(array, of_intervals)
        if not 1 <= dimension <= len(lengths):
            return range(0)
        first = lower_bounds(array, len(lengths))[dimension - 1] - types[0].zero_based
        numbers = range(first, lengths[dimension - 1] + first)
        return numbers[::-1] if back else numbers

    return each(INT4, compute)(vectors, types, count, context)


def _expanded(context: Context, types: tuple[SqlType, ...], array: tuple[Any, ...]) -> Sequence[tuple[Any, int]]:
    """Each element with its number, from 1."""
    return [(element, number) for number, element in enumerate(array, 1)]


def _numbered(types: Sequence[SqlType]) -> Sequence[SqlType]:
    return (*_elements(types), INT4)


def _string_to_table(
    context: Context, types: tuple[SqlType, ...], value: str | None, delimiter: str | None, null: str | None = None
) -> Sequence[tuple[Any, ...]]:
    return [(part,) for part in string_to_array(value, delimiter, null) or ()]


def _partition_ancestors(context: Context, relation: int) -> Sequence[int]:
    return context.asked().partition_ancestors(relation)


def _register() -> None:
    for type_ in (INT4, INT8):
        for count in (2, 3):
            add("generate_series", (type_,) * count, type_, _integer_series)
    for count in (2, 3):
        add("generate_series", (NUMERIC,) * count, NUMERIC, each(NUMERIC, _numeric_series))
    for type_, moments in ((TIMESTAMP, _stamp_series), (TIMESTAMPTZ, _zoned_series)):
        add("generate_series", (type_, type_, INTERVAL), type_, each(type_, moments))
    named = (TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL, TEXT)
    add("generate_series", named, TIMESTAMPTZ, each(TIMESTAMPTZ, _zoned_series))
    add("unnest", (ANYARRAY,), _elements, _unnest, nullable=True, key="unnest")
    add("unnest", (ANYMULTIRANGE,), _elements, _unnest_ranges, nullable=True)
    add("generate_subscripts", (ANYARRAY, INT4), INT4, _subscripts)
    add("generate_subscripts", (ANYARRAY, INT4, SqlType(Kind.BOOL)), INT4, _subscripts)
    add(
        "_pg_expandarray", (ANYARRAY,), _numbered, each_row(_numbered, _expanded), nullable=True, names=("x", "n"),
        row=True,
    )  # fmt: skip
    for count in (2, 3):
        add("regexp_split_to_table", (TEXT,) * count, TEXT, each(TEXT, lambda c, *args: regexp_split(*args)))
    add("pg_partition_ancestors", (REGCLASS,), REGCLASS, each(REGCLASS, _partition_ancestors), names=("relid",))
    for count in (2, 3):
        split = each_row(lambda _: (TEXT,), _string_to_table, strict=count)
        add("string_to_table", (TEXT,) * count, TEXT, split, nullable=True)
        add("regexp_matches", (TEXT,) * count, TEXTS, each(TEXTS, lambda c, *args: all_matches(*args)))


_register()
