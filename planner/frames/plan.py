"""What the window functions of one window compute, over the columns of an arrangement's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ivm.errors import SqlError
from ivm.words import Schema, row_width
from planner.aggregates.accumulable import Accumulation
from planner.aggregates.components import AggregateCall
from planner.aggregates.function import AggregateKind
from planner.aggregates.table import AGGREGATES
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import constant
from planner.expr.scalar import Aggregate, Column, Scalar, SortKey
from planner.frames.distance import Distance
from planner.logical.frames import Bound, Exclusion, Frame, Framed, FrameMode, Pick, Picked


@dataclass(frozen=True, slots=True)
class Layout:
    """The rows of an arrangement [key | order | row]. ``skip``: the words of the order with its tie breaks; ``peers``:
    those without; ``row``: the columns of the row; ``sorted_by``: the only key of the order, a column, if RANGE needs
    it; ``flagged``: its first word says whether it is NULL."""

    skip: int
    peers: int
    row: Schema
    sorted_by: SortKey | None
    flagged: bool = False

    @property
    def width(self) -> int:
        """The words of an arranged value."""
        return self.skip + row_width(self.row)


@dataclass(frozen=True, slots=True)
class Edge:
    """A frame's bound: unbounded, or ``distance`` rows or groups after the row; ``range``: by value instead."""

    unbounded: bool
    distance: int = 0
    range: Distance | None = None
    following: bool = False


@dataclass(frozen=True, slots=True)
class Edges:
    """A frame whose offsets are known."""

    mode: FrameMode
    start: Edge
    end: Edge
    exclusion: Exclusion


@dataclass(frozen=True)
class WindowPlan:
    """The functions of one window: ``framed``, whose arguments are columns of ``layout.row``, or literals for lag's
    offset and default.

    An aggregate has no FILTER any more; that of all rows (string_agg, …) has another argument, whether the row is
    dropped. Functions with the same frame are computed together.
    """

    layout: Layout
    framed: tuple[Framed, ...]

    @cached_property
    def columns(self) -> Schema:
        """The results' columns."""
        return tuple(f.column for f in self.framed)

    @property
    def can_fail(self) -> bool:
        """Whether a row may have an error."""
        return any(_can_fail(f.function) for f in self.framed)

    @cached_property
    def frames(self) -> dict[Frame, tuple[int, ...]]:
        """The functions of each frame, by position."""
        found: dict[Frame, list[int]] = {}
        for i, f in enumerate(self.framed):
            found.setdefault(f.frame, []).append(i)
        return {frame: tuple(of) for frame, of in found.items()}

    def edges(self, frame: Frame, context: Context) -> Edges:
        """The frame with its offsets computed. Raises 22004, 22013."""
        key = None if self.layout.sorted_by is None else self.layout.sorted_by.expr
        start, end = (
            _edge(frame.mode, bound, side, key, context)
            for bound, side in ((frame.start, "starting"), (frame.end, "ending"))
        )
        return Edges(frame.mode, start, end, frame.exclusion)


def _can_fail(function: Aggregate | Picked) -> bool:
    if isinstance(function, Aggregate):
        return AGGREGATES[function.function].can_fail
    return function.pick in (Pick.NTH, Pick.NTILE)


def _edge(mode: FrameMode, bound: Bound, side: str, key: Scalar | None, context: Context) -> Edge:
    if bound.offset is None:
        return Edge(bound.unbounded, following=bound.following)
    value: Any = constant(bound.offset, context)
    if value is None:
        raise SqlError("22004", f"frame {side} offset must not be null")
    if mode is FrameMode.RANGE:
        assert key is not None
        return Edge(False, 0, Distance(key.type, value), bound.following)
    if value < 0:
        raise SqlError("22013", f"frame {side} offset must not be negative")
    return Edge(False, value if bound.following else -value, None, bound.following)


def sums_of(framed: Sequence[Framed]) -> Accumulation | None:
    """The layout of the sums of all accumulable aggregates."""
    calls = [sum_call(f.function) for f in framed if isinstance(f.function, Aggregate) and is_sum(f.function)]
    return Accumulation(tuple(dict.fromkeys(calls))) if calls else None


def is_sum(aggregate: Aggregate) -> bool:
    """Whether the aggregate is computed from sums."""
    return AGGREGATES[aggregate.function].kind is AggregateKind.ACCUMULABLE


def sum_call(aggregate: Aggregate) -> AggregateCall:
    """The aggregate of columns."""
    return AggregateCall(aggregate.function, positions(aggregate.args), tuple(a.type for a in aggregate.args))


def positions(args: Sequence[Scalar]) -> tuple[int, ...]:
    """The columns that these arguments are."""
    columns = [a for a in args if isinstance(a, Column)]
    assert len(columns) == len(args), "arguments are columns"
    return tuple(c.index for c in columns)
