"""Reduce: each key's group through a Reducer, called once a pass over all segments of all touched keys."""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.graph import (
    CountRows,
    FirstWords,
    FormulaReducer,
    PickingReducer,
    Picks,
    Reduced,
    Reducer,
    WatchedReducer,
    Window,
)  # fmt: skip
from ivm.kernels.accumulate import FAILED, accumulate_total
from ivm.kernels.blocks import SAME
from ivm.kernels.codes import WINDOW_DIFFS
from ivm.kernels.interesting import FIRSTS, SEGMENTS, SUMS, reduce_partial
from ivm.kernels.memory import B_COUNT, address
from ivm.kernels.program import ACCUMULATE, ACCUMULATE_TOTAL, CALL, COUNT, FIRST
from ivm.kernels.reduce import (
    count_differences,
    counts_total,
    differences_partial,
    differences_total,
    segments_total,
)  # fmt: skip
from ivm.kernels.windows import changes_total, windows_total
from ivm.operators.base import FailingOperator, refill
from ivm.operators.picking import EVERYTHING, Picking, pick
from ivm.rows import Words
from ivm.runtime.context import FlowContext, Mode
from ivm.runtime.operator import Later, Operator, Scope
from ivm.runtime.program import Instruction, Program
from ivm.trace.batch import Block
from ivm.trace.shards import copied, in_parts, put_together, sort_into, sorted_block
from ivm.trace.spine import Spine
from ivm.workers import SEARCHED, parts

ROOM: Final = 512
FIRST_DEPTH: Final = 4
"""The depth of loops up to which first values need no call to Python."""


