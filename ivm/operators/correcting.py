"""How threshold and reduce run a pass inside loops: they correct their output, and owe keys to later times.

``ivm.kernels.interesting`` has the kernel and the reasoning. Rows of a program call it for passes that fit into their
blocks; here it is called for all others.
"""

from __future__ import annotations

from dataclasses import dataclass

from ivm.kernels.interesting import FAILED, THRESHOLDS, reduce_partial
from ivm.kernels.memory import B_COUNT, T_ROOM, address
from ivm.operators.base import KeyedOperator
from ivm.rows import Words
from ivm.runtime.operator import Later
from ivm.trace.batch import Block
from ivm.trace.shards import in_parts_of_both, put_together, sort_into
from ivm.workers import CORRECTED, parts


@dataclass(frozen=True, slots=True, eq=False)
class Tactic:
    """What one call of ``reduce_partial`` makes of a key: the tactic's number, its ``given`` and its ``option``.

    ``emitted``: how many rows it emits at most at each time of a key."""

    number: int
    given: Words
    option: int
    emitted: int

    def room(self, keys: int) -> int:
        """The room that a program requires in a row's blocks for this many keys, delta and owed."""
        return 2 * self.emitted * keys + 8


class Due:
    """The keys that are due in a pass, as found and as sorted."""

    __slots__ = ("found", "ordered")

    def __init__(self, key_width: int) -> None:
        self.found = Block(key_width)
        self.ordered = Block(key_width)


class CorrectingOperator(KeyedOperator):
    """An operator inside loops. A subclass makes ``later``, ``due`` and its spine, and says what ``correct`` does."""

    __slots__ = ()

    later: Later
    due: Due

    def blocks(self) -> list[Block]:
        return [self.out, self.later.block, self.due.found, self.due.ordered]

    def row_words(self, option: int) -> list[int]:
        """The first words of its row."""
        return [*self.traces(), option, address(self.due.found.d), address(self.due.ordered.d)]

    def run(self, vector: int) -> bool:
        delta, later, due = self.source.out, self.later, self.due.found
        if later.take(vector, due) > 1:
            due = self.due.ordered
            due.reserve(self.due.found.n)
            due.n = sort_into(self.due.found, due, self.read.order)
            self.due.found.reset()
        if delta.n or due.n:
            start = later.block.n
            self.correct(delta, due, vector)
            due.clear()
            if later.block.n > start:
                later.added(start)
        return self.out.n > 0

    def correct(self, delta: Block, due: Block, vector: int) -> None:
        """Puts into ``out`` and the spine what the delta and the keys that are due change, and appends to
        ``later.block`` the keys that are owed to later times."""
        raise NotImplementedError

    def emit(self, tactic: Tactic, delta: Block, due: Block, vector: int) -> bool:
        """``correct`` by a tactic that emits rows. False, and nothing has changed, if a formula fails."""
        out, later, spine, context = self.out, self.later.block, self.spine, self.context
        assert spine is not None
        if tactic.number == THRESHOLDS and parts(delta.n + due.n, CORRECTED) > 1:
            self._emit_in_parts(tactic, delta, due, vector)
            return True
        room = tactic.room(delta.n + due.n + later.n)
        for block in self.blocks():
            block.reserve(room)
        counts = self._call(tactic, delta.d, due.d, spine.desc, out, later, vector, context.stats)
        if counts == FAILED:
            return False
        out.n = counts & 0x7FFFFFFF
        later.n = counts >> 32
        if not (counts >> 31) & 1:
            spine.insert(out)
        elif out.n:
            spine.touched(out.n)
        return True

    def _emit_in_parts(self, tactic: Tactic, delta: Block, due: Block, vector: int) -> None:
        """``emit`` in parallel, cut between rows. No part may insert its output: each sees the output's spine as
        full."""
        assert self.spine is not None
        full = self.spine.desc.copy()
        full[T_ROOM] = 0

        def correct(given: Words, owed: Words, stats: Words) -> tuple[Block, Block]:
            room = tactic.room(int(given[B_COUNT] + owed[B_COUNT]))
            out, later = Block(self.width, 1, room), Block(self.width, 1, room)
            self._call(tactic, given, owed, full, out, later, vector, stats)
            out.sync()
            later.sync()
            return out, later

        found = in_parts_of_both(delta, due, self.width, self.read.order, correct, self.context.stats)
        put_together([out for out, _ in found], self.out)
        put_together([later for _, later in found], self.later.block)
        self.keep()

    def _call(
        self, tactic: Tactic, delta: Words, due: Words, output: Words, out: Block, later: Block, vector: int,
        stats: Words,
    ) -> int:  # fmt: skip
        """Calls the kernel until its blocks have room. Returns both counts (see there), or FAILED."""
        nothing, again = self.context.nothing, self.context.again
        while True:
            counts = int(
                reduce_partial(
                    tactic.number, self.read.desc, delta, due, output, nothing, out.d, later.d, nothing, nothing,
                    tactic.given, tactic.option, vector, again, stats,
                )
            )  # fmt: skip
            if counts >= 0 or counts == FAILED:
                return counts
            out.grow()
            later.grow()
