"""Locked joins: each left row keeps the matches that it found when it arrived (``ivm.kernels.lock``).

The output is primary data: it cannot be recomputed, since the right side's earlier contents are gone. Its publisher
stores it too, and passes it to ``load`` when the dataflow is built again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ivm.distinct import distinct, distinct_rows
from ivm.errors import SqlError
from ivm.graph import Lock
from ivm.kernels.blocks import SAME, transfer
from ivm.kernels.codes import MARKER
from ivm.kernels.lock import lock
from ivm.kernels.memory import T_KEY_WIDTH, address
from ivm.kernels.read import lookup
from ivm.operators.base import LARGE
from ivm.rows import Words
from ivm.runtime.context import FlowContext, Mode
from ivm.runtime.operator import Operator, Scope
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from ivm.trace.spine import Spine


class LockOperator(Operator):
    """[left row | number | part | right row], itself an arrangement by left row.

    The work of one time is redone when more updates arrive at the same time (a transaction's tentative one), so the
    result does not depend on how they were split into passes. Cost of a pass: for each left update a few seeks and its
    matches.
    """

    __slots__ = ("_at", "_emitted", "_held", "_kept", "_none", "_waiting", "_words", "left", "right")

    SPEC = Lock
    ARRANGED = True

    def __init__(
        self, context: FlowContext, scope: Scope, left: Operator, right: Operator, name: int, none: tuple[int, ...],
        waiting: bool,
    ) -> None:  # fmt: skip
        """``name`` is not read: it keeps nodes apart."""
        self._words = left.width - left.key_width
        super().__init__(context, scope, self._words + 2 + right.width - right.key_width)
        if scope.depth:
            raise SqlError("0A000", "FOR SYSTEM_TIME AS OF PROCTIME() in a recursion is not supported")
        assert left.key_width == right.key_width
        assert left.diff_width == right.diff_width == 1
        self.left = left
        self.right = right
        self.key_width = self._words
        self.spine = Spine(self.width, self._words, 0, 1, None, context.since_of(0))
        self._at = -1
        self._kept = Block(left.width)
        self._emitted = Block(self.width)
        self._waiting = waiting
        self._none = np.array(none, np.int64)
        assert len(none) == right.width - right.key_width
        self._held: tuple[Words, Words] | None = None

    def load(self, rows: Words, diffs: Words) -> None:
        """Loads its earlier contents. In the next pass it emits them, corrected by the left side's changes since."""
        self._held = rows, diffs
        self._waiting = False
        self.wake()

    def inputs(self) -> list[Operator]:
        return [self.left, self.right]

    def rebind(self, find: Callable[[Operator], Operator]) -> None:
        self.left, self.right = find(self.left), find(self.right)

    def run(self, vector: int) -> bool:
        if self.error is not None or self._waiting:
            return False
        mode = self.context.mode
        first = self._held is not None or (mode is not Mode.MAINTAINED and not self.ran)
        if first:
            parts = self._begin()
        elif mode is Mode.DETACHED:  # until attached, every left row matches the right side's present rows
            parts = [self._fill()]
        else:
            parts = [self._pass(*given) for given in self._given()]
        self.ran = True
        self.out = parts[0] if len(parts) == 1 else _sum(self.width, parts)
        return self.out.n > 0

    def _given(self) -> list[tuple[int, Block]]:
        """The left updates by time, and the last time again if the right side has changed at it."""
        left, right = self.left.out, self.right.out
        times = distinct(left.times[: left.n]).tolist()
        if self._kept.n and self._at not in times and right.n and (right.times[: right.n] == self._at).any():
            times.insert(0, self._at)
        if len(times) == 1 and left.n and times[0] == int(left.times[0]):
            return [(times[0], left)]
        rows, at, diffs = left.arrays()
        return [(t, Block.of(rows[at == t], at[at == t], diffs[at == t])) for t in times]

    def _begin(self) -> list[Block]:
        """Locks all present left rows, except those loaded."""
        assert self.left.spine is not None
        assert self.spine is not None
        at = self.context.newest
        held, self._held = self._held, None
        rows, _, diffs = self.left.spine.contents(self.context.since).arrays()
        found = []
        if held is not None:
            old = sorted_block(Block.of(held[0], np.full(len(held[1]), at), held[1].reshape(-1, 1)))
            self.spine.insert(old)
            found.append(old)
            markers = held[0][:, self._words + 1] == MARKER
            rows, diffs = self._without(rows, diffs, held[0][markers][:, : self._words], held[1][markers])
        delta = sorted_block(Block.of(rows, np.full(len(rows), at), diffs))
        made = self._locked(delta, at, self.context.nothing)
        self.spine.insert(made)
        return [*found, made]

    def _fill(self) -> Block:
        """Locks again the left rows that have changed or whose right rows have, as if all arrived now. Cost: the left
        rows of the right side's changed keys, however few of them are read."""
        at, key = self.context.newest, self.left.key_width
        left, right = self.left.out, self.right.out
        touched = _distinct(right.rows[: right.n, :key])
        concerned = _distinct(np.concatenate([left.rows[: left.n], self._present(touched, at)[0]]))
        n = len(concerned)
        if not n:
            return Block(self.width)
        gone = self._change(Block.of(concerned, np.full(n, at), np.full((n, 1), _ALL)), at)
        rows, diffs = self._present(concerned, at)
        return _sum(self.width, [gone, self._change(Block.of(rows, np.full(len(rows), at), diffs), at)])

    def _change(self, delta: Block, at: int) -> Block:
        """Applies left updates. Returns their effect, which the state then includes."""
        assert self.spine is not None
        made = self._locked(delta, at, self.context.nothing)
        if made.n:
            self.spine.insert(made)
        return made

    def _present(self, keys: Words, at: int) -> tuple[Words, Words]:
        """(left rows that begin with one of these sorted keys, their counts int64[n, 1])."""
        assert self.left.spine is not None
        desc = self.left.spine.desc.copy()
        desc[T_KEY_WIDTH] = keys.shape[1]
        sought = Block.of(keys, np.zeros(len(keys), np.int64), np.ones(len(keys), np.int64))
        found = Block(self.left.width)
        while not lookup(desc, sought.d, found.d, at):
            found.reset()
            found.grow()
        found.sync()
        rows, _, diffs = sorted_block(found).arrays()
        return rows, diffs

    def _without(self, rows: Words, diffs: Words, known: Words, counts: Words) -> tuple[Words, Words]:
        """Left updates [key | row] minus rows that are locked already. A locked row that is gone has no key."""
        key = self.left.key_width
        both = np.concatenate([rows[:, key:], known])
        weights = np.concatenate([diffs[:, 0], -counts])
        found = distinct_rows(both)
        sums = np.zeros(len(found.rows), np.int64)
        np.add.at(sums, found.place, weights)
        changed = np.flatnonzero(sums)
        keys = np.concatenate([rows[:, :key], np.zeros((len(known), key), np.int64)])[found.first[changed]]
        return np.concatenate([keys, found.rows[changed]], axis=1), sums[changed].reshape(-1, 1)

    def _pass(self, at: int, delta: Block) -> Block:
        """The changes from one time's left updates, including those of that time from earlier passes."""
        assert self.spine is not None
        again = at == self._at
        if again:
            delta = _sum(self.left.width, [self._kept, delta])
            made = self._locked(delta, at, self._emitted.d)
            change = _sum(self.width, [made, _negated(self._emitted)])
        else:
            change = made = self._locked(delta, at, self.context.nothing)
        self._at, self._kept, self._emitted = at, _copy(delta), _copy(made)
        if change.n:
            self.spine.insert(change)
        return change

    def _locked(self, delta: Block, at: int, minus: Words) -> Block:
        context, left, right = self.context, self.left, self.right
        assert self.spine is not None
        assert right.spine is not None
        for spine in (self.spine, right.spine):
            if not spine.ranked:
                spine.rank()
        out = Block(self.width, 1, max(min(3 * delta.n, LARGE), 8))
        done = 0
        while done < delta.n:
            done = lock(
                delta.d, done, left.key_width, self.spine.desc, minus, right.spine.desc, right.out.d, context.nothing,
                out.d, address(self._none), at, context.stats,
            )  # fmt: skip
            out.sync()
            if done < delta.n:
                error = context.refusal(3 * out.nbytes, 0) if out.room >= LARGE else None
                if error is not None:
                    self.fail(error)
                    return Block(self.width)
                out.grow()
        return sorted_block(out)

    def blocks(self) -> list[Block]:
        return [self.out, self._kept, self._emitted]

    def clear(self) -> None:
        self.out = Block(self.width)


_ALL = -(2**62)
"""A number of copies to remove that exceeds any real count."""


def _distinct(rows: Words) -> Words:
    """The distinct rows, sorted."""
    block = Block.of(rows, np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64))
    return sorted_block(block).arrays()[0]


def _copy(block: Block) -> Block:
    copy = Block(block.width, 1, max(block.n, 1))
    copy.n = transfer(block.d, copy.d, 1, SAME, 0, 0)
    return copy


def _negated(block: Block) -> Block:
    copy = Block(block.width, 1, max(block.n, 1))
    copy.n = transfer(block.d, copy.d, -1, SAME, 0, 0)
    return copy


def _sum(width: int, blocks: list[Block]) -> Block:
    """All of the blocks' updates, sorted and consolidated."""
    both = Block(width, 1, max(sum(block.n for block in blocks), 1))
    for block in blocks:
        both.n = transfer(block.d, both.d, 1, SAME, 0, 0)
    return sorted_block(both)
