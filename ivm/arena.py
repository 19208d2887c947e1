"""Bytes by id: where the values of interned types live. No Python object per value."""

from __future__ import annotations

import threading
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ivm.kernels import arena as kernels
from ivm.rows import Words

Bytes = NDArray[np.uint8]

_FIRST_SLOTS: Final = 1 << 10
_FIRST_CHUNK: Final = 1 << 14
_LARGEST_CHUNK: Final = 1 << 26
_FIRST_JOURNAL: Final = 1 << 8


def _address(array: NDArray[np.int64] | Bytes) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


class Arena:
    """Values' bytes by id, append-only; the layout and the rule for ids are told in ``ivm.kernels.arena``.

    ``secret``: 16 bytes, the key of the hash that proposes ids; a scratch arena has its parent's. ``id_bits`` below 63
    makes collisions likely, for tests. Writers take a lock, readers none.
    Cost: an intern is O(1) amortised: growing doubles the table (a rehash of all slots) and never moves bytes.
    """

    def __init__(self, secret: bytes, parent: Arena | None = None, id_bits: int = 63) -> None:
        assert len(secret) == 16
        assert parent is None or parent.parent is None, "a scratch arena has no scratch of its own"
        self.parent: Arena | None = parent
        self._lock = threading.Lock()
        self._chunks: list[Bytes] = []
        self._table = np.zeros(_FIRST_SLOTS * 4, np.int64)
        self._journal = np.zeros(_FIRST_JOURNAL, np.int64)
        self._state = np.zeros(kernels.STATE_WORDS, np.int64)
        state = self._state
        state[kernels.KEY0], state[kernels.KEY1] = np.frombuffer(secret, np.int64)
        state[kernels.ID_MASK] = -1 if id_bits == 63 else (2 << id_bits) - 1
        state[kernels.TABLE], state[kernels.MASK] = _address(self._table), _FIRST_SLOTS - 1
        state[kernels.JOURNAL], state[kernels.JOURNAL_CAPACITY] = _address(self._journal), _FIRST_JOURNAL
        self._parent_table: Words | None = None
        self._old_tables: list[Words] = []
        self._descriptor = self._state[:0]
        self._follow_parent()
        self._publish()

    def __len__(self) -> int:
        return int(self._state[kernels.USED])

    @property
    def descriptor(self) -> Words:
        """What kernels read this arena by, int64[4] of raw addresses; valid for all ids made until now and while the
        arena lives. Fetch it again after interning."""
        if self.parent is not None and self._parent_table is not self.parent._table:
            with self._lock:
                self._follow_parent()
                self._publish()
        return self._descriptor

    @property
    def byte_size(self) -> int:
        """Memory held, in bytes."""
        return sum(c.nbytes for c in self._chunks) + self._table.nbytes * 2 + self._journal.nbytes

    def intern(self, data: Bytes, offsets: Words) -> Words:
        """The ids of the values ``data[offsets[i]:offsets[i+1]]``, adding those that are new."""
        ids = np.empty(len(offsets) - 1, np.int64)
        with self._lock:
            self._follow_parent()
            done = 0
            while (done := kernels.intern_values(self._state, data, offsets, ids, done)) < len(ids):
                self._make_room(int(offsets[done + 1] - offsets[done]))
        return ids

    def load(self, ids: Words, data: Bytes, offsets: Words) -> int | None:
        """Adds values under the ids they have; the index of the first whose id is other bytes', None when all went."""
        with self._lock:
            done = 0
            while (done := kernels.load_values(self._state, data, offsets, ids, done)) < len(ids):
                if done < 0:
                    return -1 - done
                self._make_room(int(offsets[done + 1] - offsets[done]))
        return None

    def packed(self, ids: Words) -> tuple[Bytes, Words]:
        """The values' bytes one after the other, and int64[n + 1] where each starts. AssertionError: an unknown id."""
        descriptor = self.descriptor
        offsets = np.empty(len(ids) + 1, np.int64)
        unknown = kernels.measure(descriptor, ids, offsets)
        assert not unknown, "an id that the arena does not have"
        data = np.empty(int(offsets[-1]), np.uint8)
        kernels.gather(descriptor, ids, offsets, data)
        return data, offsets

    def prefixes(self, ids: Words) -> Words:
        """The first eight bytes of each value as an order-preserving word."""
        out = np.empty(len(ids), np.int64)
        kernels.prefixes(self.descriptor, ids, out)
        return out

    def compare(self, left: Words, right: Words) -> Words:
        """-1, 0, 1 for each pair of ids, by their bytes."""
        out = np.empty(len(left), np.int64)
        kernels.compare_many(self.descriptor, left, right, out)
        return out

    def drain_journal(self) -> Words:
        """The ids added since the last call, in order (loaded ones too)."""
        with self._lock:
            used = int(self._state[kernels.JOURNAL_USED])
            ids = self._journal[:used].copy()
            self._state[kernels.JOURNAL_USED] = 0
        return ids

    def _make_room(self, length: int) -> None:
        state = self._state
        if state[kernels.CHUNK_USED] + length > state[kernels.CHUNK_CAPACITY]:
            largest = min(_LARGEST_CHUNK, _FIRST_CHUNK << min(len(self._chunks), 12))
            chunk = np.empty(max(length, largest), np.uint8)
            self._chunks.append(chunk)
            state[kernels.CHUNK], state[kernels.CHUNK_USED] = _address(chunk), 0
            state[kernels.CHUNK_CAPACITY] = len(chunk)
        if state[kernels.JOURNAL_USED] == state[kernels.JOURNAL_CAPACITY]:
            self._journal = np.concatenate([self._journal, np.zeros_like(self._journal)])
            state[kernels.JOURNAL], state[kernels.JOURNAL_CAPACITY] = _address(self._journal), len(self._journal)
        slots = int(state[kernels.MASK]) + 1
        if (int(state[kernels.USED]) + 1) * 3 > slots * 2:
            self._grow_table(slots * 2)

    def _grow_table(self, slots: int) -> None:
        state = self._state
        table = np.zeros(slots * 4, np.int64)
        kernels.rehash(int(state[kernels.TABLE]), int(state[kernels.MASK]), _address(table), slots - 1)
        # a descriptor that someone still holds points into the old table: it stays alive (their sizes sum to one more)
        self._old_tables.append(self._table)
        self._table = table
        state[kernels.TABLE], state[kernels.MASK] = _address(table), slots - 1
        self._publish()

    def _publish(self) -> None:
        self._descriptor = self._state[: kernels.DESCRIPTOR_WORDS].copy()

    def _follow_parent(self) -> None:
        if self.parent is None:
            return
        table = self.parent._table
        self._parent_table = table
        self._state[kernels.PARENT_TABLE] = _address(table)
        self._state[kernels.PARENT_MASK] = len(table) // 4 - 1
