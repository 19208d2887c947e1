"""Arenas: the bytes of interned values, stored by id without a Python object per value."""

from __future__ import annotations

import mmap
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import numpy as np

from ivm.distinct import distinct
from ivm.kernels import arena as kernels
from ivm.kernels import interning
from ivm.kernels.memory import address
from ivm.rows import Bytes, Words, plain

_FIRST_SLOTS: Final = 1 << 10
_FIRST_CHUNK: Final = 1 << 14
_LARGEST_CHUNK: Final = 1 << 26
_FIRST_JOURNAL: Final = 1 << 8
_KEPT_JOURNAL: Final = 1 << 16
"""A longer journal is not kept for the next entries."""
INTERNED_AT_ONCE: Final = 1 << 14
"""Values interned per hold of the lock, for which other writers wait: some 4 ms."""
SEEN_AT_ONCE: Final = 1 << 16
"""Words marked per hold of the lock: some 2 ms."""
BREATH: Final = 0.0002
"""Seconds left to other writers between two holds of the lock."""


def _zeros(words: int) -> Words:
    """int64[words], each page zeroed on first touch. numpy would ask for huge pages, and the first slots moved to a new
    table would touch all of them."""
    pages = mmap.mmap(-1, 8 * words)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # the system's kernel lacks them
            pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, np.int64)


class Generation:
    """A span of an arena's life. A reader that keeps ids where a sweep does not look holds a reference to the
    generation in which it got them; values that died since then are kept until that generation is freed.

    Each generation references the next one, and ``garbage``: memory retired in it that a reader may still access.
    """

    __slots__ = ("__weakref__", "garbage", "next")

    def __init__(self) -> None:
        self.next: Generation | None = None
        self.garbage: list[object] = []


