"""Bytes by id: where the values of interned types live. No Python object per value."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import numpy as np

from ivm.kernels import arena as kernels
from ivm.kernels import interning
from ivm.kernels.memory import address
from ivm.rows import Bytes, Words

_FIRST_SLOTS: Final = 1 << 10
_FIRST_CHUNK: Final = 1 << 14
_LARGEST_CHUNK: Final = 1 << 26
_FIRST_JOURNAL: Final = 1 << 8


def _zeros(words: int) -> Words:
    """int64[words], each page of which is zeroed when it is touched first. numpy would ask for huge pages, and what
    moves to a new table first would touch all of them."""
    pages = mmap.mmap(-1, 8 * words)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, np.int64)


class Generation:
    """A span of an arena's life. Whoever keeps ids where a sweep does not look for them keeps a reference to the
    generation in which they were had: values that died since stay until it is gone.

    Each keeps the ones after it, and ``garbage``: memory given up in it, which someone may still read.
    """

    __slots__ = ("__weakref__", "garbage", "next")

    def __init__(self) -> None:
        self.next: Generation | None = None
        self.garbage: list[object] = []


class Arena:
    """Values' bytes by id; the layout is told in ``ivm.kernels.arena``, the rule for ids in ``ivm.kernels.interning``.

    ``secret``: 16 bytes, the key of the hash that proposes ids; a scratch arena has its parent's. ``id_bits`` below 63
    makes collisions likely, for tests. Writers take a lock, readers none. ``ivm.sweep`` takes out what is not in use.
    Cost: an intern is O(1): a table that is full gets a successor twice as large, to which a few slots move with every
    value that comes; bytes do not move.
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
        """Followed by others: the last of them is being moved from, if any is; readers may be in the rest."""
        self._journal = np.zeros(_FIRST_JOURNAL, np.int64)
        self.state = state = np.zeros(interning.STATE_WORDS, np.int64)
        state[interning.KEY0], state[interning.KEY1] = np.frombuffer(secret, np.int64)
        state[interning.ID_MASK] = -1 if id_bits == 63 else (2 << id_bits) - 1
        state[kernels.TABLE], state[kernels.MASK] = address(self.table), _FIRST_SLOTS - 1
        state[interning.JOURNAL], state[interning.JOURNAL_CAPACITY] = address(self._journal), _FIRST_JOURNAL
        self._parent_descriptor: Words | None = None
        self._descriptor = state[:0]
        self._follow_parent()
        self.publish()

    def __len__(self) -> int:
        """The living values, as far as is known."""
        state = self.state
        return int(state[interning.USED] - state[interning.DEAD_COUNT] - state[interning.RESERVED_COUNT])

    @property
    def dead(self) -> int:
        """Values that a sweep has found no reference to and that someone may still look up."""
        return int(self.state[interning.DEAD_COUNT])

    @property
    def outgrown(self) -> bool:
        """Whether tables are kept that nothing moves from any more: ``ivm.sweep.Sweep.turn`` lets go of them."""
        return len(self.old_tables) > bool(self.state[kernels.OLD])

    @property
    def descriptor(self) -> Words:
        """What kernels read this arena by: raw addresses, valid for all ids made until now and while the generation
        lives that was there before. Fetch it again after interning."""
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

    def intern(self, data: Bytes, offsets: Words) -> Words:
        """The ids of the values ``data[offsets[i]:offsets[i+1]]``, adding those that are new."""
        ids = np.empty(len(offsets) - 1, np.int64)
        with self.lock:
            self._follow_parent()
            done = 0
            while (done := interning.intern_values(self.state, data, offsets, ids, done)) < len(ids):
                self.make_room(int(offsets[done + 1] - offsets[done]))
            self._settle_growth()
        return ids

    def load(self, ids: Words, data: Bytes, offsets: Words) -> int | None:
        """Adds values under the ids they have; the index of the first whose id is other bytes', None when all went."""
        with self.lock:
            done = 0
            while (done := interning.load_values(self.state, data, offsets, ids, done)) < len(ids):
                if done < 0:
                    return -1 - done
                self.make_room(int(offsets[done + 1] - offsets[done]))
            self._settle_growth()
        return None

    def see(self, words: Words) -> None:
        """Ids among these words are in use: a sweep that is under way keeps them, and what it has declared dead comes
        back (into the journal, too)."""
        words = np.ascontiguousarray(words).reshape(-1)
        with self.lock:
            done = 0
            while (done := interning.see_words(self.state, words, done)) < len(words):
                slot = kernels.resolve(self.state, int(words[done]))
                self.make_room(int(kernels.length_of(slot)))
            self._settle_growth()

    def living(self, ids: Words) -> Words:
        """The places of the ids, int64[m], that no sweep has declared dead."""
        held = self.generation
        places = np.empty(len(ids), np.int64)
        count = interning.keep_living(self.descriptor, np.ascontiguousarray(ids), places)
        del held
        return places[:count]

    def ids(self) -> Words:
        """The ids that it has now, int64[n], dead and reserved ones among them. Needs no lock: what moves to a new
        table meanwhile stays where it was."""
        columns = [table[:: kernels.SLOT_WORDS] for table in [*self.old_tables, self.table]]
        found: Words = np.unique(np.concatenate(columns))
        used: Words = found[found != 0]
        return used

    def proposals(self, value: bytes, rounds: int) -> Iterator[int]:
        """The ids that a value asks for, round after round."""
        data = np.frombuffer(value + b"\0", np.uint8)
        for turn in range(rounds):
            yield int(interning.propose(self.state, address(data), len(value), turn))

    def is_taken(self, ident: int) -> bool:
        """Whether an id is some value's, a dead one's too, or kept free."""
        return bool(kernels.resolve(self.state, ident))

    def packed(self, ids: Words) -> tuple[Bytes, Words]:
        """The values' bytes one after the other, and int64[n + 1] where each starts. AssertionError: an unknown id."""
        held = self.generation  # before the descriptor: what it leads to stays until the end
        descriptor = self.descriptor
        offsets = np.empty(len(ids) + 1, np.int64)
        unknown = kernels.measure(descriptor, ids, offsets)
        assert not unknown, "an id that the arena does not have"
        data = np.empty(int(offsets[-1]), np.uint8)
        kernels.gather(descriptor, ids, offsets, data)
        del held
        return data, offsets

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

    def drain_journal(self) -> Words:
        """The ids added or come back since the last call, in order (loaded ones too)."""
        with self.lock:
            used = int(self.state[interning.JOURNAL_USED])
            ids = self._journal[:used].copy()
            self.state[interning.JOURNAL_USED] = 0
        return ids

    def make_room(self, length: int) -> None:
        """For one more value, so long; with the lock."""
        state = self.state
        if state[interning.CHUNK_USED] + length + interning.NUMBER_BYTES > state[interning.CHUNK_CAPACITY]:
            self.add_chunk(length)
        if state[interning.JOURNAL_USED] == state[interning.JOURNAL_CAPACITY]:
            self._journal = np.concatenate([self._journal, np.zeros_like(self._journal)])
            state[interning.JOURNAL], state[interning.JOURNAL_CAPACITY] = address(self._journal), len(self._journal)
        slots = int(state[kernels.MASK]) + 1
        if (int(state[interning.USED]) + 65) * 3 > slots * 2:
            self.follow_with(slots * 2)

    def add_chunk(self, length: int) -> None:
        """A chunk to copy bytes into, at least so long; with the lock."""
        largest = min(_LARGEST_CHUNK, _FIRST_CHUNK << min(len(self.chunks), 12))
        chunk = np.empty(max(length + interning.NUMBER_BYTES, largest), np.uint8)
        assert address(chunk) + len(chunk) <= kernels.ADDRESS_MASK, "an address that a slot has no room for"
        self.chunks = [*self.chunks, chunk]
        self.state[interning.CHUNK], self.state[interning.CHUNK_USED] = address(chunk), 0
        self.state[interning.CHUNK_CAPACITY] = len(chunk)

    def follow_with(self, slots: int) -> None:
        """A new table, to which slots move from now on; with the lock."""
        state = self.state
        self.move_rest()
        table = _zeros(slots * kernels.SLOT_WORDS)
        # a descriptor that someone still holds points into the old table: it stays until a sweep may let it go
        self.old_tables.append(self.table)
        state[kernels.OLD], state[kernels.OLD_MASK] = state[kernels.TABLE], state[kernels.MASK]
        state[interning.OLD_AT] = 0
        self.table = table
        state[kernels.TABLE], state[kernels.MASK] = address(table), slots - 1
        self.publish()

    def move_rest(self) -> None:
        """Ends the move of slots, if one is under way: seldom is anything left. With the lock."""
        while self.move_some(1 << 12):
            pass

    def move_some(self, count: int) -> bool:
        """Goes on with the move of slots; False: there is none any more. With the lock."""
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
        """Lets readers see the tables as they are."""
        self._descriptor = self.state[: kernels.DESCRIPTOR_WORDS].copy()

    def _follow_parent(self) -> None:
        if self.parent is None:
            return
        descriptor = self.parent._descriptor
        self._parent_descriptor = descriptor
        self.state[kernels.PARENT : kernels.PARENT + 4] = descriptor[: kernels.PARENT]
