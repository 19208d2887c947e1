"""A sweep of an arena: marks the values in use, declares the rest dead, and removes them once no reader can look them
up.

The steps (docs/decisions/0004-sweep.md argues their correctness): ``begin`` changes the colour; ``see`` everything that
contains ids, in slices; ``condemn`` the slots that still have the old colour, in slices; ``start_generation``; when
``released`` says that the old one is gone, ``drop`` moves the living values to a new table, in slices;
``start_generation`` again. Values interned meanwhile, and those of words given to ``Arena.see``, have the new colour
and are alive.
"""

from __future__ import annotations

import time
import weakref
from typing import Final

import numpy as np

from ivm.arena import BREATH, Arena, Generation
from ivm.kernels import arena as kernels
from ivm.kernels import interning
from ivm.kernels.memory import address
from ivm.rows import Words
from ivm.system_memory import give_back

SLICE: Final = 1 << 16
"""Words read, without a lock, in one kernel call."""
LOCKED: Final = 1 << 11
"""Slots or words handled per hold of the lock, for which writers wait: some tenths of a millisecond."""
SPARSE: Final = 0.75
"""A chunk with less than this fraction alive is retired; the bytes of its living values are copied."""


class Sweep:
    """One sweep; call one method at a time. ``begin``, ``condemn`` and ``turn`` must not run during a commit."""

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
        """Starts the sweep: values interned or seen from now on count as used."""
        with self.arena.lock:
            self.arena.state[interning.COLOUR] ^= kernels.COLOUR_FLAG

    def see(self, words: Words) -> None:
        """Marks the values of ids among the words as used. Cost: a look-up for each word, without a lock for those seen
        before."""
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
        """Declares dead the unseen values in the next ``slots`` slots. Returns their ids, or None when all slots are
        done."""
        arena = self.arena
        with arena.lock:
            if arena.move_some(slots):
                return np.zeros(0, np.int64)
            if self._table is not arena.table:  # the table has grown meanwhile
                self._table, self._at = arena.table, 0
            stop = min(self._at + slots, int(arena.state[kernels.MASK]) + 1)
            found = np.empty(stop - self._at, np.int64)
            count = interning.condemn(arena.state, self._at, stop, found)
            done = stop == self._at
            self._at = stop
        return None if done else found[:count]

    def start_generation(self) -> None:
        """Starts the next generation; memory retired so far is freed with the last one. Call it once readers that fetch
        the descriptor for many calls at a time have fetched it again."""
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
        """Returns unreachable memory to the system. Cost: a tenth of a second for half a gigabyte."""
        self._leaving = []
        give_back()

    @property
    def released(self) -> bool:
        """Whether no reader can still have an id that was condemned before the last ``turn``."""
        return self._old is None or self._old() is None

    def drop(self) -> None:
        """Moves the living values to a new table, leaving dead values and their bytes behind. Commits go on
        concurrently."""
        assert self.released
        arena = self.arena
        with arena.lock:
            arena.move_rest()
            arena.fill_anew()
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
        """The chunks to retire, except the one being filled."""
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
