"""The functions over frames: results for the rows of a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import assert_never

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Mask, Vector, Words
from planner.aggregates.function import AggregateKind, Extreme, Failure
from planner.aggregates.reducers import called
from planner.aggregates.table import AGGREGATES
from planner.expr.context import Context
from planner.expr.scalar import Aggregate, Column, Literal, Scalar
from planner.frames.extremes import best
from planner.frames.plan import Edges, WindowPlan, is_sum, positions, sum_call, sums_of
from planner.frames.source import Source
from planner.frames.spans import Span, frame, pieces
from planner.frames.sums import Sums, Totals
from planner.logical.frames import Framed, Pick, Picked
from storage.types import codec

Results = tuple[Vector, list[Failure]]
"""Each row's word, and the rows that failed, which have any word."""


@dataclass(slots=True)
class Evaluation:
    """The functions of one frame over a source: its ``whole`` frames and their ``parts``, without what they exclude."""

    source: Source
    context: Context
    whole: Span
    parts: list[Span]

    @classmethod
    def of(cls, source: Source, edges: Edges, context: Context) -> Evaluation:
        """The frames of the source's rows."""
        whole = frame(source, edges)
        return cls(source, context, whole, pieces(source, whole, edges.exclusion))

    def totals(self, sums: Sums, parts: Sequence[Span]) -> Totals:
        """The sums over the frames' parts."""
        found: Totals | None = None
        for low, high in parts:
            places, at = np.unique(np.concatenate([low, high]), return_inverse=True)
            totals = self.source.totals(sums, places)
            part = totals.take(at[len(low) :]).plus(totals.take(at[: len(low)]), -1)
            found = part if found is None else found.plus(part)
        assert found is not None
        return found

    def results(self, framed: Sequence[Framed]) -> list[Results]:
        """Each function's results."""
        layout = sums_of(framed)
        sums = None if layout is None else Sums(layout, self.context.dictionary)
        groups = None if sums is None else sums.groups(self.totals(sums, self.parts))
        made: list[Results] = []
        for f in framed:
            match f.function:
                case Picked() as picked:
                    made.append(self.picked(picked))
                case Aggregate() as aggregate if is_sum(aggregate):
                    assert layout is not None
                    assert groups is not None
                    finish = AGGREGATES[aggregate.function].finish
                    assert finish is not None, aggregate.function
                    made.append(finish(layout.plans[layout.calls.index(sum_call(aggregate))], groups))
                case Aggregate() as aggregate:
                    made.append(self._of_values(aggregate))
                case function:
                    assert_never(function)
        return made

    # -- aggregates of values ------------------------------------------------------------------------------------

    def _of_values(self, aggregate: Aggregate) -> Results:
        function = AGGREGATES[aggregate.function]
        if function.kind is AggregateKind.ORDERED:
            return self.extreme(aggregate, self.parts), []
        return self._folded(aggregate)

    def extreme(self, aggregate: Aggregate, parts: Sequence[Span]) -> Vector:
        """min, max or any_value over the frames' parts."""
        greatest = AGGREGATES[aggregate.function].extreme is Extreme.GREATEST
        (column,) = positions(aggregate.args)
        found = [self.source.least(column, greatest, low, high) for low, high in parts]
        if len(found) == 1:
            return found[0]
        return best(aggregate.args[0].type, found, greatest, self.context.dictionary)

    def _folded(self, aggregate: Aggregate) -> Results:
        """An aggregate of all rows, in order. Its last argument: whether the row is dropped."""
        columns = positions(aggregate.args)
        read = [self.source.spread(low, high, columns) for low, high in self.parts]
        decoded = [
            [codec.decode(a.type, v, self.context.dictionary) for a, v in zip(aggregate.args, vectors, strict=True)]
            for vectors, _ in read
        ]
        datums: list[object] = []
        failures: list[Failure] = []
        for row in range(len(self.source.at)):
            values: list[list[object]] = [[] for _ in columns[:-1]]
            for data, (_, ends) in zip(decoded, read, strict=True):
                kept = [i for i in range(int(ends[row]), int(ends[row + 1])) if not data[-1][i]]
                for column, found in zip(data[:-1], values, strict=True):
                    found += [column[i] for i in kept]
            try:
                count = sum(int(ends[row + 1]) - int(ends[row]) for _, ends in read)
                count = len(values[0]) if values else count
                datums.append(fold(aggregate, values, count, self.context))
            except SqlError as error:
                datums.append(None)
                failures.append((row, error.with_traceback(None)))
        return codec.encode(aggregate.type, datums, self.context.dictionary), failures

    # -- values of other rows ------------------------------------------------------------------------------------

    def picked(self, picked: Picked) -> Results:
        """The results of a function of another row's value, or of the row's place."""
        source = self.source
        match picked.pick:
            case Pick.ROW_NUMBER:
                return Vector(source.at - source.first + 1), []
            case Pick.RANK:
                return Vector(source.peers()[0] - source.first + 1), []
            case Pick.NTILE:
                return self._buckets(picked)
            case Pick.LAG | Pick.LEAD:
                places, found, failures = self._neighbours(picked)
            case Pick.FIRST | Pick.LAST | Pick.NTH:
                places, found, failures = self._in_frame(picked)
            case pick:
                assert_never(pick)
        return self._value(picked, places, found), failures

    def targets(self, picked: Picked) -> tuple[Words, Mask]:
        """(the places of the rows whose values are taken, where there is one)."""
        neighbours = picked.pick in (Pick.LAG, Pick.LEAD)
        places, found, _ = self._neighbours(picked) if neighbours else self._in_frame(picked)
        return places, found

    def _value(self, picked: Picked, places: Words, found: Mask) -> Vector:
        (value,) = self.source.read(np.where(found, places, self.source.at), positions(picked.args[:1]))
        nulls = ~found if value.nulls is None else value.nulls | ~found
        words = value.words
        if len(picked.args) > 2:
            default = self._argument(picked.args[2])
            missing = ~found & self._given(picked)
            words = np.where(missing, default.words, words)
            nulls = np.where(missing, False if default.nulls is None else default.nulls, nulls)
        return Vector(np.where(nulls, 0, words), nulls)

    def _given(self, picked: Picked) -> Mask:
        """Where the offset is not NULL."""
        nulls = self._number(picked)[1]
        return ~nulls

    def _number(self, picked: Picked) -> tuple[Words, Mask]:
        """Each row's offset, or n, and where it is NULL."""
        n = len(self.source.at)
        if len(picked.args) < 2:
            return np.ones(n, np.int64), np.zeros(n, np.bool_)
        column = self._argument(picked.args[1])
        return column.words, np.zeros(n, np.bool_) if column.nulls is None else column.nulls

    def _argument(self, arg: Scalar) -> Vector:
        """An argument for each row."""
        if isinstance(arg, Column):
            return self.source.columns[arg.index]
        assert isinstance(arg, Literal)
        vector = codec.encode(arg.type, [arg.value], self.context.dictionary)
        rows = np.zeros(len(self.source.at), np.int64)
        return Vector(vector.words[rows], None if vector.nulls is None else vector.nulls[rows])

    def _neighbours(self, picked: Picked) -> tuple[Words, Mask, list[Failure]]:
        source = self.source
        number, nulls = self._number(picked)
        step = -number if picked.pick is Pick.LAG else number
        if not picked.ignore_nulls:
            places = source.at + step
            return places, ~nulls & (places >= source.first) & (places < source.stop), []
        (column,) = positions(picked.args[:1])
        low, high = source.present(column, source.first), source.present(column, source.stop)
        here = source.present(column, source.at)
        behind = source.present(column, source.at + 1)
        wanted = np.where(step < 0, here + step, behind + step - 1)
        found = ~nulls & (wanted >= low) & (wanted < high) & (step != 0)
        places = np.where(step == 0, source.at, 0)
        places[found] = source.nth(column, wanted[found])
        return places, found | (~nulls & (step == 0)), []

    def _in_frame(self, picked: Picked) -> tuple[Words, Mask, list[Failure]]:
        number, nulls = self._number(picked)
        failures: list[Failure] = []
        if picked.pick is Pick.NTH:
            error = SqlError("22016", "argument of nth_value must be greater than zero")
            failures = [(row, error) for row in np.flatnonzero((number <= 0) & ~nulls).tolist()]
        counted = [self._counted(picked, low, high) for low, high in self.parts]
        total = np.sum([high - low for low, high in counted], axis=0)
        left = total - 1 if picked.pick is Pick.LAST else number - 1
        found = ~nulls & (left >= 0) & (left < total)
        wanted = np.zeros(len(total), np.int64)
        waiting = found.copy()
        for low, high in counted:
            here = waiting & (left < high - low)
            wanted = np.where(here, low + left, wanted)
            waiting &= ~here
            left = left - (high - low)
        if picked.ignore_nulls:
            wanted[found] = self.source.nth(positions(picked.args[:1])[0], wanted[found])
        return wanted, found, failures

    def _counted(self, picked: Picked, low: Words, high: Words) -> Span:
        """A range of the rows that count: their places, or the numbers of those with a value."""
        if not picked.ignore_nulls:
            return low, high
        count = partial(self.source.present, positions(picked.args[:1])[0])
        return count(low), count(high)

    def _buckets(self, picked: Picked) -> Results:
        """ntile: the number of buckets is the first row's argument."""
        source = self.source
        (number,) = self.source.read(source.first, positions(picked.args))
        nulls = np.zeros(len(source.at), np.bool_) if number.nulls is None else number.nulls
        bad = ~nulls & (number.words <= 0)
        error = SqlError("22014", "argument of ntile must be greater than zero")
        buckets = np.where(nulls | bad, 1, number.words)
        row, count = source.at - source.first, source.stop - source.first
        size, larger = count // buckets, count % buckets
        within = larger * (size + 1)
        rest = (row - within) // np.maximum(size, 1) + larger
        bucket = np.where(row < within, row // (size + 1), rest) + 1
        return Vector(np.where(nulls, 0, bucket), nulls), [(row, error) for row in np.flatnonzero(bad).tolist()]


def fold(aggregate: Aggregate, values: list[list[object]], count: int, context: Context) -> object:
    """The aggregate of all rows that count, in order. ``values``: its arguments. Raises its SqlError."""
    if aggregate.python is not None:
        return called(aggregate.python, [a.type for a in aggregate.args[:-1]], values, count, context)
    rule = AGGREGATES[aggregate.function].fold
    assert rule is not None, aggregate.function
    return rule(aggregate.args[0].type, values[0], values[-1]) if values[0] else None


def evaluate(plan: WindowPlan, frames: dict[int, Edges], source: Source, context: Context) -> list[Results]:
    """The results of all functions, in their order. ``frames``: by the first function that has them."""
    results: dict[int, Results] = {}
    for of in plan.frames.values():
        evaluation = Evaluation.of(source, frames[of[0]], context)
        results |= dict(zip(of, evaluation.results([plan.framed[i] for i in of]), strict=True))
    return [results[i] for i in range(len(plan.framed))]
