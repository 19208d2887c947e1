"""Delta joins: several arrangements joined at once, with one path per input and no intermediate results kept.

Every combination is met once, when the last of its updates is processed: within one pass the path of input i sees the
updates that input j has in this very pass only if j < i. Traces do not change during a pass. The order of processing
decides, not timestamps: with rounds and compaction, an update processed later may have a lesser time.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final

import numpy as np

from ivm.graph import Gather, Path, Span
from ivm.kernels.delta_join import BUSY, FULL, delta_join
from ivm.kernels.memory import address, where
from ivm.kernels.path import (
    G_BITS,
    G_KEYS,
    G_SLOTS,
    G_WORDS,
    PATH_HEAD,
    R_CELL,
    R_MINUS,
    R_PEAKS,
    R_SHAPE,
    SLOT_SHIFT,
    SLOT_WORDS,
    SOURCE_WORDS,
    SPAN_KEPT,
    V_END,
    V_FIRST,
    V_KEPT,
    V_KEY,
    V_KEY_WIDTH,
    V_NULL_COUNT,
    V_NULLS,
    V_SPAN,
    V_STRICT,
    V_WIDTH,
)  # fmt: skip
from ivm.kernels.program import DELTA_JOIN, K_DELTA, K_HEAD
from ivm.operators.base import LARGE
from ivm.operators.emitting import EmittingOperator, Shard, collect, emit
from ivm.operators.join import Side
from ivm.rows import Words
from ivm.runtime.context import FlowContext, Mode
from ivm.runtime.operator import Held, Later, Operator, Scope
from ivm.runtime.program import Instruction, Program
from ivm.trace.batch import Block
from ivm.trace.shards import even, piece
from ivm.trace.spine import EVERYTHING
from ivm.workers import EXTENDED, parts

WORK: Final = 1 << 22
"""The seeks and rows of one kernel call, limited so that a cancel is noticed soon."""


PARTS: Final = 4
"""Parts per worker: some updates cost a thousand times more than others, so an idle worker takes the next part."""


class DeltaPath:
    """One path with its arrangements: it starts from ``sides[0]``, which need not be kept, and looks up the others.
    ``inputs`` has the input of each side."""

    __slots__ = ("cells", "inputs", "program", "reaching", "sides", "sources")

    def __init__(self, number: int, path: Path, sides: list[Side]) -> None:
        self.inputs = [number, *(lookup.input for lookup in path.lookups)]
        self.sides = sides
        self.program = _program(path, [side.arrangement.width for side in sides])
        spans = [lookup.span for lookup in path.lookups]
        self.reaching = [slot for slot, span in enumerate(spans, 1) if span is not None and span.reach is not None]
        self.sources = np.zeros(len(sides) * SOURCE_WORDS, np.int64)
        self.cells = False
        assert all(side.delay == 0 and side.arrangement.diff_width == 1 for side in sides)

    @property
    def delta(self) -> Operator:
        """The operator that emits the updates it starts from."""
        return self.sides[0].delta

    def read(self) -> None:
        """Refreshes the addresses of the traces that it looks up."""
        for slot, side in enumerate(self.sides[1:], 1):
            spine = side.arrangement.spine
            assert spine is not None
            assert spine.order == 0, "delta joins compare words"
            self.sources[slot * SOURCE_WORDS + R_CELL] = where(spine.cell)
            self.sources[slot * SOURCE_WORDS + R_SHAPE] = side.arrangement.scope.shape
            if slot in self.reaching:
                spine.peak()
                self.sources[slot * SOURCE_WORDS + R_PEAKS] = address(spine.peak_cell)
        self.cells = True

    @property
    def hopeless(self) -> bool:
        """Whether a trace that it looks up is empty, so that nothing can match."""
        return any(side.arrangement.spine is None or not side.arrangement.spine.count for side in self.sides[1:])


class _Task:
    """A path applied to a delta. ``held`` keeps the blocks alive whose addresses are in ``sources``."""

    __slots__ = ("delta", "held", "path", "sources", "state")

    def __init__(self, path: DeltaPath, delta: Block) -> None:
        if not path.cells:
            path.read()
        self.path = path
        self.delta = delta
        self.sources = path.sources.copy()
        self.sources[R_MINUS::SOURCE_WORDS] = 0  # a compiled loop leaves its own blocks there
        self.held: list[Block] = []
        self.state = np.zeros(1, np.int64)

    def without(self, slot: int, block: Block) -> None:
        """Subtracts a block from the slot's arrangement."""
        self.held.append(block)
        self.sources[slot * SOURCE_WORDS + R_MINUS] = where(block.d)