class ReduceOperator(FailingOperator):
    """Output [key | out vals], itself an arrangement; ``errors`` holds the error rows of the pass.

    Outside loops the earlier output is recomputed from the input's trace, so no output has to be kept. In loops
    corrections are taken against the output's own trace. Cost of a pass: the groups of the touched keys; outside of
    loops, with a reducer that has a ``limit`` or picks, a search in each of them and the rows that it wants, inside of
    loops with a ``limit`` the first rows.
    """

    __slots__ = (
        "_asked", "_counts", "_error_spine", "_first", "_formula", "_heads", "_limit", "_offsets", "_ordered", "_owed",
        "_picking", "_picks", "_reducer", "_unsorted", "_vals", "keyed_errors",
    )  # fmt: skip

    ARRANGED = True
    later: Later

    def __init__(self, context: FlowContext, scope: Scope, source: Operator, reducer: Reducer) -> None:
        super().__init__(context, scope, source.key_width + reducer.out_width, source)
        self.key_width = source.key_width
        self._reducer = reducer.watched(self._look) if isinstance(reducer, WatchedReducer) else reducer
        self._limit = -1 if reducer.limit is None else reducer.limit
        self._picks = reducer.picks if isinstance(reducer, PickingReducer) else None
        self._picking = self._pickings(reducer)
        plain = source.width == source.key_width and source.diff_width == 1 and not scope.depth
        self._counts = plain and isinstance(reducer, CountRows)
        self._first: Words | None = None
        if 0 < scope.depth <= FIRST_DEPTH and isinstance(reducer, FirstWords) and source.diff_width == 1:
            assert sorted(reducer.words) == list(range(source.width - source.key_width))
            self._first = np.array(reducer.words, np.int64)
        self._formula: Words | None = None
        self._asked = not isinstance(reducer, FormulaReducer) or source.width != source.key_width
        self._heads = Block(self.key_width, 2)
        self._offsets = Block(1)
        searched = self._picking is not None and not scope.depth
        self._vals = Block(source.width - source.key_width, WINDOW_DIFFS if searched else source.diff_width)
        self._unsorted = Block(self.width)
        self.later = Later(self, self.key_width)
        self._owed = Block(self.key_width)
        self._ordered = Block(self.key_width)
        self.keyed_errors = Block(self.key_width + 1)
        self._error_spine: Spine | None = None
        if scope.depth:
            self.arrange()
        if self._first is not None:
            self._make_room(ROOM)

    def _look(self) -> None:
        """Raises 57014 if a query or hydration was cancelled; a maintained step goes on."""
        if self.context.mode is not Mode.MAINTAINED:
            self.context.look()

    def _make_room(self, count: int) -> None:
        """Makes room for ``count`` keys in a program, which with less room leaves the work to Python."""
        self.out.reserve((2 << self.scope.depth) * count)
        self.later.block.reserve((2 << self.scope.depth) * count)
        for block in (self._owed, self._ordered):
            block.reserve(count)

    def _pickings(self, reducer: Reducer) -> Picking | None:
        if self._picks is not None:
            picking = Picking.of(self._picks)
            self._limit = picking.limit
            return picking
        if self._limit > 0 and self.source.diff_width == 1 and self.source.width > self.source.key_width:
            return Picking.of(Picks((Window(last=self._limit),)))
        return None

    def arrange(self) -> None:
        """Keeps an output spine from now on."""
        if self.spine is None:
            self.scope.changed(self)
            self.spine = self._spine(self.width)
            if self.scope.depth:
                self._error_spine = self._spine(self.key_width + 1)

    def _spine(self, width: int) -> Spine:
        since = self.context.since_of(self.scope.depth)
        return Spine(width, self.key_width, self.scope.shape, 1, self._order(width), since)

    def _order(self, width: int) -> Words | None:
        """The input's order of the key, integers for the values."""
        assert self.source.spine is not None
        given = self.source.spine.order_words
        if given is None or not given[1 : 1 + self.key_width].any():
            return None
        return np.concatenate([given[: 1 + self.key_width], np.zeros(width - self.key_width, np.int64)])

    def spines(self) -> list[Spine]:
        """The output's spine, and inside loops the errors'."""
        return [spine for spine in (self.spine, self._error_spine) if spine is not None]

    def run(self, vector: int) -> bool:
        placed = False
        if self.scope.depth:
            placed = self._partial(vector)
        else:
            self._total()
        if not self.ran and not self.scope.depth and (self._counts or not self._asked):
            self.scope.changed(self)  # from now on it has an instruction
        self.ran = True
        if self.out.n and self.spine is not None and not placed:
            self.spine.insert(self.out)
        return self.out.n > 0 or self.errors.n > 0

    @property
    def _output_order(self) -> int:
        return 0 if self.spine is None else self.spine.order

    def _call(self) -> tuple[Reduced, Words]:
        """Calls the reducer on the non-empty segments. Returns its result and the heads of these segments."""
        heads = self._heads.sync()
        self._vals.sync()
        offsets = self._offsets.rows[: heads + 1, 0]
        full = np.nonzero(offsets[1:] > offsets[:-1])[0]
        keys, _, _ = self._heads.arrays()
        vals, _, diffs = self._vals.arrays()
        if len(full) < heads:
            keys = keys[full]
            offsets = np.append(offsets[full], offsets[-1])
        if self._picks is not None and self.scope.depth:
            offsets, vals, diffs = pick(self._picks, offsets, vals, diffs)
            shown = np.flatnonzero(offsets[1:] > offsets[:-1])
            keys, full, offsets = keys[shown], full[shown], np.append(offsets[:-1][shown], offsets[-1])
        elif self._picks is None and self._picking is not None:
            diffs = diffs[:, :1]  # found by rank, but the reducer expects the start of a group
        reduced = self._reducer(keys, offsets, vals, diffs)
        return reduced, full

    def _grow(self) -> None:
        self._heads.grow()
        self._offsets.reserve(self._heads.room + 1)
        self._vals.grow()

    def _total(self) -> None:
        source = self.source
        delta = source.out
        if not delta.n:
            return
        assert source.spine is not None
        if self._counts:
            self._count(delta, source.spine)
            return
        formula = self._ask() if self.ran else None
        if formula is not None and self._accumulated(delta, source.spine, formula):
            return
        self._prepare(2 * delta.n)
        if source.width == source.key_width and self._limit < 0:
            counts_total(
                source.spine.desc, delta.d, self.context.nothing, self._heads.d, self._offsets.d, self._vals.d,
                not self.ran, self.context.stats,
            )  # fmt: skip
        else:
            self._gather(delta, source.spine)
        if not self._heads.sync():
            return
        reduced, full = self._call()
        self._emit(reduced.segment, reduced.vals, full, self._unsorted, self.out, self._output_order)
        if reduced.errors is not None and len(reduced.errors):
            assert reduced.error_segment is not None
            unsorted = Block(self.key_width + 1)
            self._emit(reduced.error_segment, reduced.errors, full, unsorted, self.keyed_errors, 0)
            self._show_errors()
        self._release()

    def _ask(self) -> Words | None:
        """The reducer's formula, made on first use: an operator that runs once needs none."""
        if not self._asked:
            self._asked = True
            if isinstance(self._reducer, FormulaReducer):
                self._formula = self._reducer.formula()
        return self._formula

    def _accumulated(self, delta: Block, trace: Spine, formula: Words) -> bool:
        """Does the whole pass in one kernel. False if a group fails."""
        out = self.out
        out.reserve(2 * delta.n)
        done = accumulate_total(
            trace.desc, delta.d, self.context.nothing, out.d, formula, not self.ran, self.context.stats
        )
        out.sync()
        return bool(done)

    def _count(self, delta: Block, trace: Spine) -> None:
        """Does the whole pass in one kernel."""
        out, unsorted = self.out, self._unsorted
        for block in (out, unsorted):
            block.reserve(2 * delta.n)
        if parts(delta.n, SEARCHED) > 1:
            ordered = self._count_in_parts(delta, trace)
        else:
            context = self.context
            ordered = count_differences(trace.desc, delta.d, context.nothing, out.d, not self.ran, context.stats)
        if out.sync() and not ordered:
            unsorted.n = copied(out, unsorted, 1, SAME, 0, 0)
            out.reset()
            out.n = sort_into(unsorted, out, self._output_order)
        unsorted.clear()

    def _count_in_parts(self, delta: Block, trace: Spine) -> bool:
        """``count_differences`` in parallel, the delta cut between keys."""
        context = self.context

        def count(given: Words, stats: Words) -> tuple[Block, bool]:
            made = Block(self.width, 1, 2 * int(given[B_COUNT]))
            ordered = count_differences(trace.desc, given, context.nothing, made.d, not self.ran, stats)
            made.sync()
            return made, ordered

        found = in_parts(delta, self.key_width, count, context.stats)
        put_together([made for made, _ in found], self.out)
        return all(ordered for _, ordered in found)

    def _gather(self, delta: Block, trace: Spine) -> None:
        if self._picking is not None:
            self._search(delta, trace, self._picking)
            return
        while not segments_total(
            trace.desc, delta.d, self.context.nothing, self._heads.d, self._offsets.d, self._vals.d, self._limit,
            not self.ran, self.context.stats,
        ):  # fmt: skip
            self._grow()

    def _search(self, delta: Block, trace: Spine, picking: Picking) -> None:
        if not trace.ranked:
            trace.rank()
        context = self.context
        if self.ran and picking.by_changes(delta.n):
            window = picking.only
            last = EVERYTHING if window.last is None else window.last
            while not changes_total(
                trace.desc, delta.d, context.nothing, self._heads.d, self._offsets.d, self._vals.d, window.first, last,
                context.stats,
            ):  # fmt: skip
                self._grow()
            return
        while not windows_total(
            trace.desc, delta.d, context.nothing, self._heads.d, self._offsets.d, self._vals.d, picking.windows,
            picking.fractions, picking.picks.flagged, not self.ran, context.stats,
        ):  # fmt: skip
            self._grow()

    def _prepare(self, count: int) -> None:
        self._heads.reserve(count + 8)
        self._offsets.reserve(self._heads.room + 1)
        self._vals.reserve(count + 8)

    def _release(self) -> None:
        self._heads.clear()
        self._offsets.clear()
        self._vals.clear()

    def _emit(self, segment: Words, vals: Words, full: Words, unsorted: Block, out: Block, order: int) -> None:
        count = len(segment)
        unsorted.reserve(2 * count)
        unsorted.n = differences_total(
            self._heads.d, np.ascontiguousarray(full[segment], np.int64), _matrix(vals, count), unsorted.d
        )
        out.reserve(unsorted.n)
        out.n = sort_into(unsorted, out, order)
        unsorted.clear()

    def _partial(self, vector: int) -> bool:
        """Runs a pass inside a loop. Returns whether the spine has ``out`` already."""
        source = self.source
        delta = source.out
        later = self.later
        owed = self._owed
        assert source.spine is not None
        assert self.spine is not None
        assert self._error_spine is not None
        if later.due >= 0 and later.take(vector, owed) > 1:
            owed = sorted_block(owed, source.spine.order)
        if not delta.n and not owed.n:
            return False
        if (self._first is not None or self._formula is not None) and not self.context.again:
            placed = self._in_one(delta, owed, vector)
            if placed is not None:
                return placed
        start = later.block.n
        self._prepare(delta.n + owed.n)
        later.block.reserve(start + delta.n + owed.n + 8)
        context = self.context
        while reduce_partial(
            SEGMENTS, source.spine.desc, delta.d, owed.d, self.spine.desc, context.nothing, self._heads.d,
            later.block.d, self._offsets.d, self._vals.d, self._error_spine.desc, self._limit, vector,
            context.again, context.stats,
        ) < 0:  # fmt: skip
            self._grow()
            later.block.grow()
        self._owed.clear()
        if later.block.sync() > start:
            later.added(start)
        reduced, full = self._call()
        self._correct(reduced.segment, reduced.vals, full, self.spine, self.out)
        errors, error_segment = reduced.errors, reduced.error_segment
        if errors is None or error_segment is None:
            errors, error_segment = np.empty((0, 1), np.int64), np.empty(0, np.int64)
        self._correct(error_segment, errors, full, self._error_spine, self.keyed_errors)
        if self.keyed_errors.n:
            self._error_spine.insert(self.keyed_errors)
            self._show_errors()
        self._release()
        return False

    def _in_one(self, delta: Block, owed: Block, vector: int) -> bool | None:
        """Does the pass in one kernel, which inserts a small ``out`` itself. Returns whether it has, or None if a group
        fails."""
        later = self.later
        out = self.out
        start = later.block.n
        room = (2 << self.scope.depth) * (delta.n + owed.n + start) + 8  # as much as a program requires
        for block in (out, later.block, self._owed, self._ordered):
            block.reserve(room)
        while True:
            counts = self._partial_kernel(delta, owed, vector)
            if counts == FAILED:
                return None
            if counts >= 0:
                break
            out.grow()
            later.block.grow()
        out.n = counts & 0x7FFFFFFF
        placed = bool((counts >> 31) & 1)
        if placed and out.n:
            assert self.spine is not None
            self.spine.touched(out.n)
        self._owed.clear()
        end = later.block.n = counts >> 32
        if end > start:
            later.added(start)
        return placed

    def _partial_kernel(self, delta: Block, owed: Block, vector: int) -> int:
        """See ``ivm.kernels.interesting``."""
        assert self.source.spine is not None
        assert self.spine is not None
        context = self.context
        given = self._first if self._first is not None else self._formula
        assert given is not None
        tactic, option = (SUMS, 0) if self._first is None else (FIRSTS, int(self._complements))
        return int(
            reduce_partial(
                tactic, self.source.spine.desc, delta.d, owed.d, self.spine.desc, context.nothing, self.out.d,
                self.later.block.d, context.nothing, context.nothing, given, option, vector, False, context.stats,
            )
        )  # fmt: skip

    @property
    def _complements(self) -> bool:
        return isinstance(self._reducer, FirstWords) and self._reducer.complement

    def instruction(self, program: Program) -> Instruction | None:
        words = self._first
        assert self.source.spine is not None
        if self._counts and self.ran:
            kept = 0 if self.spine is None else address(self.spine.cell)
            cells = [address(self.source.spine.cell), kept, address(self._unsorted.d)]
            return Instruction(COUNT, program.row(self.source), None, cells, SEARCHED)
        if not self.scope.depth and self.ran and self._ask() is not None:
            return self._sums(program)
        if words is None and 0 < self.scope.depth <= FIRST_DEPTH and self._ask() is not None:
            words = self._formula
            self._make_room(ROOM)
        if words is None:
            return Instruction(CALL, own=self.later.block)
        assert self.spine is not None
        row = [
            address(self.source.spine.cell), address(self.spine.cell), 0, address(self._owed.d),
            address(self._ordered.d), address(words), len(words),
        ]  # fmt: skip
        kind = ACCUMULATE if self._first is None else FIRST
        row.append(address(self.errors.d) if self._first is None else int(self._complements))
        return Instruction(kind, program.row(self.source), self.later.block, row)

    def _sums(self, program: Program) -> Instruction:
        """The instruction that accumulates outside of loops."""
        assert self.source.spine is not None
        assert self._formula is not None
        kept = 0 if self.spine is None else address(self.spine.cell)
        formula = self._formula
        row = [address(self.source.spine.cell), kept, 0, 0, 0, address(formula), len(formula), address(self.errors.d)]
        return Instruction(ACCUMULATE_TOTAL, program.row(self.source), None, row)

    def blocks(self) -> list[Block]:
        return [self.out, self.later.block, self._owed, self._ordered]

    def _correct(self, segment: Words, vals: Words, full: Words, spine: Spine, out: Block) -> None:
        """Appends f(input) minus what was emitted to ``out``, sorted."""
        count = len(segment)
        ascending = np.argsort(segment, kind="stable")
        heads = np.ascontiguousarray(full[segment][ascending], np.int64)
        rows = _matrix(_matrix(vals, count)[ascending], count)
        unsorted = Block(spine.width, 1, 2 * count + 32)
        while not differences_partial(self._heads.d, heads, rows, spine.desc, self.context.nothing, unsorted.d):
            unsorted.grow()
        out.reserve(unsorted.sync())
        out.n = sort_into(unsorted, out, spine.order)

    def _show_errors(self) -> None:
        """Puts the error rows, without their keys, into ``errors``."""
        rows, times, diffs = self.keyed_errors.arrays()
        refill(self.errors, rows[:, -1:], times, diffs)
        self.keyed_errors.reset()

    def clear(self) -> None:
        self.out.clear()
        self.errors.clear()

    def settle(self) -> None:
        super().settle()
        self.errors.clear()


def _matrix(vals: Words, count: int) -> Words:
    """A reducer's values as a contiguous int64 matrix."""
    return np.ascontiguousarray(vals, np.int64).reshape(count, -1 if count else (vals.shape[-1] or 1))
