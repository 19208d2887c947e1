"""Reduce outside of loops: each key's group through a Reducer, called once a pass over all touched keys."""

from __future__ import annotations

from functools import partial

from ivm.abilities import may_be_slow, picks, reduces_by_formula
from ivm.graph import Picks, Reducer, Window
from ivm.kernels.accumulate import accumulate_total
from ivm.kernels.codes import WINDOW_DIFFS
from ivm.kernels.memory import address
from ivm.kernels.program import ACCUMULATE_TOTAL
from ivm.kernels.reduce import counts_total, segments_total
from ivm.kernels.windows import changes_total, windows_total
from ivm.operators.base import FailingOperator, KeyedOperator, refill
from ivm.operators.groups import Groups
from ivm.operators.picking import EVERYTHING, Picking
from ivm.rows import Words
from ivm.runtime.context import FlowContext, Mode
from ivm.runtime.operator import Operator, Scope
from ivm.runtime.program import Instruction, Program
from ivm.trace.batch import Block


class ReducingOperator(KeyedOperator, FailingOperator):
    """Output [key | out vals], itself an arrangement; ``errors`` holds the error rows of the pass."""

    __slots__ = ("asked", "reducer")

    def __init__(self, context: FlowContext, scope: Scope, source: Operator, reducer: Reducer) -> None:
        super().__init__(context, scope, source.key_width + reducer.out_width, source)
        self.key_width = source.key_width
        self.reducer = reducer.watched(self._look) if may_be_slow(reducer) else reducer
        self.asked = source.width != source.key_width or not reduces_by_formula(reducer)
        """Whether ``ask`` has nothing new to say."""

    def _look(self) -> None:
        """Raises 57014 if a query or hydration was cancelled; a maintained step goes on."""
        if self.context.mode is not Mode.MAINTAINED:
            self.context.look()

    def ask(self) -> Words | None:
        """The reducer's formula, once: an operator that runs once needs none."""
        if self.asked:
            return None
        self.asked = True
        return self.reducer.formula() if reduces_by_formula(self.reducer) else None

    def show_errors(self, keyed: Block) -> None:
        """Puts error rows, without their keys, into ``errors``."""
        rows, times, diffs = keyed.arrays()
        refill(self.errors, rows[:, -1:], times, diffs)


class ReduceOperator(ReducingOperator):
    """The earlier output is recomputed from the input's trace, so no output has to be kept.

    Cost of a pass: the groups of the touched keys; with a reducer that has a ``limit`` or picks, a search in each of
    them and the rows that it wants.
    """

    __slots__ = ("_formula", "_groups", "_limit", "_picking", "_picks", "_unsorted")

    def __init__(self, context: FlowContext, scope: Scope, source: Operator, reducer: Reducer) -> None:
        super().__init__(context, scope, source, reducer)
        self._formula: Words | None = None
        self._limit = -1 if reducer.limit is None else reducer.limit
        self._picks = picks(reducer)
        self._picking = self._picking_of(reducer)
        if self._picks and self._picking is not None:
            self._limit = self._picking.limit
        diff_width = source.diff_width if self._picking is None else WINDOW_DIFFS
        self._groups = Groups(self.key_width, source.width - source.key_width, diff_width)
        self._unsorted = Block(self.width)

    def _picking_of(self, reducer: Reducer) -> Picking | None:
        if picks(reducer):
            return Picking.of(reducer.picks)
        if self._limit > 0 and self.source.diff_width == 1 and self.source.width > self.source.key_width:
            return Picking.of(Picks((Window(last=self._limit),)))
        return None

    def _sums(self) -> Words | None:
        """The formula of the groups' sums, if a kernel can do the pass."""
        if self.ran and not self.asked:
            self._formula = self.ask()
        return self._formula if self.ran else None

    def instruction(self, program: Program) -> Instruction | None:
        formula = self._sums()
        if formula is None:
            return None
        words = [*self.traces(), 0, 0, 0, address(formula), len(formula), address(self.errors.d)]
        return Instruction(ACCUMULATE_TOTAL, program.row(self.source), None, words)

    def run(self, vector: int) -> bool:
        delta = self.source.out
        if delta.n and not self._accumulated(delta):
            self._reduce(delta)
        if not self.ran and not self.asked:
            self.scope.changed(self)  # from now on it has an instruction
        self.ran = True
        self.keep()
        return self.out.n > 0 or self.errors.n > 0

    def _accumulated(self, delta: Block) -> bool:
        """Does the whole pass in one kernel. False if none can, or a group fails."""
        formula = self._sums()
        if formula is None:
            return False
        out, context = self.out, self.context
        out.reserve(2 * delta.n)
        done = accumulate_total(self.read.desc, delta.d, context.nothing, out.d, formula, False, context.stats)
        out.sync()
        return bool(done)

    def _reduce(self, delta: Block) -> None:
        """Calls the reducer."""
        groups = self._groups
        groups.reserve(2 * delta.n)
        self._gather(delta)
        if not groups.heads.sync():
            return
        full, keys, offsets, vals, diffs = groups.found()
        if self._picking is not None and not self._picks:
            diffs = diffs[:, :1]  # found by rank, but the reducer expects the start of a group
        reduced = self.reducer(keys, offsets, vals, diffs)
        order = 0 if self.spine is None else self.spine.order
        groups.differences(full[reduced.segment], reduced.vals, self._unsorted, self.out, order)
        if reduced.errors is not None and len(reduced.errors):
            assert reduced.error_segment is not None
            keyed = Block(self.key_width + 1)
            groups.differences(full[reduced.error_segment], reduced.errors, Block(keyed.width), keyed, 0)
            self.show_errors(keyed)
        groups.clear()

    def _gather(self, delta: Block) -> None:
        trace, picking, fresh = self.read, self._picking, not self.ran
        given = (trace.desc, delta.d, self.context.nothing)
        gather = partial(self._groups.gather, given, self.context.stats)
        if picking is not None and not trace.ranked:
            trace.rank()
        if self.source.width == self.source.key_width and self._limit < 0:
            gather(counts_total, fresh)
        elif picking is None:
            gather(segments_total, self._limit, fresh)
        elif fresh or not picking.by_changes(delta.n):
            gather(windows_total, picking.windows, picking.fractions, picking.picks.flagged, fresh)
        else:
            last = picking.only.last
            gather(changes_total, picking.only.first, EVERYTHING if last is None else last)