class Arena:
    """Values' bytes by id. ``ivm.kernels.arena`` describes the layout, ``ivm.kernels.interning`` how ids are chosen.

    ``secret``: 16 bytes, the key of the hash that proposes ids; a scratch arena uses its parent's. ``id_bits`` below 63
    makes collisions likely, for tests. Writers take a lock, readers do not. ``ivm.sweep`` removes unused values. Cost:
    O(1) per intern. A full table gets a successor of twice the size, to which each new value moves a few slots; bytes
    do not move.
    """

    def __init__(self, secret: bytes, parent: Arena | None = None, id_bits: int = 63) -> None:
        assert len(secret) == 16
        assert parent is None or parent.parent is None, "a scratch arena has no scratch of its own"
        self.parent: Arena | None = parent
        self.id_bits = id_bits
        self.generation: Generation = Generation() if parent is None else parent.generation
        self.lock = threading.Lock()
        self.chunks: list[Bytes] = []
        self.table = np.zeros(_FIRST_SLOTS * kernels.SLOT_WORDS, np.int64)
        self.old_tables: list[Words] = []
        """Tables that have a successor. Slots may still be moving out of the last one; readers may still use the
        others."""
        self.state = state = np.zeros(interning.STATE_WORDS, np.int64)
        self._journal = state[:0]
        self._keep_journal(np.zeros(_FIRST_JOURNAL, np.int64))
        state[interning.KEY0], state[interning.KEY1] = np.frombuffer(secret, np.int64)
        state[interning.ID_MASK] = -1 if id_bits == 63 else (2 << id_bits) - 1
        state[kernels.TABLE], state[kernels.MASK] = address(self.table), _FIRST_SLOTS - 1
        self._parent_descriptor: Words | None = None
        self._descriptor = state[:0]
        self._follow_parent()
        self.publish()

    def __len__(self) -> int:
        """The number of living values, as far as is known."""
        state = self.state
        return int(state[interning.USED] - state[interning.DEAD_COUNT] - state[interning.RESERVED_COUNT])

    @property
    def dead(self) -> int:
        """The number of values that a sweep found unreferenced but that a reader may still look up."""
        return int(self.state[interning.DEAD_COUNT])

    @property
    def outgrown(self) -> bool:
        """Whether there are old tables whose slots have all moved; ``ivm.sweep.Sweep.turn`` releases them."""
        return len(self.old_tables) > bool(self.state[kernels.OLD])

    @property
    def descriptor(self) -> Words:
        """The arena's descriptor for kernels: raw addresses, valid for all ids made so far, as long as the generation
        fetched before it is alive. Fetch it again after interning."""
        if self.parent is not None and self._parent_descriptor is not self.parent._descriptor:
            with self.lock:
                self._follow_parent()
                self.publish()
        return self._descriptor

    @property
    def byte_size(self) -> int:
        """Memory held, in bytes."""
        tables = self.table.nbytes + sum(table.nbytes for table in self.old_tables)
        return sum(c.nbytes for c in self.chunks) + tables + self._journal.nbytes

    @property
    def filled(self) -> int:
        """Bytes of values, dead ones too, and of what is left free in all chunks but the last."""
        return sum(chunk.nbytes for chunk in self.chunks[:-1]) + int(self.state[interning.CHUNK_USED])

    def intern(self, data: Bytes, offsets: Words) -> Words:
        """The ids of the values ``data[offsets[i]:offsets[i+1]]``, adding those that are new."""
        ids = np.empty(len(offsets) - 1, np.int64)
        done = 0
        while done < len(ids):
            part = ids[: done + INTERNED_AT_ONCE]
            with self.lock:
                self._follow_parent()
                while (done := interning.intern_values(self.state, data, offsets, part, done)) < len(part):
                    self.make_room(int(offsets[done + 1] - offsets[done]))
                self._settle_growth()
            if done < len(ids):
                time.sleep(BREATH)
        return ids

    def load(self, ids: Words, data: Bytes, offsets: Words) -> int | None:
        """Adds values under given ids. Returns the index of the first one whose id belongs to other bytes, or None if
        all were added."""
        ids = plain(ids)
        with self.lock:
            done = 0
            while (done := interning.load_values(self.state, data, offsets, ids, done)) < len(ids):
                if done < 0:
                    return -1 - done
                self.make_room(int(offsets[done + 1] - offsets[done]))
            self._settle_growth()
        return None

    def see(self, words: Words) -> None:
        """Marks ids among these words as used: a sweep in progress keeps them, and values that it has declared dead are
        revived (and added to the journal)."""
        words = np.ascontiguousarray(words).reshape(-1)
        done = 0
        while done < len(words):
            part = words[: done + SEEN_AT_ONCE]
            with self.lock:
                while (done := interning.see_words(self.state, part, done)) < len(part):
                    slot = kernels.resolve(self.state, int(words[done]))
                    self.make_room(int(kernels.length_of(slot)))
                self._settle_growth()
            if done < len(words):
                time.sleep(BREATH)

    def living(self, ids: Words) -> Words:
        """The indexes, int64[m], of those ids that no sweep has declared dead."""
        held = self.generation
        places = np.empty(len(ids), np.int64)
        count = interning.keep_living(self.descriptor, plain(ids), places)
        del held
        return places[:count]

    def ids(self) -> Words:
        """All present ids, int64[n], including dead and reserved ones. Needs no lock: slots that move to a new table
        meanwhile also stay in the old one."""
        columns = [table[:: kernels.SLOT_WORDS] for table in [*self.old_tables, self.table]]
        found: Words = distinct(np.concatenate(columns))
        used: Words = found[found != 0]
        return used

    def proposals(self, value: bytes, rounds: int) -> Iterator[int]:
        """The candidate ids of a value, one per round."""
        data = np.frombuffer(value + b"\0", np.uint8)
        for turn in range(rounds):
            yield int(interning.propose(self.state, address(data), len(value), turn))

    def is_taken(self, ident: int) -> bool:
        """Whether an id belongs to a value, even a dead one, or is reserved."""
        return bool(kernels.resolve(self.state, ident))

    def packed(self, ids: Words) -> tuple[Bytes, Words]:
        """The concatenated bytes of the values, and their offsets int64[n + 1]. AssertionError: an unknown id."""
        held = self.generation  # fetched before the descriptor: keeps what it points to alive
        descriptor, ids = self.descriptor, plain(ids)
        offsets = np.empty(len(ids) + 1, np.int64)
        unknown = kernels.measure(descriptor, ids, offsets)
        assert not unknown, "an id that the arena does not have"
        data = np.empty(int(offsets[-1]), np.uint8)
        kernels.gather(descriptor, ids, offsets, data)
        del held
        return data, offsets

    def size(self, ids: Words) -> int:
        """The bytes of the values together. AssertionError: an unknown id."""
        held = self.generation
        offsets = np.empty(len(ids) + 1, np.int64)
        unknown = kernels.measure(self.descriptor, plain(ids), offsets)
        assert not unknown, "an id that the arena does not have"
        del held
        return int(offsets[-1])

    def prefixes(self, ids: Words) -> Words:
        """The first eight bytes of each value as an order-preserving word."""
        held = self.generation
        out = np.empty(len(ids), np.int64)
        kernels.prefixes(self.descriptor, ids, out)
        del held
        return out

    def compare(self, left: Words, right: Words) -> Words:
        """-1, 0, 1 for each pair of ids, by their bytes."""
        held = self.generation
        out = np.empty(len(left), np.int64)
        kernels.compare_many(self.descriptor, left, right, out)
        del held
        return out

    @property
    def has_journal(self) -> bool:
        """Whether ``drain_journal`` would find something."""
        return bool(self.state[interning.JOURNAL_USED])

    def drain_journal(self) -> Words:
        """The ids added or revived since the last call, in order (loaded ones too)."""
        with self.lock:
            used = int(self.state[interning.JOURNAL_USED])
            ids = self._journal[:used].copy()
            self.state[interning.JOURNAL_USED] = 0
            if len(self._journal) > _KEPT_JOURNAL:
                self._keep_journal(np.zeros(_FIRST_JOURNAL, np.int64))
        return ids

    def _keep_journal(self, journal: Words) -> None:
        self._journal = journal
        self.state[interning.JOURNAL], self.state[interning.JOURNAL_CAPACITY] = address(journal), len(journal)

    def make_room(self, length: int) -> None:
        """Makes room for one more value of ``length`` bytes. Requires the lock."""
        state = self.state
        if state[interning.CHUNK_USED] + length + interning.NUMBER_BYTES > state[interning.CHUNK_CAPACITY]:
            self.add_chunk(length)
        if state[interning.JOURNAL_USED] == state[interning.JOURNAL_CAPACITY]:
            self._keep_journal(np.concatenate([self._journal, np.zeros_like(self._journal)]))
        slots = int(state[kernels.MASK]) + 1
        if (int(state[interning.USED]) + 65) * 3 > slots * 2:
            self.follow_with(slots * 2)

    def add_chunk(self, length: int) -> None:
        """Adds a chunk of at least ``length`` bytes. Requires the lock."""
        held = sum(chunk.nbytes for chunk in self.chunks)
        self._fill(max(length + interning.NUMBER_BYTES, min(_LARGEST_CHUNK, held), _FIRST_CHUNK))

    def fill_anew(self) -> None:
        """Starts a small chunk, so that a sweep may retire all others. Requires the lock."""
        if self.chunks and len(self.chunks[-1]) > _FIRST_CHUNK:
            self._fill(_FIRST_CHUNK)

    def _fill(self, size: int) -> None:
        chunk = np.empty(size, np.uint8)
        assert address(chunk) + len(chunk) <= kernels.ADDRESS_MASK, "an address that a slot has no room for"
        self.chunks = [*self.chunks, chunk]
        self.state[interning.CHUNK], self.state[interning.CHUNK_USED] = address(chunk), 0
        self.state[interning.CHUNK_CAPACITY] = len(chunk)

    def follow_with(self, slots: int) -> None:
        """Starts a new table, to which slots move from now on. Requires the lock."""
        state = self.state
        self.move_rest()
        table = _zeros(slots * kernels.SLOT_WORDS)
        # descriptors still in use point into the old table: it stays until a sweep may release it
        self.old_tables.append(self.table)
        state[kernels.OLD], state[kernels.OLD_MASK] = state[kernels.TABLE], state[kernels.MASK]
        state[interning.OLD_AT] = 0
        self.table = table
        state[kernels.TABLE], state[kernels.MASK] = address(table), slots - 1
        self.publish()

    def move_rest(self) -> None:
        """Completes the move of slots, if one is in progress; usually little is left. Requires the lock."""
        while self.move_some(1 << 12):
            pass

    def move_some(self, count: int) -> bool:
        """Continues the move of slots. False: none is in progress any more. Requires the lock."""
        state = self.state
        if not state[kernels.OLD]:
            return False
        lacking = interning.move_slots(state, count)
        if lacking:
            self.add_chunk(int(lacking))
        self._settle_growth()
        return bool(state[kernels.OLD])

    def _settle_growth(self) -> None:
        state = self.state
        if state[kernels.OLD] and state[interning.OLD_AT] > state[kernels.OLD_MASK]:
            state[kernels.OLD] = state[kernels.OLD_MASK] = state[interning.DROPPING] = 0
            self.publish()

    def publish(self) -> None:
        """Publishes the current tables to readers."""
        self._descriptor = self.state[: kernels.DESCRIPTOR_WORDS].copy()

    def _follow_parent(self) -> None:
        if self.parent is None:
            return
        descriptor = self.parent._descriptor
        self._parent_descriptor = descriptor
        self.state[kernels.PARENT : kernels.PARENT + 4] = descriptor[: kernels.PARENT]
