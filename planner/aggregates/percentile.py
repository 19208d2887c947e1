"""percentile_cont and percentile_disc as reducers of the one or two rows around each fraction."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ivm.errors import SqlError
from ivm.graph import Picks, Rank, Reduced, Window
from ivm.rows import Vector, Words, pack
from ivm.words import ColumnType, Kind, SqlType
from planner.aggregates.table import AGGREGATES
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import constant
from planner.expr.functions.ordered_set import between, checked, interval_between, leaves, shaped
from planner.expr.row_errors import error_words
from planner.expr.scalar import Aggregate
from storage.dictionary import Dictionary
from storage.types import codec


@dataclass(frozen=True, slots=True)
class Percentile:
    """Vals: 0 where the row counts, ordering words, the value's word. Vals out: word, null word.

    ``fractions``: None for a NULL fraction; ``array``: the array that they were in, whose dimensions the result has,
    if any (a NULL array has None for ``fractions``).
    ``failure``: the SQLSTATE and message that every group fails with if the fractions are invalid.
    """

    type: SqlType
    result: SqlType
    continuous: bool
    fractions: tuple[float | None, ...] | None
    array: tuple[Any, ...] | None
    failure: tuple[str, str] | None
    dictionary: Dictionary
    out_width: ClassVar[int] = 2
    limit: ClassVar[int | None] = None

    @property
    def picks(self) -> Picks:
        rank = Rank.CONTINUOUS if self.continuous else Rank.DISCRETE
        windows = tuple(Window(rank, fraction=f) for f in self.fractions or () if f is not None)
        return Picks(windows or (Window(last=1),), flagged=True)

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        groups = len(keys)
        if self.failure is not None:
            errors = error_words([SqlError(*self.failure)] * groups, [None] * groups, self.dictionary)
            return Reduced(np.empty(0, np.int64), np.empty((0, 2), np.int64), errors, np.arange(groups))
        none = diffs[:, 1] < 0  # groups in which no row counts have a row of zeros
        values = codec.decode(self.type, Vector(np.ascontiguousarray(vals[:, -1]), none), self.dictionary)
        numbers, totals = diffs[:, 1].tolist(), diffs[:, 3].tolist()
        ends = offsets.tolist()
        datums = [self._one(values[a:b], numbers[a:b], totals[a]) for a, b in pairwise(ends)]
        vector = codec.encode(self.result, datums, self.dictionary)
        return Reduced(np.arange(groups), pack([vector], (ColumnType(self.result),), groups))

    def _one(self, values: list[Any], numbers: list[int], total: int) -> object:
        """One group's percentiles from the values in its windows."""
        if self.fractions is None or total <= 0:
            return None
        found: list[object] = []
        at = 0
        for fraction in self.fractions:
            if fraction is None:
                found.append(None)
                continue
            number = numbers[at]
            low = high = values[at]
            at += 1
            if at < len(numbers) and numbers[at] == number:
                high = values[at]
                at += 1
            found.append(self._between(low, high, fraction, total))
        return found[0] if self.array is None else shaped(self.array, iter(found))

    def _between(self, low: Any, high: Any, fraction: float, total: int) -> object:
        if not self.continuous:
            return low
        place = fraction * (total - 1)
        part = place - math.floor(place)
        mix: Callable[[Any, Any, float], Any] = interval_between if self.type.kind is Kind.INTERVAL else between
        return mix(low, high, part)


def percentile(aggregate: Aggregate, context: Context) -> Percentile:
    """The reducer of a percentile aggregate; evaluates its fraction."""
    value, fraction = aggregate.args
    continuous = AGGREGATES[aggregate.function].interpolates
    fractions: tuple[float | None, ...] | None = None
    array: tuple[Any, ...] | None = None
    failure = None
    try:
        datum: Any = constant(fraction, context)
        if datum is not None:
            array = datum if fraction.type.kind is Kind.ARRAY else None
            fractions = tuple(None if f is None else checked(f) for f in leaves((datum,)))
    except SqlError as error:
        failure = error.sqlstate, error.message
    return Percentile(value.type, aggregate.type, continuous, fractions, array, failure, context.dictionary)
