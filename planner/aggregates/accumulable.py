"""Input of the accumulable aggregates: the diff columns and slots that they need, and each row's contribution to them.

See ``planner/aggregates/table.py`` for how the parts fit together. Aggregates of the same column share components, so
sum(x), avg(x) and count(x) together cost one count and one sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

import numpy as np

from ivm.rows import Mask, Vector, Words
from ivm.words import ColumnType, Kind, Schema, SqlType, Storage
from planner.aggregates.components import (
    PARTS,
    ROWS,
    SLOT_SHIFT,
    AggregateCall,
    CallPlan,
    Component,
    DiffColumn,
    Shape,
    SlotSet,
)  # fmt: skip
from planner.aggregates.exact_sums import Parts, bit_parts, float_parts, numeric_parts, product_parts, square_parts
from planner.aggregates.function import Addends, NullResult
from planner.aggregates.table import AGGREGATES
from planner.expr.functions.formula import BITS
from storage.dictionary import Dictionary
from storage.types.codec import INTERVAL, word_to_float
from storage.types.numeric import DIRECT_NAN


@dataclass(frozen=True, slots=True)
class Expanded:
    """Rows for the arrangement: ``source`` int64[m] or None (one for one), ``slots`` int64[m], ``weights``
    int64[m, diff_width]."""

    source: Words | None
    slots: Words
    weights: Words


_SUMMED: Final = (Addends.VALUES, Addends.SQUARES)
_SQUARES: Final[dict[Shape, tuple[DiffColumn, ...]]] = {
    Shape.SHORT: (DiffColumn.SQUARE_LOW, DiffColumn.SQUARE_HIGH),
    Shape.LONG: (
        DiffColumn.SQUARE_LOW, DiffColumn.SQUARE_HIGH, DiffColumn.CROSS_LOW, DiffColumn.CROSS_HIGH,
        DiffColumn.TOP_LOW, DiffColumn.TOP_HIGH,
    ),
}  # fmt: skip
_SUMS: Final[dict[Shape, tuple[DiffColumn, ...]]] = {
    Shape.SHORT: (DiffColumn.VALUE,),
    Shape.LONG: (DiffColumn.LOW, DiffColumn.HIGH),
    Shape.INTERVAL: (DiffColumn.MONTHS, DiffColumn.DAYS, DiffColumn.LOW, DiffColumn.HIGH),
}


def shape_of(type_: SqlType) -> Shape:
    """How values of a type add up."""
    match type_.kind:
        case Kind.INT2 | Kind.INT4:
            return Shape.SHORT
        case Kind.INT8:
            return Shape.LONG
        case Kind.NUMERIC:
            return Shape.LONG if type_.storage is Storage.DIRECT else Shape.NUMERIC
        case Kind.FLOAT4 | Kind.FLOAT8:
            return Shape.FLOAT
        case Kind.INTERVAL:
            return Shape.INTERVAL
        case _:
            return Shape.OTHER


def _components(call: AggregateCall) -> tuple[Component, ...]:
    addends = AGGREGATES[call.function].addends
    if not call.args:
        return (ROWS,)
    column, shape = call.args[0], shape_of(call.types[0])
    parts = [DiffColumn.COUNT]
    if addends is Addends.TRUTH:
        parts.append(DiffColumn.TRUE)
    elif addends in _SUMMED:
        parts += _SUMS.get(shape, ())
        if addends is Addends.SQUARES:
            parts += _SQUARES.get(shape, ())
        if call.types[0].kind is Kind.NUMERIC and shape is Shape.LONG:
            parts.append(DiffColumn.NAN)
    return tuple(Component(part, column) for part in parts)


def _slot_sets(call: AggregateCall) -> tuple[SlotSet, ...]:
    match AGGREGATES[call.function].addends:
        case Addends.NOTHING | Addends.TRUTH:
            return ()
        case Addends.BITS:
            return (SlotSet(call.args[0], Shape.BITS, False),)
        case Addends.PAIRS:
            return _pair_sets(*call.args)
        case Addends.VALUES | Addends.SQUARES as addends:
            shape = shape_of(call.types[0])
            if shape not in (Shape.FLOAT, Shape.NUMERIC):
                return ()
            total = SlotSet(call.args[0], shape, False)
            return (total, SlotSet(call.args[0], shape, True)) if addends is Addends.SQUARES else (total,)
        case addends:
            assert_never(addends)


def _pair_sets(y: int, x: int) -> tuple[SlotSet, ...]:
    """The slot sets for the sums of y, y * y, x, x * x and y * x."""
    alone = [SlotSet(column, Shape.FLOAT, squared) for column in (y, x) for squared in (False, True)]
    return (*alone, SlotSet(y, Shape.FLOAT, True, x))


@dataclass(frozen=True, slots=True)
class Accumulation:
    """The layout of several accumulable aggregates in one arrangement.

    ``components``: the diff columns after the first (which counts the group's rows), in the order of the arguments.
    ``slot_sets``: set i has the slots ``(i + 1) << SLOT_SHIFT | code``. ``schema``: the results' columns. All follow
    from ``calls``; other calls with the same components and slot sets may read the same arrangement. ``always``: the
    only group of a Reduce without keys has an extra row (``empty_weights``), so a component counts its real rows.
    """

    calls: tuple[AggregateCall, ...]
    always: bool = False
    components: tuple[Component, ...] = field(init=False, compare=False, repr=False)
    slot_sets: tuple[SlotSet, ...] = field(init=False, compare=False, repr=False)
    schema: Schema = field(init=False, compare=False, repr=False)
    plans: tuple[CallPlan, ...] = field(init=False, compare=False, repr=False)
    types: dict[int, SqlType] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        found = {c for call in self.calls for c in _components(call)}
        if not self.always:
            found -= {ROWS}
        components = tuple(sorted(found, key=lambda c: (c.column, PARTS.index(c.part))))
        place = {ROWS: 0} | {component: i for i, component in enumerate(components, 1)}
        sets = {s for call in self.calls for s in _slot_sets(call)}
        plans = tuple(_plan(call, place) for call in self.calls)
        derived: dict[str, object] = {
            "components": components,
            "slot_sets": tuple(sorted(sets, key=lambda s: (s.column, s.shape.value, s.squared, s.other))),
            "plans": plans,
            "schema": tuple(
                ColumnType(plan.result, AGGREGATES[plan.call.function].null_result is not NullResult.NEVER)
                for plan in plans
            ),
            "types": {a: t for c in self.calls for a, t in zip(c.args, c.types, strict=True)},
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def val_width(self) -> int:
        return 1 if self.slot_sets else 0

    @property
    def diff_width(self) -> int:
        return 1 + len(self.components)

    @property
    def empty_weights(self) -> tuple[int, ...]:
        """The weights of a row that makes a group exist but adds to no aggregate."""
        return (1,) + (0,) * len(self.components)

    def expand(self, vectors: Sequence[Vector], count: int, dictionary: Dictionary) -> Expanded:
        """Each row's contributions: first its main row (slot 0), ``count`` in all and in order, then the limb rows."""
        sizes = _Cache(vectors, self.types, dictionary)
        main = np.ones((count, self.diff_width), np.int64)
        for i, component in enumerate(self.components, 1):
            main[:, i] = sizes.weight(component, count)
        if not self.slot_sets:
            return Expanded(None, np.zeros(count, np.int64), main)
        sources, slots, amounts = [np.arange(count)], [np.zeros(count, np.int64)], []
        for i, slot_set in enumerate(self.slot_sets, 1):
            source, code, amount = sizes.parts(slot_set)
            sources.append(source)
            slots.append(code | np.int64(i << SLOT_SHIFT))
            amounts.append(amount)
        added = np.concatenate(amounts)
        weights = np.zeros((count + len(added), self.diff_width), np.int64)
        weights[:count] = main
        weights[count:, 0] = added
        return Expanded(np.concatenate(sources), np.concatenate(slots), weights)


def _plan(call: AggregateCall, place: dict[Component, int]) -> CallPlan:
    function = AGGREGATES[call.function]
    sets = _slot_sets(call)
    return CallPlan(
        call,
        shape_of(call.types[0]) if call.args else Shape.OTHER,
        function.result_type(call.types),
        {component.part: place[component] for component in _components(call)},
        sets[0] if sets else None,
        sets[1] if len(sets) > 1 else None,
        sets,
    )


class _Cache:
    """Decoded values of each column of one batch, shared by its components."""

    def __init__(self, vectors: Sequence[Vector], types: dict[int, SqlType], dictionary: Dictionary) -> None:
        self.vectors, self.types, self.dictionary = vectors, types, dictionary
        self.intervals: dict[int, Words] = {}

    def weight(self, component: Component, count: int) -> Words | int:
        if component == ROWS:
            return 1
        vector = self.vectors[component.column]
        present = _present(vector, count)
        counts: Words = present.astype(np.int64)
        if component.part is DiffColumn.COUNT:
            return counts
        words = vector.words
        type_ = self.types[component.column]
        if type_.kind is Kind.NUMERIC and type_.storage is Storage.DIRECT:
            nan: Mask = (words == DIRECT_NAN) & present
            if component.part is DiffColumn.NAN:
                return np.asarray(nan, np.int64)
            present = present & ~nan
        if type_.kind is Kind.INTERVAL:
            return self._interval_part(component, present)
        weights: Words = np.where(present, _integer_part(component.part, np.where(present, words, 0)), 0)
        return weights

    def _interval_part(self, component: Component, present: Mask) -> Words:
        fields = self.intervals.get(component.column)
        if fields is None:
            words = self.vectors[component.column].words
            fields = np.zeros((len(words), 3), np.int64)
            found = self.dictionary.lookup(words[present])
            fields[present] = np.array([INTERVAL.unpack(data) for data in found], np.int64).reshape(-1, 3)
            self.intervals[component.column] = fields
        match component.part:
            case DiffColumn.MONTHS:
                return fields[:, 0]
            case DiffColumn.DAYS:
                return fields[:, 1]
            case _:
                return _integer_part(component.part, fields[:, 2])

    def parts(self, slot_set: SlotSet) -> Parts:
        vector = self.vectors[slot_set.column]
        rows = np.flatnonzero(_present(vector, len(vector.words)))
        words = vector.words[rows]
        if slot_set.shape is Shape.BITS:
            return bit_parts(words, rows, BITS[self.types[slot_set.column].kind])
        if slot_set.shape is Shape.FLOAT:
            values = word_to_float(np.ascontiguousarray(words))
            if slot_set.other >= 0:
                others = np.ascontiguousarray(self.vectors[slot_set.other].words[rows])
                return product_parts(values, word_to_float(others), rows)
            return square_parts(values, rows) if slot_set.squared else float_parts(values, rows)
        return numeric_parts(words, rows, self.dictionary, slot_set.squared)


def _present(vector: Vector, count: int) -> Mask:
    return np.ones(count, np.bool_) if vector.nulls is None else ~vector.nulls


def _integer_part(part: DiffColumn, words: Words) -> Words:
    match part:
        case DiffColumn.VALUE:
            return words
        case DiffColumn.TRUE:
            true: Words = (words != 0).astype(np.int64)
            return true
        case DiffColumn.LOW:
            return words & 0xFFFFFFFF
        case DiffColumn.HIGH:
            return words >> 32
    # |x| = a * 2**32 + b, so x * x = a*a * 2**64 + a*b * 2**33 + b*b; each product fits an unsigned word
    size = np.abs(words).view(np.uint64)
    low, high = size & np.uint64(0xFFFFFFFF), size >> np.uint64(32)
    match part:
        case DiffColumn.SQUARE_LOW | DiffColumn.SQUARE_HIGH:
            product = low * low
        case DiffColumn.CROSS_LOW | DiffColumn.CROSS_HIGH:
            product = low * high
        case _:
            product = high * high
    if part in (DiffColumn.SQUARE_LOW, DiffColumn.CROSS_LOW, DiffColumn.TOP_LOW):
        return (product & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return (product >> np.uint64(32)).astype(np.int64)
