"""Table functions as row programs: each row, beside the rows that the function returns for it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ivm.graph import Mapped, Words
from ivm.rows import Vector, pack, unpack
from ivm.words import Schema
from planner import moves
from planner.context import Context
from planner.mfp import Stage, Work
from planner.scalar import Scalar
from planner.table_functions import TABLE_FUNCTIONS


@dataclass(frozen=True, slots=True)
class Expand:
    """[row | function's columns | ordinality], ``output`` their schema."""

    schema: Schema
    function: str
    args: tuple[Scalar, ...]
    columns: Schema
    ordinality: bool
    output: Schema
    computed: Stage = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "computed", Stage.of(self.args))

    @property
    def out_width(self) -> int:
        return moves.width(self.output)

    @property
    def diff_width(self) -> int:
        return 1

    @property
    def can_fail(self) -> bool:
        return True

    def run(self, rows: Words, context: Context) -> Mapped:
        work = Work(rows, self.schema, context)
        arguments = work.evaluate(self.computed)
        types = tuple(a.type for a in self.args)
        count = len(work.rows)
        expansion = TABLE_FUNCTIONS[self.function].implementation(arguments, types, count, context)
        if expansion.failures is not None:
            work.note(expansion.failures.rows, expansion.failures.errors)
        at = expansion.source
        own = [_taken(v, at) for v in unpack(work.rows, self.schema)]
        extra = [Vector(_numbers(at))] if self.ordinality else []
        out = pack([*own, *expansion.columns, *extra], self.output, len(at))
        source = at if work.source is None else work.source[at]
        errors, error_source = work.errors()
        return Mapped(out, source.astype(np.int64), None, errors, error_source)


def _taken(vector: Vector, at: Words) -> Vector:
    return Vector(vector.words[at], None if vector.nulls is None else vector.nulls[at])


def _numbers(source: Words) -> Words:
    """1, 2, … within each run of equal sources."""
    if not len(source):
        return np.zeros(0, np.int64)
    starts = np.flatnonzero(np.concatenate([[True], source[1:] != source[:-1]]))
    lengths = np.diff(np.concatenate([starts, [len(source)]]))
    return np.arange(len(source), dtype=np.int64) - np.repeat(starts, lengths) + 1
