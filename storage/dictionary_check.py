"""VERIFY DICTIONARY: checks that the dictionary is consistent.

Values and ids are one to one. An id is one that its value's hash proposes, in the first round whose id was not taken,
so that every process with the secret proposes the same. The store has the same pairs, and every id in a row exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from ivm.distinct import distinct
from ivm.rows import Words, unpack
from ivm.words import Schema, Storage
from storage.dictionary import Dictionary, Entries

_PIECE: Final = 1 << 18
"""Values checked at a time."""
_ROUNDS: Final = 64
"""Far more rounds than any value of 63-bit ids needs."""


class Problem(NamedTuple):
    """One finding: an id, what is wrong with it, and its value if it has one."""

    what: str
    ident: int
    value: bytes | None


def check_values(dictionary: Dictionary) -> Iterator[Problem]:
    """Checks that values and ids in memory are one to one, and that each id is one of its value's proposals."""
    held = dictionary.generation  # keeps values that a concurrent sweep finds unused
    fresh = Dictionary(dictionary.secret, id_bits=dictionary.arena.id_bits)
    ids = dictionary.arena.ids()
    for start in range(0, len(ids), _PIECE):
        piece = ids[start : start + _PIECE]
        piece = piece[dictionary.living(piece)]
        data, offsets = dictionary.packed(piece)
        for i in np.flatnonzero(fresh.intern_packed(data, offsets) != piece).tolist():
            value = data[offsets[i] : offsets[i + 1]].tobytes()
            what = _later_round(dictionary, int(piece[i]), value)
            if what is not None:
                yield Problem(what, int(piece[i]), value)
    del held


def _later_round(dictionary: Dictionary, ident: int, value: bytes) -> str | None:
    """What is wrong with an id that is not its value's first proposal in an empty dictionary; None if a collision
    explains it."""
    for proposed in dictionary.arena.proposals(value, _ROUNDS):
        if proposed == ident:
            return None
        if not dictionary.arena.is_taken(proposed):
            return "not what its value proposes: an earlier proposal is free"
        if len(dictionary.living(np.array([proposed]))) and dictionary.lookup_one(proposed) == value:
            return "a second id of its value"
    return "not what its value proposes"


def check_stored(dictionary: Dictionary, stored: Entries) -> Iterator[Problem]:
    """Checks that the store's pairs match memory's. Pairs swept from memory are removed from the store later."""
    ids, data, offsets = stored
    repeated = np.unique(ids, return_counts=True)
    for ident in repeated[0][repeated[1] > 1].tolist():
        yield Problem("stored more than once", ident, None)
    for start in range(0, len(ids), _PIECE):
        piece = slice(start, min(start + _PIECE, len(ids)))
        places = dictionary.living(ids[piece]) + start
        held, bounds = dictionary.packed(ids[places])
        for i, place in enumerate(places.tolist()):
            value = data[offsets[place] : offsets[place + 1]]
            if not np.array_equal(value, held[bounds[i] : bounds[i + 1]]):
                yield Problem("stored with another value", int(ids[place]), value.tobytes())


def check_rows(dictionary: Dictionary, rows: Words, schema: Schema) -> Iterator[Problem]:
    """Checks that every id in rows of this schema's layout exists."""
    for column, vector in zip(schema, unpack(rows, schema), strict=True):
        if column.type.storage is Storage.DIRECT:
            continue
        words = vector.words if vector.nulls is None else vector.words[~vector.nulls]
        ids = distinct(words[words & 1 != 0] if column.type.storage is Storage.NUMERIC else words)
        missing = np.ones(len(ids), np.bool_)
        missing[dictionary.living(ids)] = False
        for ident in ids[missing].tolist():
            if not dictionary.arena.is_taken(ident):  # a value that died after the rows were read can still be read
                yield Problem("in a row, and without a value", ident, None)
