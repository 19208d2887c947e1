"""Linear operators (project, flat map, concat, negate, consolidate), rows set apart, and sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self

import numpy as np

from ivm.abilities import has_formula
from ivm.graph import Apart, Consolidate, FlatMap, Gather, Negate, Project, RowFunction
from ivm.kernels.blocks import SAME
from ivm.kernels.memory import B_COUNT, address
from ivm.kernels.program import CONCAT, CONSOLIDATE, ERRORS, GIVEN, MAP, NEGATE, PROJECT
from ivm.operators.base import FailingOperator, UnaryOperator, check_gather, program, refill
from ivm.rows import Words
from ivm.runtime.context import FlowContext
from ivm.runtime.operator import Held, Operator, Scope
from ivm.runtime.program import Instruction, Program
from ivm.trace.batch import Block
from ivm.trace.shards import copied, gathered, mapped, sort_into, sorted_block
from ivm.workers import SORTED

ROOM: Final = 512
"""Initial room, in rows, of a map by a formula; for more, Python enlarges the block."""
AT_ONCE: Final = 1 << 17
"""The most rows passed to one call of a row function."""


class InputOperator(Operator):
    """An input fed from outside. ``out`` collects updates until the next step."""

    __slots__ = ("_given", "fed")

    def __init__(self, context: FlowContext, scope: Scope, width: int, diff_width: int = 1) -> None:
        super().__init__(context, scope, width, diff_width)
        self.fed = False
        self._given = False

    @property
    def primary(self) -> bool:
        return True

    def feed(self, rows: Words, times: Words | int, diffs: Words) -> None:
        """Appends updates, copied."""
        out = self.out
        start = out.n
        count = len(diffs)
        end = start + count
        if end > out.room:
            out.reserve(end)
        out.rows[start:end] = rows
        out.times[start:end] = times
        if diffs.ndim == 1:
            out.diffs[start:end, 0] = diffs
        else:
            out.diffs[start:end] = diffs
        out.n = out.d[0] = end
        self.fed = True

    def give(self, block: Block) -> None:
        """Like ``feed``, for all of the next step's updates: the block is neither copied nor written to."""
        assert not self.out.n, "nothing else is fed"
        self.out = block
        self._given = True
        self.scope.changed(self)
        self.fed = True
        self.wake()

    def clear(self) -> None:
        if self._given:
            self._given = False
            self.out = Block(self.width, self.diff_width)
            self.scope.changed(self)
        super().clear()

    def left_out(self) -> None:
        self.clear()

    def run(self, vector: int) -> bool:
        return self.out.n > 0

    def instruction(self, program: Program) -> Instruction | None:
        return Instruction(GIVEN)

    @property
    def told(self) -> bool:
        return True

    def emitted(self) -> None:
        self.clear()

    @property
    def starts(self) -> bool:
        return self.out.n > 0

    def contents(self, held: Held) -> Block:
        assert not self.fed, "an Input that was fed has an Arrange from which its rows can be recovered"
        return Block(self.width)


class SourceOperator(Operator):
    """Rows that hold at every time: delivered once, when the node is hydrated."""

    __slots__ = ("_diffs", "_rows")

    def __init__(self, context: FlowContext, scope: Scope, rows: Words, diffs: Words) -> None:
        super().__init__(context, scope, rows.shape[1])
        self._rows = rows
        self._diffs = diffs

    def block(self) -> Block:
        """The rows as updates at the dataflow's since."""
        times = np.full(len(self._rows), self.context.since, np.int64)
        return Block.of(self._rows, times, self._diffs)

    @property
    def starts(self) -> bool:
        return True

    def contents(self, held: Held) -> Block:
        return self.block()

    def words(self) -> list[Words]:
        return [*super().words(), self._rows]

    def run(self, vector: int) -> bool:
        self.out = self.block()
        return self.out.n > 0

    def clear(self) -> None:
        self.out = Block(self.width)

    def forget(self) -> None:
        super().forget()
        self._rows, self._diffs = np.empty((0, self.width), np.int64), np.empty((0, self.diff_width), np.int64)


class ProjectOperator(UnaryOperator):
    """Each row through a gather."""

    __slots__ = ("_program",)

    SPEC = Project
    LINEAR = True

    def __init__(self, context: FlowContext, scope: Scope, source: Operator, how: Gather) -> None:
        super().__init__(context, scope, len(how.words), source, source.diff_width)
        check_gather(how, source.width)
        self._program = program(how, source.width, 0)

    def moved(self, given: Block) -> Block:
        """Applies the gather to a block of the source's rows."""
        block = Block(self.width, self.diff_width, max(given.n, 1))
        block.n = gathered(given, block, self._program)
        return block

    def run(self, vector: int) -> bool:
        given = self.source.out
        out = self.out
        out.reserve(given.n)
        out.n = gathered(given, out, self._program)
        self.source.taken()
        return out.n > 0

    def instruction(self, program: Program) -> Instruction | None:
        how = self._program
        return Instruction(PROJECT, program.row(self.source), None, [address(how), len(how)])


