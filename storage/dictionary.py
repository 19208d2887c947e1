"""Interning: values ↔ words. ``ivm.kernels.arena`` describes the ids and how collisions are resolved."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ivm.errors import SqlError
from ivm.rows import Bytes, Words
from ivm.stops import may_move, move
from storage.long_values import LONG, copied, laid_out

if TYPE_CHECKING:
    from ivm.arena import Arena, Generation

Entries = tuple[Words, Bytes, Words]
"""Ids, their values' concatenated bytes, and int64[n + 1] offsets into them."""

_RECENT_LIMIT: Final = 4096
_RECENT_BYTES: Final = 64
_FEW: Final = 16
_serials = count(1)


class Dictionary:
    """The database's values by id. With a ``parent``, a scratch dictionary for a one-shot query.

    Ids are odd and permanent. They are the same in every process that has the secret, except for the rare value whose
    proposed id was taken. A scratch dictionary looks values up in its parent and keeps new ones to itself. Its ids
    agree with those that the parent would give later (collisions of 63-bit hashes aside).

    Thread-safe for interning and lookup. ``serial`` identifies the dictionary in caches of words. ``memos`` is where
    the evaluator caches results of immutable functions, in bounded dicts. A sweep (``ivm.sweep``) starts with new memos
    and a new ``serial``, so that ids taken from caches afterwards are seen to be in use.
    """

    def __init__(self, secret: bytes, parent: Dictionary | None = None, id_bits: int = 63) -> None:
        from ivm.arena import Arena

        self.is_scratch = parent is not None
        self.arena: Arena = Arena(secret, None if parent is None else parent.arena, id_bits)
        self.secret = secret
        self.serial = next(_serials)
        self.guarded = False
        """True while a sweep may remove values. A caller that then uses words obtained earlier must report them
        (``see``)."""
        self.memos: dict[Any, dict[Any, Any]] = {}
        self._ids: dict[bytes, int] = {}
        self._values: dict[int, bytes] = {}

    def __len__(self) -> int:
        """The number of values held here, without the parent's."""
        return len(self.arena)

    @property
    def generation(self) -> Generation:
        """Keep this as long as you keep ids where a sweep does not see them: their values stay."""
        return self.arena.generation

    def see(self, words: Words) -> None:
        """Marks ids among the words as in use, though they were not interned just now."""
        self.arena.see(words)

    def living(self, ids: Words) -> Words:
        """The positions, int64[m], of the ids that no sweep has declared dead."""
        return self.arena.living(ids)

    def forget_recent(self) -> None:
        """Clears the caches; called when a sweep begins or ends."""
        self.serial = next(_serials)
        self.memos, self._ids, self._values = {}, {}, {}

    def scratch(self) -> Dictionary:
        """A scratch dictionary on top of this one."""
        return Dictionary(self.secret, self)

    def rehearse(self) -> None:
        """Adds a value and reads it, so that the kernels for that are loaded now and not while others wait."""
        self.lookup_one(self.intern_one(b"rehearsed"))

    def intern_one(self, value: bytes) -> int:
        """The id of one value."""
        if len(value) > _RECENT_BYTES:  # looking it up in a dict would hash it, 50 ms for 100 MB
            return int(self._intern([value])[0])
        ids = self._ids
        known = ids.get(value)
        if known is not None:
            return known
        data, offsets = np.frombuffer(bytearray(value), np.uint8), np.array([0, len(value)])
        ident = self.arena.intern(data, offsets).item(0)
        _remember(ids, value, ident, len(value))
        return ident

    def intern(self, values: Sequence[bytes]) -> Words:
        """The ids of values, int64[n]. New values are added."""
        if len(values) > _FEW:
            return self._intern(values)
        return np.array([self.intern_one(v) for v in values], np.int64)

    def intern_packed(self, data: Bytes, offsets: Words) -> Words:
        """The ids of the values ``data[offsets[i]:offsets[i+1]]``, int64[n]."""
        return self.arena.intern(data, np.asarray(offsets, np.int64))

    def lookup_one(self, ident: int) -> bytes:
        """The value of one id."""
        values = self._values
        known = values.get(ident)
        if known is not None:
            return known
        ids = np.array([ident], np.int64)
        self._leave_if_long(ids)
        value = copied(self.arena.packed(ids)[0])
        _remember(values, ident, value, len(value))
        return value

    def lookup(self, ids: Words) -> list[bytes]:
        """The value of each id. AssertionError for an id that was never assigned."""
        if len(ids) <= _FEW:
            return [self.lookup_one(i) for i in ids.tolist()]
        self._leave_if_long(ids)
        data, offsets = self.arena.packed(ids)
        whole, bounds = data.tobytes(), offsets.tolist()
        return [whole[a:b] for a, b in pairwise(bounds)]

    def _leave_if_long(self, ids: Words) -> None:
        """Raises Stopped if the work is to go on elsewhere (``ivm.stops.movable``): fetching these takes long."""
        if may_move() and self.arena.size(ids) > LONG:
            move()

    def size(self, ids: Words) -> int:
        """The bytes of the values together."""
        return self.arena.size(np.ascontiguousarray(ids))

    def packed(self, ids: Words) -> tuple[NDArray[np.uint8], Words]:
        """The values' concatenated bytes, uint8[total], and their offsets, int64[n + 1]."""
        return self.arena.packed(np.ascontiguousarray(ids))

    @property
    def has_new(self) -> bool:
        """Whether entries have been added since the last ``drain_new``."""
        return self.arena.has_journal

    def drain_new(self) -> list[Entries]:
        """The entries added since the last call, in order. A commit's log record stores them before rows that refer to
        them."""
        ids = self.arena.drain_journal()
        return [(ids, *self.arena.packed(ids))] if len(ids) else []

    def load(self, ids: Words, data: Bytes, offsets: Words) -> Words:
        """Restores entries at a restart and returns the ids that were not present. ``drain_new`` omits these.

        Idempotent. Call it only with nothing left to drain. XX001: an id with two values.
        """
        assert not self.arena.drain_journal().size, "new entries are drained before others are loaded"
        clash = self.arena.load(np.ascontiguousarray(ids), data, np.asarray(offsets, np.int64))
        if clash is not None:
            raise SqlError("XX001", f"the dictionary is damaged: id {int(ids[clash])} has two values")
        return self.arena.drain_journal()

    def _intern(self, values: Sequence[bytes]) -> Words:
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum([len(v) for v in values], out=offsets[1:])
        if offsets[-1] > LONG:
            return self.arena.intern(laid_out(values), offsets)
        return self.arena.intern(np.frombuffer(bytearray(b"".join(values)), np.uint8), offsets)


def _remember(recent: dict[Any, Any], key: object, found: object, size: int) -> None:
    """Caches into the dict fetched before the arena was asked: a sweep may have replaced it since."""
    if size <= _RECENT_BYTES:
        if len(recent) >= _RECENT_LIMIT:
            recent.clear()
        recent[key] = found
