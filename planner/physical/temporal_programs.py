"""When each row of a temporal filter comes and goes, as a row program: [moment | row], once with each diff.

A condition that rises is true from a *threshold* on, one that falls until its threshold. The comparison of the clock
with a column is turned into an addition to the column. Any other condition is searched for its threshold by bisection:
it is evaluated some sixty times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from ivm.graph import Mapped
from ivm.moments import NEVER
from ivm.rows import Mask, Vector, Words
from ivm.words import INT8, NEGATIVE_INFINITY, POSITIVE_INFINITY, TIMESTAMPTZ, Kind, Schema
from planner import gathers
from planner.expr.comparison import Comparison
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluate
from planner.expr.functions.library import called_function, comparison_of
from planner.expr.rows import equals
from planner.expr.scalar import Call, Literal, Scalar
from planner.logical.temporal import LAST, Course, at_moment, course, is_clock, reads_clock
from planner.physical.row_programs import RunState, Stage
from storage.types.calendar import DAY, EPOCH_DAYS

_SINCE_1970: Final = EPOCH_DAYS * DAY
"""2000-01-01, the zero of timestamps, in µs since 1970, as moments count."""
_FIRST: Final = _SINCE_1970
_LAST: Final = _SINCE_1970 + LAST
"""The present is never before 2000 nor after LAST: thresholds outside are never met, or always."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The threshold of ``clock + shift < value`` (or another comparison): a column of the stage, plus ``offset``."""

    course: Course
    value: Scalar
    offset: int

    def threshold(self, value: Vector) -> Words:
        """NULL is never true."""
        words = value.words
        exact = np.clip(words, -NEVER // 2, NEVER // 2) + self.offset
        exact = np.where(words == POSITIVE_INFINITY, NEVER, np.where(words == NEGATIVE_INFINITY, -NEVER, exact))
        return exact if value.nulls is None else np.where(value.nulls, _never(self.course), exact)


@dataclass(frozen=True, slots=True)
class Searched:
    """Any condition, over rows with two columns for the moment (``planner.logical.temporal.at_moment``)."""

    course: Course
    test: Stage


def _never(of: Course) -> int:
    """The threshold of a condition that is never true."""
    return NEVER if of is Course.RISES else -NEVER


@dataclass(frozen=True, slots=True)
class Moments:
    """[moment | row] for each row, with diff 1 where the conditions become true and -1 where they cease to be."""

    schema: Schema
    conditions: tuple[Scalar, ...]
    compared: tuple[Compared, ...] = field(init=False, compare=False, repr=False)
    values: Stage = field(init=False, compare=False, repr=False)
    searched: tuple[Searched, ...] = field(init=False, compare=False, repr=False)
    diff_width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        known = [(c, compared_with_clock(c)) for c in self.conditions]
        compared = tuple(found for _, found in known if found is not None)
        object.__setattr__(self, "compared", compared)
        object.__setattr__(self, "values", Stage.of(tuple(c.value for c in compared)))
        others = [c for c, found in known if found is None]
        width = len(self.schema)
        searched = tuple(Searched(course(c), Stage.of((at_moment(c, width),))) for c in others)
        object.__setattr__(self, "searched", searched)

    @property
    def out_width(self) -> int:
        return 1 + gathers.width(self.schema)

    @property
    def can_fail(self) -> bool:
        return self.values.can_fail or any(s.test.can_fail for s in self.searched)

    def run(self, rows: Words, context: Context) -> Mapped:
        work = RunState(rows, self.schema, context)
        enters, leaves = np.full(len(rows), -NEVER, np.int64), np.full(len(rows), NEVER, np.int64)
        values = work.evaluate(self.values)
        if values:
            enters, leaves = enters[: len(work.rows)], leaves[: len(work.rows)]
        found = [(c.course, c.threshold(value)) for c, value in zip(self.compared, values, strict=True)]
        for condition in self.searched:
            threshold, kept = _search(condition, work, context)
            found = [(of, known[kept]) for of, known in found]
            enters, leaves = enters[kept], leaves[kept]
            found.append((condition.course, threshold))
        for of, threshold in found:
            if of is Course.RISES:
                enters = np.maximum(enters, threshold)
            else:
                leaves = np.minimum(leaves, threshold)
        return _events(work, enters, leaves)


def _events(work: RunState, enters: Words, leaves: Words) -> Mapped:
    some = np.flatnonzero((enters < leaves) & (enters < NEVER))
    later = some[leaves[some] < NEVER]
    moments = np.concatenate([enters[some], leaves[later]])
    chosen = np.concatenate([some, later])
    out = np.column_stack([moments, work.rows[chosen]])
    weights = np.concatenate([np.ones(len(some), np.int64), np.full(len(later), -1, np.int64)])
    source = chosen if work.source is None else work.source[chosen]
    errors, error_source = work.errors()
    return Mapped(np.ascontiguousarray(out), source.astype(np.int64), weights, errors, error_source)


def _search(condition: Searched, work: RunState, context: Context) -> tuple[Words, Words]:
    """(the condition's threshold for each row, the rows still in). Rows on which it fails at any probe are removed."""
    kept = np.arange(len(work.rows))
    low = np.full(len(kept), _FIRST, np.int64)
    high = np.full(len(kept), _LAST, np.int64)
    for moments in (low, high):
        kept = kept[_test(condition, work, moments, context)[1]]
    low, high = low[: len(kept)], high[: len(kept)]
    risen = condition.course is Course.RISES
    at_first = _test(condition, work, low, context)[0] == risen
    at_last = _test(condition, work, high, context)[0] == risen
    while len(kept) and bool((high - low > 1).any()):
        middle = low + (high - low) // 2
        reached, fine = _test(condition, work, middle, context)
        if len(fine) < len(kept):
            kept, low, high, middle, at_first, at_last = (
                a[fine] for a in (kept, low, high, middle, at_first, at_last)
            )  # fmt: skip
        reached = reached == risen
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    threshold = np.where(at_first, -NEVER, np.where(at_last, high, NEVER))
    return threshold, kept


def _test(condition: Searched, work: RunState, moments: Words, context: Context) -> tuple[Mask, Words]:
    """(where the condition is true at these moments, which rows did not fail); failed rows are removed."""
    columns = [*work.vectors(condition.test.used), Vector(moments - _SINCE_1970), Vector(moments)]
    (result,), failures = evaluate(condition.test.exprs, columns, len(work.rows), context)
    kept = np.arange(len(work.rows))
    true = equals(result, 1)
    if failures is not None and len(failures.rows):
        work.fail(failures.rows, failures.errors)
        kept = np.delete(kept, failures.rows)
        work.take(kept)
    return true[kept], kept


def compared_with_clock(condition: Scalar) -> Compared | None:
    """The condition as a comparison of the clock with a value of the row; None if it is not of this form."""
    comparison = comparison_of(condition)
    if comparison is None or not isinstance(condition, Call):
        return None
    left, right = condition.args
    if reads_clock(right):
        left, right, comparison = right, left, comparison.commutator
    if reads_clock(right) or right.type.kind not in (Kind.TIMESTAMPTZ, Kind.TIMESTAMP, Kind.INT8, Kind.INTERVAL):
        return None
    found = _clock_plus(left, right)
    if found is None:
        return None
    value, offset = found
    if comparison in (Comparison.GREATER, Comparison.NOT_GREATER):
        offset += 1
    of = Course.RISES if comparison in (Comparison.GREATER, Comparison.NOT_LESS) else Course.FALLS
    return Compared(of, value, offset)


def _clock_plus(side: Scalar, other: Scalar) -> tuple[Scalar, int] | None:
    """(value, offset) with ``side`` < ``other`` exactly while the moment is below value + offset, and so for the other
    comparisons; None: they are not so simple."""
    clock, shift = side, 0
    function = called_function(side)
    if function is not None and isinstance(side, Call) and function.follows in ((1, 0), (1, -1)):
        clock, by = side.args
        if function.args == (TIMESTAMPTZ, TIMESTAMPTZ):  # clock - value < interval
            size = _exact(other)
            return None if size is None or reads_clock(by) or not is_clock(clock) else (by, size + _SINCE_1970)
        size = _exact(by)
        if size is None:
            return None
        shift = size if function.name == "+" else -size
    if not is_clock(clock) or clock.type != other.type:
        return None
    return other, (0 if clock.type == INT8 else _SINCE_1970) - shift


def _exact(expr: Scalar) -> int | None:
    """The µs of a constant interval without months."""
    if not isinstance(expr, Literal) or expr.type.kind is not Kind.INTERVAL or not isinstance(expr.value, tuple):
        return None
    months, days, micros = expr.value
    return None if months else int(days) * DAY + int(micros)