class DeltaJoinOperator(EmittingOperator):
    """Cost of a pass: for each update the seeks along its path and the rows bound there."""

    __slots__ = ("_ran", "_state", "_tasks", "paths")

    def __init__(self, context: FlowContext, scope: Scope, paths: list[DeltaPath], width: int) -> None:
        super().__init__(context, scope, width)
        self.paths = paths
        self.later = Later(self, width)
        self._ran = np.zeros(1, np.int64)
        self._state = np.zeros(1, np.int64)
        self._tasks: list[_Task] = []

    def inputs(self) -> list[Operator]:
        return list({id(path.delta): path.delta for path in self.paths}.values())

    def needs(self) -> list[Operator]:
        return self.inputs() + [side.arrangement for path in self.paths for side in path.sides]

    def rebind(self, find: Callable[[Operator], Operator]) -> None:
        assert not self._tasks
        for side in {id(side): side for path in self.paths for side in path.sides}.values():
            side.arrangement, side.delta = find(side.arrangement), find(side.delta)
        for path in self.paths:
            path.cells = False

    def resume(self) -> None:
        super().resume()
        self._ran[0] = 1

    def run(self, vector: int) -> bool:
        later = self.later
        if self.error is None:
            self._sound()
        if self.error is not None:
            return False
        if not self._tasks:
            if later.due == vector:
                later.take(vector, self.out)
            self._tasks = self._begin()
        start = later.block.n
        number = parts(sum(task.delta.n for task in self._tasks), EXTENDED)
        if number > 1 and self.context.mode is not Mode.ONCE:
            self._work_in_parts(vector, number * PARTS)
        while self._tasks:
            if not self._work(self._tasks[0], vector):
                self.scope.unfinished.append(self)
                break
            del self._tasks[:1]
        if later.block.n > start:
            later.added(start)
        return self.out.n > 0

    def _sound(self) -> None:
        """Fails if an arrangement has failed that it only looks up and that does not wake it."""
        for path in self.paths:
            for side in path.sides:
                if side.arrangement.error is not None:
                    self.fail(side.arrangement.error)
                    return

    def _begin(self) -> list[_Task]:
        """The tasks of this pass. In the first run the deltas are the whole contents, so one path finds everything."""
        waiting = [path for path in self.paths if path.delta.out.n]
        if not self._ran[0]:
            self._ran[0] = bool(waiting)
            some = [path for path in waiting if not path.hopeless]
            least = min(some, key=lambda path: path.delta.out.n, default=None)
            return [] if least is None or len(some) < len(waiting) else [_Task(least, least.delta.out)]
        fresh = {path.inputs[0] for path in waiting}
        tasks = []
        for path in waiting:
            task = _Task(path, path.delta.out)
            for slot in range(1, len(path.sides)):
                other = path.inputs[slot]
                if other > path.inputs[0] and other in fresh:
                    task.without(slot, path.sides[slot].arrangement.out)
            tasks.append(task)
        return tasks

    def _work(self, task: _Task, vector: int) -> bool:
        """Works on one path. False if the slice is full before the path is done."""
        context = self.context
        out = self.out
        later = self.later.block
        while True:
            result = delta_join(
                task.delta.d, task.path.program, task.sources, out.d, later.d, task.state, context.stats,
                self.scope.shape, vector, WORK,
            )  # fmt: skip
            if result >= 0:
                break
            out.sync()
            later.sync()
            full = out if result == FULL else later
            if result == BUSY:
                if vector >= 0 and context.cancel.is_set() and not self._may_grow(full):
                    return True
                continue
            if full.room >= LARGE:
                if context.mode is Mode.ONCE and not self.scope.depth and out.n:
                    return False
                if vector >= 0 and not self._may_grow(full):
                    return True
            full.grow()
        out.n = result & 0xFFFFFFFF
        later.n = result >> 32
        self._stands(context.uncounted(vector < 0))
        return True

    def instruction(self, program: Program) -> Instruction | None:
        self._sound()
        if self.error is not None:
            return None
        start = program.put([0] * sum(K_HEAD + 2 * len(path.sides) for path in self.paths))
        words: list[int] = []
        for path in self.paths:
            if not path.cells:
                path.read()
            at = start + len(words)
            words += [
                program.out(path.delta, at + K_DELTA), address(path.program), len(path.program),
                address(path.sources), len(path.sides),
            ]  # fmt: skip
            for number, side in zip(path.inputs, path.sides, strict=True):
                at = start + len(words)
                if number > path.inputs[0]:
                    fresh = self.paths[number].delta
                    words += [program.out(fresh, at), program.out(side.arrangement, at + 1)]
                else:
                    words += [0, 0]
        program.fill(start, words)
        row = [address(self._state), start, len(self.paths), address(self._ran)]
        return Instruction(DELTA_JOIN, 0, self.later.block, row, 0 if self.scope.depth else EXTENDED)

    def _work_in_parts(self, vector: int, number: int) -> None:
        """Works on all paths, with each delta cut into shards."""
        tasks = {
            Shard(piece(task.delta, low, high), self.width, (0,)): task
            for task in self._tasks
            for low, high in pairwise(even(task.delta.n, number))
            if low < high
        }

        def path(part: Shard) -> int:
            task = tasks[part]
            return delta_join(
                part.delta, task.path.program, task.sources, part.out.d, part.later.d, part.state, part.stats,
                self.scope.shape, vector, WORK,
            )  # fmt: skip

        found = list(tasks)
        if emit(found, path, LARGE, EVERYTHING, self._may_take):
            collect(found, self.out, self.later.block, self.context.stats)
            self._stands(self.context.uncounted(vector < 0))
        self._tasks = []

    def abandon(self) -> None:
        self._tasks.clear()

    def contents(self, held: Held) -> Block:
        return self.twin().product(held(self.paths[0].delta))

    def product(self, first: Block) -> Block:
        """All updates of the join whose first path starts from these. On a ``twin`` only."""
        self.later = Later(self, self.width)
        self._work(_Task(self.paths[0], first), -1)
        return self.later.block if self.scope.depth else self.out


