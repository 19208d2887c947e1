"""Programs whose output is arranged: keys, followed by the words that a group or an order needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, assert_never

import numpy as np

from ivm.graph import Mapped
from ivm.rows import Words, pack
from ivm.words import INT8, ColumnType, Schema, null_words
from planner import gathers
from planner.aggregates.accumulable import Accumulation
from planner.expr.context import Context
from planner.expr.scalar import Scalar
from planner.logical.nodes import Numbering
from planner.logical.traversal import column_types
from planner.physical.row_programs import RunState, Stage


@dataclass(frozen=True, slots=True)
class Keyed:
    """[a row of the keys | one word for each of ``words``, 0 if NULL | the row itself if ``rows``]."""

    schema: Schema
    keys: tuple[Scalar, ...]
    words: tuple[Scalar, ...]
    rows: bool = False
    computed: Stage = field(init=False, compare=False, repr=False)
    diff_width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "computed", Stage.of((*self.keys, *self.words)))

    @property
    def key_width(self) -> int:
        return gathers.width(column_types(self.keys))

    @property
    def out_width(self) -> int:
        return self.key_width + len(self.words) + (gathers.width(self.schema) if self.rows else 0)

    @property
    def can_fail(self) -> bool:
        return self.computed.can_fail

    def run(self, rows: Words, context: Context) -> Mapped:
        work = RunState(rows, self.schema, context)
        vectors = work.evaluate(self.computed)
        out = np.zeros((len(work.rows), self.out_width), np.int64)
        key_width = self.key_width
        if self.keys:
            out[:, :key_width] = pack(vectors[: len(self.keys)], column_types(self.keys), len(work.rows))
        for i, vector in enumerate(vectors[len(self.keys) :]):
            words = vector.words
            if vector.nulls is not None:
                words = np.where(vector.nulls, 0, words)
            out[:, key_width + i] = words
        if self.rows:
            out[:, key_width + len(self.words) :] = work.rows
        errors, source = work.errors()
        return Mapped(out, work.source, None, errors, source)


@dataclass(frozen=True, slots=True)
class Weigh:
    """[a row of the keys | slot if the layout has slots], with diffs: what the row adds to each aggregate."""

    schema: Schema
    keys: tuple[Scalar, ...]
    args: tuple[Scalar, ...]
    layout: Accumulation = field(compare=False)
    computed: Stage = field(init=False, compare=False, repr=False)
    added: tuple[object, ...] = field(init=False, repr=False)
    """The parts of the layout that the program depends on."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "computed", Stage.of((*self.args, *self.keys)))
        object.__setattr__(self, "added", (self.layout.components, self.layout.slot_sets))

    @property
    def key_width(self) -> int:
        return gathers.width(column_types(self.keys))

    @property
    def out_width(self) -> int:
        return self.key_width + self.layout.val_width

    @property
    def diff_width(self) -> int:
        return self.layout.diff_width

    @property
    def can_fail(self) -> bool:
        return self.computed.can_fail

    def run(self, rows: Words, context: Context) -> Mapped:
        work = RunState(rows, self.schema, context)
        vectors = work.evaluate(self.computed)
        count = len(work.rows)
        expanded = self.layout.expand(vectors[: len(self.args)], count, context.dictionary)
        out = np.zeros((count, self.out_width), np.int64)
        if self.keys:
            out[:, : self.key_width] = pack(vectors[len(self.args) :], column_types(self.keys), count)
        source = work.source
        if expanded.source is not None:
            out = out[expanded.source]
            source = expanded.source if source is None else source[expanded.source]
        if self.layout.val_width:
            out[:, self.key_width] = expanded.slots
        errors, error_source = work.errors()
        return Mapped(out, source, expanded.weights, errors, error_source)


@dataclass(frozen=True, slots=True)
class Weight:
    """Each row unchanged, with constant diffs."""

    out_width: int
    weights: tuple[int, ...]
    can_fail: ClassVar[bool] = False

    @property
    def diff_width(self) -> int:
        return len(self.weights)

    def run(self, rows: Words, context: Context) -> Mapped:
        return Mapped(rows, None, np.tile(np.array(self.weights, np.int64), (len(rows), 1)))


@dataclass(frozen=True, slots=True)
class Repeat:
    """Rows [key | count | row] as ``row``, count times: the count becomes the diff."""

    skip: int
    out_width: int
    diff_width: ClassVar[int] = 1
    can_fail: ClassVar[bool] = False

    def run(self, rows: Words, context: Context) -> Mapped:
        start = self.skip + 1
        return Mapped(
            np.ascontiguousarray(rows[:, start : start + self.out_width]), None, rows[:, self.skip : start].copy()
        )


@dataclass(frozen=True, slots=True)
class Number:
    """Numbers rows: [key | count | rows before | rows before its peers | groups before | row] → [row with numbers].

    Numbers count from 1. ROW_NUMBER needs ``count`` output rows; otherwise the count becomes the diff.
    """

    skip: int
    schema: Schema
    numbers: tuple[Numbering, ...]
    diff_width: ClassVar[int] = 1
    can_fail: ClassVar[bool] = False

    @property
    def wide(self) -> Schema:
        return (*self.schema, *(ColumnType(INT8, False) for _ in self.numbers))

    @property
    def out_width(self) -> int:
        return gathers.width(self.wide)

    def run(self, rows: Words, context: Context) -> Mapped:
        counts, width = rows[:, self.skip], len(self.schema)
        each = Numbering.ROW_NUMBER in self.numbers
        source = np.repeat(np.arange(len(rows)), counts if each else 1)
        given = rows[source, self.skip + 1 :]
        nth = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts) if each else 0
        out = np.zeros((len(source), self.out_width), np.int64)
        out[:, :width] = given[:, 3 : 3 + width]
        for i, number in enumerate(self.numbers):
            match number:
                case Numbering.ROW_NUMBER:
                    out[:, width + i] = given[:, 0] + nth + 1
                case Numbering.RANK:
                    out[:, width + i] = given[:, 1] + 1
                case Numbering.DENSE_RANK:
                    out[:, width + i] = given[:, 2] + 1
                case _:
                    assert_never(number)
        nulls = null_words(self.schema)
        out[:, width + len(self.numbers) : width + len(self.numbers) + nulls] = given[:, 3 + width : 3 + width + nulls]
        return Mapped(out, source, None if each else counts.reshape(-1, 1).copy())
