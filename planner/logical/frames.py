"""Window functions over frames: what is computed for each row from other rows of its partition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from ivm.words import INT8, ColumnType
from planner.expr.scalar import Aggregate, Scalar
from planner.logical.aggregates import aggregate_scalars, with_aggregate_scalars


class FrameMode(Enum):
    """What a bound's offset counts: rows, the order's value, or groups of peers."""

    ROWS = "rows"
    RANGE = "range"
    GROUPS = "groups"


class Exclusion(Enum):
    """The rows that a frame leaves out."""

    NO_OTHERS = "no others"
    CURRENT_ROW = "current row"
    GROUP = "group"
    TIES = "ties"


@dataclass(frozen=True, slots=True)
class Bound:
    """UNBOUNDED, an offset without columns, or CURRENT ROW (neither)."""

    following: bool = False
    unbounded: bool = False
    offset: Scalar | None = None


PRECEDING_ALL: Final = Bound(unbounded=True)
FOLLOWING_ALL: Final = Bound(following=True, unbounded=True)
CURRENT: Final = Bound()


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows from ``start`` to ``end`` of a row's partition."""

    mode: FrameMode = FrameMode.RANGE
    start: Bound = PRECEDING_ALL
    end: Bound = CURRENT
    exclusion: Exclusion = Exclusion.NO_OTHERS

    @property
    def offsets(self) -> tuple[Scalar, ...]:
        """The bounds' offsets."""
        return tuple(b.offset for b in (self.start, self.end) if b.offset is not None)


class Pick(Enum):
    """Which row a window function takes its value from, or what it makes of the row's place."""

    LAG = "lag"
    LEAD = "lead"
    FIRST = "first_value"
    LAST = "last_value"
    NTH = "nth_value"
    NTILE = "ntile"
    ROW_NUMBER = "row_number"
    RANK = "rank"

    @property
    def is_framed(self) -> bool:
        """Whether it reads the frame; otherwise the partition."""
        return self in (Pick.FIRST, Pick.LAST, Pick.NTH)


@dataclass(frozen=True, slots=True)
class Picked:
    """The value of another row. ``args``: the value, then the offset or n where there is one, then the default; of
    ntile, the number of buckets. ``ignore_nulls``: rows whose value is NULL do not count."""

    pick: Pick
    args: tuple[Scalar, ...]
    ignore_nulls: bool = False


@dataclass(frozen=True, slots=True)
class Framed:
    """One window function and its frame."""

    function: Aggregate | Picked
    frame: Frame

    @property
    def column(self) -> ColumnType:
        """The result's type."""
        function = self.function
        if isinstance(function, Aggregate):
            return ColumnType(function.type, function.nullable)
        if function.pick in (Pick.ROW_NUMBER, Pick.RANK):
            return ColumnType(INT8, False)
        return ColumnType(function.args[0].type)

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """Its expressions, in the order that ``with_scalars`` takes."""
        function = self.function
        inside = aggregate_scalars(function) if isinstance(function, Aggregate) else function.args
        return (*inside, *self.frame.offsets)

    def with_scalars(self, new: tuple[Scalar, ...]) -> Framed:
        """The same function with other expressions."""
        function, rest = self.function, iter(new[len(new) - len(self.frame.offsets) :])
        inside = new[: len(new) - len(self.frame.offsets)]
        start, end = (b if b.offset is None else replace(b, offset=next(rest)) for b in self._bounds)
        if isinstance(function, Aggregate):
            made: Aggregate | Picked = with_aggregate_scalars(function, inside)
        else:
            made = replace(function, args=inside)
        return Framed(made, replace(self.frame, start=start, end=end))

    @property
    def _bounds(self) -> tuple[Bound, Bound]:
        return self.frame.start, self.frame.end

    @property
    def shape(self) -> object:
        """What it is apart from its expressions; equal for functions that differ in them alone."""
        function, frame = self.function, self.frame
        bounds = [(b.following, b.unbounded, b.offset is None) for b in self._bounds]
        own = (frame.mode.value, frame.exclusion.value, bounds)
        if isinstance(function, Aggregate):
            python = None if function.python is None else function.python.name
            return function.function, len(function.args), function.filter is None, str(function.type), python, own
        return function.pick.value, len(function.args), function.ignore_nulls, own

    def __str__(self) -> str:
        function = self.function
        name = function.function if isinstance(function, Aggregate) else function.pick.value
        return name.partition("(")[0]
