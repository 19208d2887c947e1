"""A sweep of an arena: what is in use is seen, the rest declared dead, and taken out when nobody can ask for it.

The order of things (docs/decisions/0004-sweep.md says why it is right): ``begin`` changes the colour; ``see`` whatever
names ids, in slices; ``condemn`` the slots that have the old colour, in slices; ``turn`` to a new generation; and when
``released`` says that the old one is gone, ``drop`` moves what lives to a new table, in slices; ``turn`` again.
Values interned meanwhile, and those of words given to ``Arena.see``, have the new colour and are alive.
"""

from __future__ import annotations

import time
import weakref
from typing import Final

import numpy as np

from ivm.arena import Arena, Generation
from ivm.kernels import arena as kernels
from ivm.kernels import interning
from ivm.kernels.memory import address
from ivm.rows import Words

SLICE: Final = 1 << 16
"""Words looked at, without a lock, in one call of a kernel."""
LOCKED: Final = 1 << 11
"""Slots or words for which writers wait at once: some tenths of a millisecond."""
BREATH: Final = 0.0002
"""Seconds that others get between two slices under the lock."""
SPARSE: Final = 0.75
"""A chunk of which less than this lives is given up, its living values' bytes copied."""


class Sweep:
    """One sweep; one method at a time. ``begin``, ``condemn`` and ``turn`` are for where no commit is under way."""

    def __init__(self, arena: Arena) -> None:
        assert arena.parent is None, "a scratch arena goes as a whole"
        self.arena = arena
        self._table: Words | None = None
        self._at = 0
        self._old: weakref.ref[Generation] | None = None
        self._given_up: list[object] = []
        self._leaving: list[object] = []
        self._left = np.zeros(0, np.int64)

    def begin(self) -> None:
        """From now on what is interned or seen is in use."""
        with self.arena.lock:
            self.arena.state[interning.COLOUR] ^= kernels.COLOUR_FLAG

    def see(self, words: Words) -> None:
        """What ids among the words name is in use. Cost: a look-up for each word, those seen before without a lock."""
        words = np.ascontiguousarray(words).reshape(-1)
        arena = self.arena
        found = np.empty(min(len(words), SLICE), np.int64)
        for start in range(0, len(words), SLICE):
            held = arena.generation
            colour = int(arena.state[interning.COLOUR])
            count = interning.unseen(arena.descriptor, colour, words[start : start + SLICE], found)
            del held
            for first in range(0, count, LOCKED):
                arena.see(found[first : min(first + LOCKED, count)])
                time.sleep(BREATH)

    def condemn(self, slots: int) -> Words | None:
        """Declares dead what was not seen, in the next so many slots; the ids, or None when all was looked through."""
        arena = self.arena
        with arena.lock:
            if arena.move_some(slots):
                return np.zeros(0, np.int64)
            if self._table is not arena.table:  # it has grown meanwhile
                self._table, self._at = arena.table, 0
            stop = min(self._at + slots, int(arena.state[kernels.MASK]) + 1)
            found = np.empty(stop - self._at, np.int64)
            count = interning.condemn(arena.state, self._at, stop, found)
            done = stop == self._at
            self._at = stop
        return None if done else found[:count]

    def turn(self) -> None:
        """The next generation; what has been given up until now goes with the last one. To be called when those who
        fetch the descriptor once for many calls have fetched it again."""
        arena = self.arena
        with arena.lock:
            old, new = arena.generation, Generation()
            moving = bool(arena.state[kernels.OLD])
            old.garbage = [*self._given_up, *(arena.old_tables[:-1] if moving else arena.old_tables)]
            self._given_up, self._leaving = [], old.garbage
            arena.old_tables = arena.old_tables[-1:] if moving else []
            old.next = new
            arena.generation = new
            self._old = weakref.ref(old)

    def forget(self) -> None:
        """Gives memory back to the system that nobody looks at any more: half a gigabyte takes a tenth of a second."""
        self._leaving = []

    @property
    def released(self) -> bool:
        """Whether nobody can have an id any more that was condemned before the last ``turn``."""
        return self._old is None or self._old() is None

    def drop(self) -> None:
        """Moves what lives to a table of its own, dead values and their bytes stay behind. Commits go on beside."""
        assert self.released
        arena = self.arena
        with arena.lock:
            arena.move_rest()
        sparse = self._sparse_chunks()
        with arena.lock:
            arena.move_rest()
            self._begin_move(sparse)
        moving = True
        while moving:
            with arena.lock:
                moving = arena.move_some(LOCKED)
            time.sleep(BREATH)
        with arena.lock:
            gone = {id(chunk) for chunk in sparse}
            arena.chunks = [chunk for chunk in arena.chunks if id(chunk) not in gone]

    def _sparse_chunks(self) -> list[object]:
        """The chunks to give up, but for the one that is being filled."""
        arena = self.arena
        chunks = sorted(arena.chunks[:-1], key=address)
        table = arena.table
        ranges = np.array([(address(c), address(c) + len(c)) for c in chunks], np.int64).reshape(-1)
        sizes = np.zeros(len(chunks), np.int64)
        slots = len(table) // kernels.SLOT_WORDS
        for start in range(0, slots, SLICE):
            stop = min(start + SLICE, slots)
            interning.weigh(address(table), start, stop, ranges, sizes)
        chosen = [i for i, c in enumerate(chunks) if sizes[i] < SPARSE * len(c)]
        self._left = np.array([ranges[2 * i : 2 * i + 2] for i in chosen], np.int64).reshape(-1)
        return [chunks[i] for i in chosen]

    def _begin_move(self, sparse: list[object]) -> None:
        arena, state = self.arena, self.arena.state
        living = len(arena)
        slots = 1 << 10
        while (living + 65) * 8 > slots * 5:
            slots *= 2
        arena.follow_with(slots)
        self._given_up = sparse
        state[interning.LEFT], state[interning.LEFT + 1] = address(self._left), len(sparse)
        state[interning.USED] = living
        state[interning.DEAD_COUNT] = state[interning.RESERVED_COUNT] = 0
        state[interning.DROPPING] = 1
