"""Programs bound to their context: the row functions that the engine calls."""

from __future__ import annotations

from dataclasses import dataclass

from ivm.graph import Mapped
from ivm.rows import Words
from planner.expr.context import Context
from planner.physical.nodes import RowProgram
from planner.physical.row_formulas import formula_of


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A program with its context. Equal programs in one context are equal."""

    program: RowProgram
    context: Context

    @property
    def out_width(self) -> int:
        return self.program.out_width

    @property
    def diff_width(self) -> int:
        return self.program.diff_width

    def formula(self) -> Words | None:
        """See ``ivm.graph.RowFunction``."""
        return formula_of(self.program, self.context)

    def __call__(self, rows: Words, /) -> Mapped:
        return self.program.run(rows, self.context)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bound) and self.context is other.context and self.program == other.program

    def __hash__(self) -> int:
        return hash(self.program)
