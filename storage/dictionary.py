"""Interning: values ↔ words. What the ids are and how collisions are settled stands in ``ivm.kernels.arena``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ivm.errors import SqlError
from ivm.rows import Bytes, Words

if TYPE_CHECKING:
    from ivm.arena import Arena, Generation

Entries = tuple[Words, Bytes, Words]
"""Ids, their values' bytes one after the other, and int64[n + 1] where each value starts."""

_RECENT_LIMIT: Final = 4096
_RECENT_BYTES: Final = 64
_FEW: Final = 16
_serials = count(1)


class Dictionary:
    """The database's values by id; with a ``parent``, a scratch dictionary of a one-shot query.

    Ids are odd, stable for ever and the same in every process that has the secret, but for the rare value whose
    proposal was taken. A scratch dictionary finds what its parent has and keeps new values to itself; its ids agree
    with the parent's for values that the parent gets later (collisions of 63-bit hashes aside).

    Any thread may intern and look up. ``serial`` tells dictionaries apart in caches of words. ``memos`` is where the
    evaluator remembers results of immutable functions, in bounded dicts. A sweep (``ivm.sweep``) begins with new memos
    and another ``serial``, so that what is taken from them later is seen to be in use.
    """

    def __init__(self, secret: bytes, parent: Dictionary | None = None, id_bits: int = 63) -> None:
        from ivm.arena import Arena

        self.arena: Arena = Arena(secret, None if parent is None else parent.arena, id_bits)
        self.secret = secret
        self.serial = next(_serials)
        self.guarded = False
        """While values may be dead: whoever feeds words that were had before says so (``see``)."""
        self.memos: dict[Any, dict[Any, Any]] = {}
        self._ids: dict[bytes, int] = {}
        self._values: dict[int, bytes] = {}

    def __len__(self) -> int:
        """How many values it has of its own."""
        return len(self.arena)

    @property
    def generation(self) -> Generation:
        """To be kept by who keeps ids for later where a sweep does not see them: their values stay."""
        return self.arena.generation

    def see(self, words: Words) -> None:
        """Ids among the words are in use, though they were not interned just now."""
        self.arena.see(words)

    def living(self, ids: Words) -> Words:
        """The places of the ids, int64[m], that no sweep has declared dead."""
        return self.arena.living(ids)

    def forget_recent(self) -> None:
        """A sweep begins, or has ended: nothing is taken any more from what was remembered."""
        self.serial = next(_serials)
        self.memos, self._ids, self._values = {}, {}, {}

    def scratch(self) -> Dictionary:
        """A scratch dictionary on top of this one."""
        return Dictionary(self.secret, self)

    def intern_one(self, value: bytes) -> int:
        """The id of one value."""
        ids = self._ids
        known = ids.get(value)
        if known is not None:
            return known
        ident = int(self._intern([value])[0])
        _remember(ids, value, ident, len(value))
        return ident

    def intern(self, values: Sequence[bytes]) -> Words:
        """The ids of values, int64[n], adding those that are new."""
        if len(values) > _FEW:
            return self._intern(values)
        return np.array([self.intern_one(v) for v in values], np.int64)

    def intern_packed(self, data: Bytes, offsets: Words) -> Words:
        """The ids of the values ``data[offsets[i]:offsets[i+1]]``, int64[n]."""
        return self.arena.intern(data, np.asarray(offsets, np.int64))

    def lookup_one(self, ident: int) -> bytes:
        """The bytes of one id."""
        values = self._values
        known = values.get(ident)
        if known is not None:
            return known
        value = self.arena.packed(np.array([ident], np.int64))[0].tobytes()
        _remember(values, ident, value, len(value))
        return value

    def lookup(self, ids: Words) -> list[bytes]:
        """The bytes of each id. AssertionError: an id that was never given out."""
        if len(ids) <= _FEW:
            return [self.lookup_one(i) for i in ids.tolist()]
        data, offsets = self.arena.packed(ids)
        whole, bounds = data.tobytes(), offsets.tolist()
        return [whole[a:b] for a, b in pairwise(bounds)]

    def packed(self, ids: Words) -> tuple[NDArray[np.uint8], Words]:
        """The values' bytes one after the other, uint8[total], and int64[n + 1] where each starts."""
        return self.arena.packed(np.ascontiguousarray(ids))

    def drain_new(self) -> list[Entries]:
        """The entries added since the last call, in order: a commit's log record holds them before it names them."""
        ids = self.arena.drain_journal()
        return [(ids, *self.arena.packed(ids))] if len(ids) else []

    def load(self, ids: Words, data: Bytes, offsets: Words) -> Words:
        """Brings back entries at a restart; gives the ids that were not there yet, which ``drain_new`` leaves out.

        Idempotent. To be called with nothing left to drain. XX001: an id with two values.
        """
        assert not self.arena.drain_journal().size, "new entries are drained before others are loaded"
        clash = self.arena.load(np.ascontiguousarray(ids), data, np.asarray(offsets, np.int64))
        if clash is not None:
            raise SqlError("XX001", f"the dictionary is damaged: id {int(ids[clash])} has two values")
        return self.arena.drain_journal()

    def _intern(self, values: Sequence[bytes]) -> Words:
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum([len(v) for v in values], out=offsets[1:])
        return self.arena.intern(np.frombuffer(bytearray(b"".join(values)), np.uint8), offsets)


def _remember(recent: dict[Any, Any], key: object, found: object, size: int) -> None:
    """Into the dict that was there before the arena was asked: a sweep may have replaced it."""
    if size <= _RECENT_BYTES:
        if len(recent) >= _RECENT_LIMIT:
            recent.clear()
        recent[key] = found