class FlatMapOperator(FailingOperator):
    """Each row through a row function; ``errors`` holds the error rows of the pass.

    If the function has a formula, a kernel applies it, except to deltas in which a row fails.
    """

    __slots__ = ("_asked", "_formula", "_function", "_own")

    SPEC = FlatMap
    LINEAR = True

    def __init__(self, context: FlowContext, scope: Scope, source: Operator, function: RowFunction) -> None:
        assert source.diff_width == 1, "a weighed collection only feeds an arrangement for a Reduce"
        super().__init__(context, scope, function.out_width, source, function.diff_width)
        self._function = function
        self._formula: Words | None = None
        self._asked = False
        self._own = self.out

    def _ask(self) -> Words | None:
        """The function's formula, made on first use: an operator that runs once needs none."""
        if not self._asked:
            self._asked = True
            function = self._function
            self._formula = function.formula() if has_formula(function) else None
        return self._formula

    def run(self, vector: int) -> bool:
        given = self.source.out
        if not given.n:
            return False
        formula = self._ask() if self.ran else None
        self.ran = True
        made = -1 if formula is None else self._apply(given, formula)
        return self._evaluate(given) if made < 0 else made > 0

    def run_called(self, vector: int) -> bool:
        formula = self._formula
        if formula is None:
            return self.run(vector)
        given = self.source.out
        made = self._apply(given, formula)
        if made >= 0:
            return made > 0
        emits = self._evaluate(given)
        found, self.out = self.out, self._own
        refill(self.out, *found.arrays())
        return emits

    def _apply(self, given: Block, formula: Words) -> int:
        """Applies the formula. Returns the number of output rows, -1 if a row fails."""
        out = self.out = self._own
        out.reserve(given.n)
        made = mapped(given, out, formula)
        if made > 0:
            out.n = made
        return made

    def _evaluate(self, given: Block) -> bool:
        """Calls the function on at most ``AT_ONCE`` rows at a time, since its intermediate arrays are large.

        Weighed rows are consolidated after each call as long as that leaves less than half of them.
        """
        rows, times, diffs = given.arrays()
        parts: list[Block] = []
        wrong: list[tuple[Words, Words, Words]] = []
        adding_up = self.diff_width > 1 and given.n > AT_ONCE
        for start in range(0, given.n, AT_ONCE):
            chosen = slice(start, start + AT_ONCE)
            part = self._part(rows[chosen], times[chosen], diffs[chosen], wrong)
            if adding_up:
                made, part = part.n, sorted_block(part)
                adding_up = part.n < made // 2
            parts.append(part)
        self.out = parts[0] if len(parts) == 1 else _joined(parts)
        if wrong:
            refill(self.errors, *(np.concatenate(arrays) for arrays in zip(*wrong, strict=True)))
        return bool(wrong) or self.out.n > 0

    def _part(self, rows: Words, times: Words, diffs: Words, wrong: list[tuple[Words, Words, Words]]) -> Block:
        """Applies the function to these rows. The errors of rows that fail are appended to ``wrong``."""
        mapped = self._function(rows)
        origin = mapped.source
        assert mapped.rows.shape[1] == self.width
        assert origin is not None or len(mapped.rows) == len(rows)
        if mapped.errors is not None and len(mapped.errors):
            assert mapped.error_source is not None
            failed = mapped.error_source
            wrong.append((mapped.errors.reshape(-1, 1), times[failed], diffs[failed]))
        if origin is not None:
            times, diffs = times[origin], diffs[origin]
        else:
            times, diffs = times.copy(), diffs.copy()
        if mapped.weights is not None:
            diffs = diffs * mapped.weights.reshape(len(mapped.rows), self.diff_width)
        else:
            assert self.diff_width == 1
        return Block.of(mapped.rows, times, diffs)

    def instruction(self, program: Program) -> Instruction | None:
        formula = self._ask()
        if formula is None:
            return None
        self._own.reserve(ROOM)
        row = [address(formula), len(formula), address(self.errors.d)]
        return Instruction(MAP, program.row(self.source), None, row)

    def clear(self) -> None:
        self.out = self._own
        super().clear()


def _joined(parts: list[Block]) -> Block:
    """Concatenates the parts, which are consumed."""
    out = Block(parts[0].width, parts[0].diff_width, max(sum(part.n for part in parts), 1))
    parts.reverse()
    while parts:
        part = parts.pop()
        start, out.n = out.n, out.n + part.n
        out.rows[start : out.n], out.times[start : out.n], out.diffs[start : out.n] = part.arrays()
    out.d[B_COUNT] = out.n
    return out


