"""Series that grow as time passes: ``generate_series(start, now(), INTERVAL '1 minute')`` in a maintained view.

Rule: the series is the endless one from ``start`` on, under the temporal condition ``value <= stop``. So that little of
it waits, it is built like a number from digits: the first series takes steps of ``step * BASE ** n``, each of its
values, once reached, begins a series of ``BASE`` values with the next smaller steps, and the last one has the step
itself. At most ``BASE`` values of each digit wait, and a value that comes costs its own update, and 1 / BASE more.

Side conditions: ``start`` and ``step`` do not depend on the time, ``step`` is a positive constant, and ``stop`` never
moves back. A step with months has no digits, since adding it twice is not adding its double (31 January, 28 February,
28 March): the whole series to the end of time waits, which is 96,000 months for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeGuard

from ivm.errors import SqlError
from ivm.words import BOOL, INTERVAL
from planner.expr.comparison import Comparison
from planner.expr.functions.library import comparison_of
from planner.expr.parts import COLUMNS, rebuild, walk
from planner.expr.scalar import Call, Column, Literal, Scalar
from planner.logical.nodes import Project, Rel, TableFunction, TemporalFilter, schema
from planner.logical.temporal import LAST, Course, course, reads_clock
from planner.logical.traversal import own_columns
from storage.types.calendar import DAY

BASE: Final = 256
_FUNCTION: Final = "generate_series({0},{0},interval)"
_HINT: Final = (
    "A view can hold generate_series(start, stop, step) with a constant step above 0 and a stop that only moves "
    "forward, such as now(). Leave old values out by a condition: WHERE value > now() - INTERVAL '1 day'."
)


def is_growing(rel: Rel) -> TypeGuard[TableFunction]:
    """Whether the relation is a table function of the clock."""
    return isinstance(rel, TableFunction) and any(map(reads_clock, rel.args))


def grown(rel: TableFunction, above: Sequence[Scalar] = ()) -> Rel:
    """A series whose arguments read the clock, as series of constant lengths under temporal conditions.

    ``above``: conditions that hold above it. Those that end later for later values (``value > now() - …``) end a whole
    block too, when its last value ends: so the past that no one sees is not made.

    Raises 0A000 for any other table function, and where the side conditions do not hold.
    """
    type_ = rel.columns[0].type
    if rel.function != _FUNCTION.format(type_.kind.value) or rel.ordinality:
        raise _unsupported()
    first, stop, step = rel.args
    months, days, micros = _positive(step)
    if reads_clock(first) or course(stop) is not Course.RISES:
        raise _unsupported()
    power = 1
    while not months and (days * DAY + micros) * power * BASE <= LAST:
        power *= BASE
    end: Scalar = Literal(LAST, type_)
    found = rel.input
    place = Column(len(schema(found)), type_, rel.columns[0].nullable)
    ends = [c for c in above if _ends_in_order(c, place)]
    reached = f"<=({type_.kind.value},{stop.type.kind.value})"
    while power:
        by = Literal((months, days * power, micros * power), INTERVAL)
        value = replace(place, index=len(schema(found)))
        found = TableFunction(found, rel.function, (first, end, by), rel.columns)
        rest = Literal((0, days * (power - 1), micros * (power - 1)), INTERVAL)
        last = Call(f"+({type_.kind.value},interval)", (value, rest), type_) if power > 1 else value
        bounds = (Call(reached, (value, stop), BOOL), *(_of(c, place, last) for c in ends))
        found = TemporalFilter(found, bounds)
        first, end = value, last
        power //= BASE
    columns = own_columns(schema(found))
    return Project(found, (*columns[: place.index], columns[-1]))


def _ends_in_order(condition: Scalar, value: Column) -> bool:
    """Whether a condition is ``value > clock`` or ``value >= clock``, for some expression of the clock."""
    if not isinstance(condition, Call) or condition.args[0] != value:
        return False
    later = comparison_of(condition) in (Comparison.GREATER, Comparison.NOT_LESS)
    return later and value not in set(walk(condition.args[1]))


def _of(condition: Scalar, place: Column, value: Scalar) -> Scalar:
    """The condition with another value in the column's place."""
    return rebuild(condition, COLUMNS, lambda part: value if part == place else part)


def _positive(step: Scalar) -> tuple[int, int, int]:
    """A constant interval above zero, as (months, days, µs)."""
    if not isinstance(step, Literal) or not isinstance(step.value, tuple):
        raise _unsupported()
    months, days, micros = step.value
    if min(months, days, micros) < 0 or not max(months, days, micros):
        raise _unsupported()
    return months, days, micros


def _unsupported() -> SqlError:
    message = "this table function of the current time in a materialized view is not supported"
    return SqlError("0A000", message, hint=_HINT)