def _program(path: Path, widths: list[int]) -> Words:
    """The path encoded for the kernel (``ivm.kernels.delta_join``)."""
    places = [(slot, word) for slot, width in enumerate(widths) for word in range(width)]
    references = [slot << SLOT_SHIFT | word for slot, word in places]
    gather = path.gather
    slots = len(widths)
    head = [0] * (PATH_HEAD + slots * SLOT_WORDS)
    lists: list[int] = []

    def listed(words: list[int]) -> int:
        start = len(head) + len(lists)
        lists.extend(words)
        return start

    head[G_SLOTS] = slots
    head[G_WORDS] = listed([-1 if word < 0 else references[word] for word in gather.words])
    head[G_WORDS + 1] = len(gather.words)
    head[G_BITS] = listed([w for word, bit, to, place in gather.bits for w in (references[word], bit, to, place)])
    head[G_BITS + 1] = len(gather.bits)
    slot = 0
    plain = ((), None)
    stages = [(plain,), *(tuple((k.key, k.span) for k in stage) for stage in path.stages)]
    for stage in stages:
        for number, (key, span) in enumerate(stage):
            at = PATH_HEAD + slot * SLOT_WORDS
            assert all(places[word][0] < slot - number for word in key), "a key of what is bound before the stage"
            assert slot == 0 or key or span is not None, "a lookup has a key or a span"
            assert span is None or len(stage) == 1, "what has a span meets nothing"
            assert len(stage) == 1 or len(key) < widths[slot], "what is proposed stands behind the key"
            nulls = _nulls(gather, places, references, slot)
            head[at + V_FIRST], head[at + V_END] = slot - number, slot - number + len(stage)
            head[at + V_WIDTH] = widths[slot]
            head[at + V_KEY], head[at + V_KEY_WIDTH] = listed([references[word] for word in key]), len(key)
            head[at + V_NULLS], head[at + V_NULL_COUNT] = listed(nulls), len(nulls) // 2
            head[at + V_KEPT] = head[G_KEYS]
            head[G_KEYS] += len(key) + (0 if span is None else SPAN_KEPT)
            head[at + V_SPAN : at + V_STRICT + 1] = _span(span, references)
            slot += 1
    assert slot == slots
    return np.array(head + lists, np.int64)


def _span(span: Span | None, references: list[int]) -> list[int]:
    """V_SPAN … V_STRICT of a slot."""
    bounds = (None, None, None) if span is None else (span.lower, span.upper, span.reach)
    strict = sum(1 << k for k, bound in enumerate(bounds) if bound is not None and bound.strict)
    return [int(span is not None), *(-1 if b is None else references[b.word] for b in bounds), strict]


def _nulls(gather: Gather, places: list[tuple[int, int]], references: list[int], slot: int) -> list[int]:
    """The null bits of the slot's row that drop a combination."""
    return [w for word, bit in gather.drop_if if places[word][0] == slot for w in (references[word], bit)]
