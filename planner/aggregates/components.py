"""The input of accumulable aggregates: diff columns, limb rows, and which of them each call uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from ivm.rows import Words
from ivm.words import SqlType
from storage.dictionary import Dictionary

SLOT_SHIFT: Final = 40


class Shape(Enum):
    """How an argument's values add up."""

    SHORT = "short"
    """int2, int4: one column holds any sum."""
    LONG = "long"
    """int8 and scaled numeric(p, s): two limbs."""
    FLOAT = "float"
    NUMERIC = "numeric"
    INTERVAL = "interval"
    BITS = "bits"
    OTHER = "other"


class DiffColumn(Enum):
    """What one diff column of the main rows holds of an argument."""

    ROWS = "rows"
    COUNT = "count"
    TRUE = "true"
    VALUE = "value"
    LOW = "low"
    HIGH = "high"
    NAN = "nan"
    SQUARE_LOW = "square_low"
    SQUARE_HIGH = "square_high"
    CROSS_LOW = "cross_low"
    CROSS_HIGH = "cross_high"
    TOP_LOW = "top_low"
    TOP_HIGH = "top_high"
    MONTHS = "months"
    DAYS = "days"


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An accumulable aggregate over columns: ``args`` are positions, ``types`` the arguments' types."""

    function: str
    args: tuple[int, ...]
    types: tuple[SqlType, ...]


@dataclass(frozen=True, slots=True)
class Component:
    """A diff column. ``column``: the argument's position; -1 for ROWS, which has no argument."""

    part: DiffColumn
    column: int = -1


ROWS: Final = Component(DiffColumn.ROWS)
"""The first diff column."""
PARTS: Final = tuple(DiffColumn)


@dataclass(frozen=True, slots=True)
class SlotSet:
    """The limb rows of one argument: its sum, the sum of its squares or of its products with column ``other``; for
    shape BITS, how often each bit is set."""

    column: int
    shape: Shape
    squared: bool
    other: int = -1


@dataclass(frozen=True, slots=True)
class CallPlan:
    """One call and the inputs of its result: the diff columns of its parts, and its limb rows."""

    call: AggregateCall
    shape: Shape
    result: SqlType
    places: dict[DiffColumn, int]
    total: SlotSet | None
    squares: SlotSet | None
    sets: tuple[SlotSet, ...] = ()


@dataclass(slots=True)
class Groups:
    """``diffs``: the main rows' diff columns, int64[g, k]; ``limbs``: per slot set, each group's {code: amount};
    ``dense``: the same as (codes int64[c], amounts int64[g, c]) where all groups have much the same codes."""

    diffs: Words
    limbs: Mapping[SlotSet, dict[int, dict[int, int]]]
    dictionary: Dictionary
    dense: Mapping[SlotSet, tuple[Words, Words]] = field(default_factory=dict)

    def column(self, plan: CallPlan, part: DiffColumn) -> Words:
        return self.diffs[:, plan.places[part]]
