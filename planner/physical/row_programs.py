"""Programs over rows: filter, compute, gather. Each is a pure function run by ``planner.expr.evaluate.evaluator``.

A program is bound to a ``Context`` (``planner.render.programs``) when a plan is rendered. Only columns that an
expression reads become vectors; columns that are passed on are moved as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from ivm.errors import SqlError
from ivm.graph import Gather, Mapped
from ivm.rows import Vector, Words, pack, unpack
from ivm.words import Schema
from planner import gathers
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluate
from planner.expr.row_errors import error_words
from planner.expr.scalar import Column, Scalar
from planner.logical.fallibility import can_raise
from planner.logical.traversal import column_types, columns_of
from storage.types.text import format_text

SHOWN_COLUMNS: Final = 8
"""The most columns of a failed row that an error shows."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Expressions that are evaluated together. The evaluator finds their compiled form by the tuple's identity."""

    exprs: tuple[Scalar, ...]
    used: frozenset[int]
    can_fail: bool

    @staticmethod
    def of(exprs: tuple[Scalar, ...]) -> Stage:
        """The stage of some expressions."""
        used = frozenset().union(*(columns_of(e) for e in exprs)) if exprs else frozenset()
        return Stage(exprs, used, any(can_raise(e) for e in exprs))


@dataclass(frozen=True, slots=True)
class MapFilter:
    """Keeps the rows for which every predicate is true, in order, and computes a column for each expression.

    A predicate is evaluated only on the rows that all earlier ones keep, and expressions on the rows that all keep.
    """

    schema: Schema
    predicates: tuple[Scalar, ...]
    exprs: tuple[Scalar, ...] | None = None
    """None: the rows as they are."""
    tests: tuple[Stage, ...] = field(init=False, compare=False, repr=False)
    computed: Stage = field(init=False, compare=False, repr=False)
    output: Schema = field(init=False, compare=False, repr=False)
    diff_width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        computed = tuple(e for e in self.exprs or () if not isinstance(e, Column))
        object.__setattr__(self, "tests", tuple(Stage.of((p,)) for p in self.predicates))
        object.__setattr__(self, "computed", Stage.of(computed))
        object.__setattr__(self, "output", self.schema if self.exprs is None else column_types(self.exprs))

    def __hash__(self) -> int:
        """Without the types of the columns, which may be many: programs mostly differ in their expressions too."""
        return hash((len(self.schema), self.predicates, self.exprs))

    @property
    def out_width(self) -> int:
        return gathers.width(self.output)

    @property
    def can_fail(self) -> bool:
        return self.computed.can_fail or any(t.can_fail for t in self.tests)

    def run(self, rows: Words, context: Context) -> Mapped:
        work = RunState(rows, self.schema, context)
        for test in self.tests:
            work.keep(test)
        out = work.rows if self.exprs is None else work.project(self.exprs, self.computed, self.output)
        errors, source = work.errors()
        return Mapped(out, work.source, None, errors, source)


class RunState:
    """The state of a program's run: the rows still in, their source rows, and the failures so far."""

    def __init__(self, rows: Words, schema: Schema, context: Context) -> None:
        self.rows = rows
        self.source: Words | None = None
        self.schema = schema
        self.context = context
        self._all = rows
        self._failed: list[int] = []
        self._errors: list[SqlError] = []

    def vectors(self, used: frozenset[int]) -> list[Vector]:
        """The used columns as vectors; the others are placeholders."""
        return unpack_used(self.rows, self.schema, used)

    def evaluate(self, stage: Stage) -> list[Vector]:
        """Evaluates expressions on the rows still in. Rows that fail are removed."""
        if not stage.exprs:
            return []
        results, failures = evaluate(stage.exprs, self.vectors(stage.used), len(self.rows), self.context)
        if failures is None or not len(failures.rows):
            return results
        self.fail(failures.rows, failures.errors)
        keep = np.ones(len(self.rows), np.bool_)
        keep[failures.rows] = False
        self.take(np.flatnonzero(keep))
        return [Vector(r.words[keep], None if r.nulls is None else r.nulls[keep]) for r in results]

    def keep(self, test: Stage) -> None:
        """Keeps only the rows for which the predicate is true."""
        if not len(self.rows):
            return
        (result,) = self.evaluate(test)
        mask = result.words != 0
        if result.nulls is not None:
            mask = mask & ~result.nulls
        if not mask.all():
            self.take(np.flatnonzero(mask))

    def take(self, indexes: Words) -> None:
        """Keeps only these of the rows still in."""
        self.rows = self.rows[indexes]
        self.source = indexes if self.source is None else self.source[indexes]

    def project(self, exprs: tuple[Scalar, ...], computed: Stage, output: Schema) -> Words:
        """The rows still in, as rows of the expressions."""
        if not exprs:
            return np.zeros((len(self.rows), 1), np.int64)
        results = iter(self.evaluate(computed))
        passed = self.vectors(frozenset(e.index for e in exprs if isinstance(e, Column)))
        vectors = [passed[e.index] if isinstance(e, Column) else next(results) for e in exprs]
        return pack(vectors, output, len(self.rows))

    def errors(self) -> tuple[Words | None, Words | None]:
        """The error rows so far and the input row of each."""
        if not self._failed:
            return None, None
        texts = [row_text(self._all[i : i + 1], self.schema, self.context) for i in self._failed]
        words = error_words(self._errors, texts, self.context.dictionary)
        return words, np.array(self._failed, np.int64)

    def fail(self, rows: Words, errors: Sequence[SqlError]) -> None:
        """Records failures of some of the rows still in."""
        origin = rows if self.source is None else self.source[rows]
        self._failed += [int(i) for i in origin]
        self._errors += errors


def unpack_used(rows: Words, schema: Schema, used: frozenset[int]) -> list[Vector]:
    """``ivm.rows.unpack`` for some columns; the others are words of another, without null bits. ``used`` may have those
    that the caller appends."""
    if len(used) * 2 >= len(schema):
        return unpack(rows, schema)
    width = len(schema)
    vectors = [Vector(rows[:, 0], None)] * width
    for i in used:
        if i >= width:
            continue
        nulls = None
        if schema[i].nullable:
            nulls = (rows[:, width + i // 64] >> np.int64(i % 64)) & 1 != 0
            if not nulls.any():
                nulls = None
        vectors[i] = Vector(rows[:, i], nulls)
    return vectors


def row_text(row: Words, schema: Schema, context: Context) -> str:
    """A row as text, at most ``SHOWN_COLUMNS`` columns of it."""
    parts = []
    for column, vector in list(zip(schema, unpack(row, schema), strict=True))[:SHOWN_COLUMNS]:
        (text,) = format_text(column.type, vector, context.dictionary)
        parts.append("null" if text is None else text.decode())
    return f"({', '.join(parts)}{', ...' if len(schema) > SHOWN_COLUMNS else ''})"


@dataclass(frozen=True, slots=True)
class Pad:
    """Each row moved, then with these null bits (word, bit) set: the NULL padding of outer joins."""

    gather: Gather
    nulls: tuple[tuple[int, int], ...]
    diff_width: ClassVar[int] = 1
    can_fail: ClassVar[bool] = False

    @property
    def out_width(self) -> int:
        return len(self.gather.words)

    def run(self, rows: Words, context: Context) -> Mapped:
        out, source = gathers.apply(self.gather, rows)
        if out is rows:
            out = out.copy()
        for word, bit in self.nulls:
            out[:, word] |= np.int64(-(2**63)) if bit == 63 else np.int64(1 << bit)
        return Mapped(out, source)
