"""Reduce inside loops: each key's group through a Reducer, or a kernel, at all times at which it may have changed."""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.abilities import picks
from ivm.graph import FirstWords, Reducer
from ivm.kernels.interesting import FIRSTS, SEGMENTS, SUMS, reduce_partial
from ivm.kernels.memory import address
from ivm.kernels.program import ACCUMULATE, FIRST
from ivm.operators.correcting import CorrectingOperator, Due, Tactic
from ivm.operators.groups import Groups
from ivm.operators.picking import Picking, pick
from ivm.operators.reduce import ReducingOperator
from ivm.runtime.context import FlowContext
from ivm.runtime.operator import Later, Operator, Scope
from ivm.runtime.program import Instruction, Program
from ivm.trace.batch import Block
from ivm.trace.spine import Spine

ROOM: Final = 512
"""Keys for which a program's row has room from the start; with less room it leaves the work to Python."""
DEPTH: Final = 4
"""The depth of loops up to which kernels find first values and sums."""


class LoopReduceOperator(CorrectingOperator, ReducingOperator):
    """Corrections are taken against the output's own trace, and for errors against one of their own.

    Cost of a pass: the groups of the touched keys, with a ``limit`` their first rows.
    """

    __slots__ = ("_error_spine", "_groups", "_limit", "_picks", "_tactic", "due")

    def __init__(self, context: FlowContext, scope: Scope, source: Operator, reducer: Reducer) -> None:
        super().__init__(context, scope, source, reducer)
        self._picks = reducer.picks if picks(reducer) else None
        self._limit = -1 if reducer.limit is None else reducer.limit
        if self._picks is not None:
            self._limit = Picking.of(self._picks).limit
        self.later, self.due = Later(self, self.key_width), Due(self.key_width)
        self.arrange()
        self._error_spine = self.spine_of(self.key_width + 1)
        self._groups = Groups(self.key_width, source.width - source.key_width, source.diff_width)
        self._tactic = self._first(reducer)
        """What a kernel can do, except where an ordinal is fed again or a group fails. None: the reducer is called."""

    def _first(self, reducer: Reducer) -> Tactic | None:
        source = self.source
        if self.scope.depth > DEPTH or source.diff_width != 1 or not isinstance(reducer, FirstWords):
            return None
        assert sorted(reducer.words) == list(range(source.width - source.key_width))
        return Tactic(FIRSTS, np.array(reducer.words, np.int64), int(reducer.complement), 1 << self.scope.depth)

    def spines(self) -> list[Spine]:
        """The output's spine and the errors'."""
        return [*super().spines(), self._error_spine]

    def instruction(self, program: Program) -> Instruction | None:
        if not self.asked and self.scope.depth <= DEPTH:
            formula = self.ask()
            self._tactic = None if formula is None else Tactic(SUMS, formula, 0, 1 << self.scope.depth)
        tactic = self._tactic
        if tactic is None:
            return None
        for block in (self.out, self.later.block):
            block.reserve(2 * tactic.emitted * ROOM)
        for block in (self.due.found, self.due.ordered):
            block.reserve(ROOM)
        kind, last = (FIRST, tactic.option) if tactic.number == FIRSTS else (ACCUMULATE, address(self.errors.d))
        words = [*self.row_words(0), address(tactic.given), len(tactic.given), last]
        return Instruction(kind, program.row(self.source), self.later.block, words)

    def run(self, vector: int) -> bool:
        return super().run(vector) or self.errors.n > 0

    def correct(self, delta: Block, due: Block, vector: int) -> None:
        if self._tactic is None or self.context.again or not self.emit(self._tactic, delta, due, vector):
            self._gather(delta, due, vector)
            self._reduce()

    def _gather(self, delta: Block, due: Block, vector: int) -> None:
        """Gathers the groups at all times of the pass at which they may have changed."""
        groups, later, context = self._groups, self.later.block, self.context
        assert self.spine is not None
        groups.reserve(delta.n + due.n)
        later.reserve(later.n + delta.n + due.n + 8)
        given = (SEGMENTS, self.read.desc, delta.d, due.d, self.spine.desc, context.nothing)
        while reduce_partial(
            *given, groups.heads.d, later.d, groups.offsets.d, groups.vals.d, self._error_spine.desc, self._limit,
            vector, context.again, context.stats,
        ) < 0:  # fmt: skip
            groups.grow()
            later.grow()
        later.sync()

    def _reduce(self) -> None:
        """Calls the reducer, and keeps what its results change."""
        groups, spine, nothing = self._groups, self.spine, self.context.nothing
        assert spine is not None
        full, keys, offsets, vals, diffs = groups.found()
        if self._picks is not None:
            offsets, vals, diffs = pick(self._picks, offsets, vals, diffs)
            shown = np.flatnonzero(offsets[1:] > offsets[:-1])
            keys, full, offsets = keys[shown], full[shown], np.append(offsets[:-1][shown], offsets[-1])
        reduced = self.reducer(keys, offsets, vals, diffs)
        groups.corrections(full[reduced.segment], reduced.vals, spine, nothing, self.out)
        errors, segment = reduced.errors, reduced.error_segment
        if errors is None or segment is None:
            errors, segment = np.empty((0, 1), np.int64), np.empty(0, np.int64)
        keyed = Block(self.key_width + 1)
        groups.corrections(full[segment], errors, self._error_spine, nothing, keyed)
        if keyed.n:
            self._error_spine.insert(keyed)
            self.show_errors(keyed)
        groups.clear()
        self.keep()
