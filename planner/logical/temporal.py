"""Temporal filters: conditions that compare rows with the present moment, such as ``expires > now()``.

A maintained view can have such a condition if, for each row, it changes at most twice as time passes: from false to
true (it *rises*), or from true to false (it *falls*). Which one follows from the functions' monotony. The row then
enters at one moment and leaves at another, and nothing has to look at it in between. After Materialize's temporal
filters, which allow comparisons of mz_now() alone.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from functools import reduce
from typing import Final, TypeGuard

from ivm.errors import SqlError
from ivm.words import INT8, TIMESTAMPTZ
from planner.expr.comparison import Comparison
from planner.expr.functions.library import CAST, FUNCTIONS, called_function, comparison_of
from planner.expr.parts import CALLS, rebuild, walk
from planner.expr.scalar import And, Call, Column, Or, Scalar
from storage.types.calendar import DAY

HINT: Final = (
    "A view can compare the present with values of its rows at the top of WHERE: WHERE created_at > now() - "
    "INTERVAL '5 minutes', WHERE mz_now() BETWEEN valid_from AND valid_to. Use a plain view for anything else."
)


LAST: Final = 8_000 * 365 * DAY
"""The present is before this moment of the year 9994, in µs since 2000."""


class Course(Enum):
    """How a value (false before true) changes while time passes."""

    RISES = 1
    CONSTANT = 0
    FALLS = -1

    @property
    def opposite(self) -> Course:
        return Course(-self.value)


def is_clock(expr: Scalar) -> TypeGuard[Call]:
    """Whether the expression says what time it is."""
    function = FUNCTIONS.get(expr.function) if isinstance(expr, Call) else None
    return function is not None and function.clock


def reads_clock(expr: Scalar) -> bool:
    """Whether the expression depends on what time it is."""
    return any(map(is_clock, walk(expr)))


def at_moment(expr: Scalar, width: int) -> Scalar:
    """The expression over rows of ``width`` columns and two more: the moment as a timestamptz, and as an epoch."""
    stamp, epoch = Column(width, TIMESTAMPTZ, False), Column(width + 1, INT8, False)

    def change(part: Call) -> Scalar:
        if not is_clock(part):
            return part
        if part.type == INT8:
            return epoch
        return stamp if part.type == TIMESTAMPTZ else Call(CAST, (stamp,), part.type, False)

    return rebuild(expr, CALLS, change)


def conditions(predicate: Scalar) -> tuple[Scalar, ...]:
    """A condition that reads the clock as conditions each of which rises or falls. Raises 0A000."""
    if comparison_of(predicate) is Comparison.EQUAL and isinstance(predicate, Call):
        types = [predicate.args[0].type, predicate.args[1].type]
        both = [f for f in FUNCTIONS.values() if f.comparison in (Comparison.NOT_LESS, Comparison.NOT_GREATER)]
        keys = [f.key for f in both if [*f.args] == types]
        pair = tuple(replace(predicate, function=key) for key in keys)
        if len(pair) == 2:
            return tuple(c for part in pair for c in conditions(part))
    course(predicate)
    return (predicate,)


def course(expr: Scalar) -> Course:
    """How the expression changes for any one row. Raises 0A000: it may go up and down."""
    if not reads_clock(expr):
        return Course.CONSTANT
    match expr:
        case And() | Or():
            return reduce(_same, map(course, expr.args))
        case Call():
            return _call_course(expr)
        case _:
            raise unsupported_clock()


def _call_course(call: Call) -> Course:
    if is_clock(call):
        return Course.RISES
    comparison = comparison_of(call)
    if comparison is not None:
        return _comparison_course(call, comparison)
    function = called_function(call)
    if function is None or len(function.follows) != len(call.args):
        raise unsupported_clock()
    courses = zip(map(course, call.args), function.follows, strict=True)
    return reduce(_same, (_followed(of, follows) for of, follows in courses))


def _followed(of: Course, follows: int) -> Course:
    """The course of a result that follows an argument of this course."""
    if of is not Course.CONSTANT and not follows:
        raise unsupported_clock()
    return Course(of.value * follows)


def _comparison_course(call: Call, comparison: Comparison) -> Course:
    difference = _same(course(call.args[0]), course(call.args[1]).opposite)
    if comparison in (Comparison.GREATER, Comparison.NOT_LESS):
        return difference
    if comparison in (Comparison.LESS, Comparison.NOT_GREATER):
        return difference.opposite
    raise unsupported_clock()


def _same(a: Course, b: Course) -> Course:
    """The course of what rises where both do."""
    if a is Course.CONSTANT:
        return b
    if b not in (Course.CONSTANT, a):
        raise unsupported_clock()
    return a


def unsupported_clock() -> SqlError:
    """The error for a use of the clock that no view can maintain."""
    return SqlError(
        "0A000", "this use of the current time in a materialized view is not supported",
        "A view's rows may come and go as time passes only where a comparison with the present, once it has changed, "
        "does not change back.",
        HINT,
    )  # fmt: skip
