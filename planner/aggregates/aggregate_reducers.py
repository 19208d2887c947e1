"""The aggregates' reducers as folds of a plan: their specification, before there is a dictionary."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

from ivm.graph import CountRows, FirstWords, Order, Reducer
from ivm.words import row_width
from planner.aggregates.accumulable import Accumulation
from planner.aggregates.percentile import Percentile, percentile
from planner.aggregates.reducers import (
    Accumulate,
    Basic,
    First,
    GroupLayout,
    basic_layout,
    ordered_layout,
    percentile_layout,
)  # fmt: skip
from planner.aggregates.table import AGGREGATES
from planner.expr.context import Context
from planner.expr.scalar import Aggregate, Scalar
from storage.dictionary import Dictionary


@cache
def _no_values() -> Dictionary:
    """An empty dictionary; a layout does not depend on the dictionary's contents."""
    return Dictionary(bytes(16))


@dataclass(frozen=True, slots=True)
class AccumulateFold:
    """All accumulable aggregates of a Reduce."""

    layout: Accumulation

    @property
    def out_width(self) -> int:
        return row_width(self.layout.schema)

    @property
    def can_fail(self) -> bool:
        return any(AGGREGATES[c.function].can_fail for c in self.layout.calls)

    def bind(self, context: Context) -> Reducer:
        return Accumulate(self.layout, context.dictionary)


@dataclass(frozen=True, slots=True)
class CountFold:
    """count(*) by key, without other aggregates: the sum of the group's diffs."""

    out_width: ClassVar[int] = 1
    can_fail: ClassVar[bool] = False

    def bind(self, context: Context) -> Reducer:
        return CountRows()


@dataclass(frozen=True, slots=True)
class _LaidOutFold(ABC):
    """An aggregate with its own arrangement, described by its layout."""

    aggregate: Aggregate

    @property
    @abstractmethod
    def layout(self) -> GroupLayout:
        """The layout, the same for every dictionary."""

    @property
    def exprs(self) -> tuple[Scalar, ...]:
        return self.layout.exprs

    @property
    def order(self) -> tuple[Order, ...]:
        return self.layout.order

    @property
    def empty_row(self) -> tuple[int, ...]:
        return self.layout.empty_row

    @property
    def out_width(self) -> int:
        return self.layout.reducer.out_width

    @property
    def can_fail(self) -> bool:
        return AGGREGATES[self.aggregate.function].can_fail


@dataclass(frozen=True, slots=True)
class OrderedFold(_LaidOutFold):
    """min, max or any_value."""

    @property
    def layout(self) -> GroupLayout:
        return ordered_layout(self.aggregate)

    def bind(self, context: Context) -> Reducer:
        layout = self.layout
        first = layout.reducer
        if isinstance(first, First) and len(layout.exprs) == 1:
            return FirstWords((0,), first.complement)
        if isinstance(first, First) and (len(layout.exprs), first.null, first.complement) == (2, 0, False):
            return FirstWords((1, 0))
        return first


@dataclass(frozen=True, slots=True)
class BasicFold(_LaidOutFold):
    """An aggregate of the whole group."""

    @property
    def layout(self) -> GroupLayout:
        return basic_layout(self.aggregate, _no_values())

    def bind(self, context: Context) -> Reducer:
        made = basic_layout(self.aggregate, context.dictionary).reducer
        assert isinstance(made, Basic)
        return replace(made, context=context)


@dataclass(frozen=True, slots=True)
class PercentileFold(_LaidOutFold):
    """percentile_cont or percentile_disc, with a fraction that reads no columns."""

    @property
    def layout(self) -> GroupLayout:
        aggregate = self.aggregate
        unbound = Percentile(aggregate.args[0].type, aggregate.type, False, None, None, None, _no_values())
        return percentile_layout(aggregate, unbound)

    def bind(self, context: Context) -> Reducer:
        return percentile(self.aggregate, context)


@dataclass(frozen=True, slots=True)
class ModeFold:
    """The first of a group's distinct values by ``words``: NULLs last, then by descending count, then by value."""

    words: tuple[tuple[Scalar, Order], ...]
    out_width: ClassVar[int] = 2
    can_fail: ClassVar[bool] = False

    @property
    def exprs(self) -> tuple[Scalar, ...]:
        return tuple(expr for expr, _ in self.words)

    @property
    def order(self) -> tuple[Order, ...]:
        return tuple(order for _, order in self.words)

    @property
    def empty_row(self) -> tuple[int, ...]:
        return (1,) + (0,) * (len(self.words) - 1)

    def bind(self, context: Context) -> Reducer:
        return First(len(self.words) - 1, 0, False)