class ErrorsOperator(UnaryOperator):
    """The error rows of a flat map or a reduce."""

    __slots__ = ()

    source: FailingOperator

    def __init__(self, context: FlowContext, scope: Scope, source: FailingOperator) -> None:
        super().__init__(context, scope, 1, source)

    def contents(self, held: Held) -> Block:
        twin = self.twin()
        twin.source = self.source.rerun(held)
        twin.run(0)
        return twin.out

    def run(self, vector: int) -> bool:
        given = self.source.errors
        out = self.out
        out.reserve(given.n)
        out.n = copied(given, out, 1, SAME, 0, 0)
        return out.n > 0

    def instruction(self, program: Program) -> Instruction | None:
        return Instruction(ERRORS, own=self.source.errors)


class ConcatOperator(Operator):
    """The sum of collections. If only one has updates, its block is passed on as it is."""

    __slots__ = ("_own", "sources")

    LINEAR = True

    def __init__(self, context: FlowContext, scope: Scope, sources: list[Operator]) -> None:
        super().__init__(context, scope, sources[0].width, sources[0].diff_width)
        assert all(s.width == self.width and s.diff_width == self.diff_width for s in sources)
        self.sources = sources
        self._own = self.out

    def inputs(self) -> list[Operator]:
        return self.sources

    def rebind(self, find: Callable[[Operator], Operator]) -> None:
        self.sources = [find(source) for source in self.sources]

    def twin(self) -> Self:
        twin = super().twin()
        twin._own = twin.out
        return twin

    def run(self, vector: int) -> bool:
        given = [source for source in self.sources if source.out.n]
        if not given:
            return False
        if len(given) == 1:
            self.out = given[0].out
            return True
        return self._copy(given)

    def run_called(self, vector: int) -> bool:
        return self._copy(self.sources)

    def _copy(self, sources: list[Operator]) -> bool:
        out = self.out = self._own
        out.reserve(sum(source.out.n for source in sources))
        for source in sources:
            out.n = copied(source.out, out, 1, SAME, 0, 0)
            source.taken()
        return out.n > 0

    def taken(self) -> None:
        if self.out is self._own:
            super().taken()

    def instruction(self, program: Program) -> Instruction | None:
        return Instruction(CONCAT, words=program.listed(self.sources))

    def clear(self) -> None:
        self.out = self._own
        self.out.clear()


class NegateOperator(UnaryOperator):
    """The collection with every diff negated."""

    __slots__ = ()

    SPEC = Negate
    LINEAR = True

    def __init__(self, context: FlowContext, scope: Scope, source: Operator) -> None:
        super().__init__(context, scope, source.width, source, source.diff_width)

    def run(self, vector: int) -> bool:
        given = self.source.out
        out = self.out
        out.reserve(given.n)
        out.n = copied(given, out, -1, SAME, 0, 0)
        return out.n > 0

    def instruction(self, program: Program) -> Instruction | None:
        return Instruction(NEGATE, program.row(self.source))


class ConsolidateOperator(UnaryOperator):
    """Equal updates of one pass added up."""

    __slots__ = ()

    SPEC = Consolidate
    LINEAR = True

    def __init__(self, context: FlowContext, scope: Scope, source: Operator) -> None:
        super().__init__(context, scope, source.width, source, source.diff_width)

    def run(self, vector: int) -> bool:
        given = self.source.out
        out = self.out
        out.reserve(given.n)
        out.n = sort_into(given, out, 0)
        self.source.taken()
        return out.n > 0

    def instruction(self, program: Program) -> Instruction | None:
        return Instruction(CONSOLIDATE, program.row(self.source), shared=SORTED)


class ApartOperator(UnaryOperator):
    """Equal rows set apart by a number. Rows of a negative diff keep it, for their reader to find."""

    __slots__ = ("_made",)

    SPEC = Apart

    def __init__(self, context: FlowContext, scope: Scope, source: Operator, name: int) -> None:
        super().__init__(context, scope, source.width + 1, source)
        self._made = 0

    def run(self, vector: int) -> bool:
        rows, times, diffs = self.source.out.arrays()
        whole, source = set_apart(rows, diffs[:, 0], self._made)
        self._made += len(source)
        refill(self.out, whole, times[source], np.sign(diffs[source]))
        return self.out.n > 0


def set_apart(rows: Words, diffs: Words, first: int = 0) -> tuple[Words, Words]:
    """(each row as often as its diff says, numbered in its last word from ``first`` on; the source index of each)."""
    source = np.repeat(np.arange(len(rows)), np.abs(diffs))
    numbers = np.arange(first, first + len(source)).reshape(-1, 1)
    return np.concatenate([rows[source], numbers], axis=1), source
