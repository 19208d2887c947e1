"""The layout of an arrangement's rows: key words first, then the words of the row that are not in the key.

There is one rule, so that a table's arrangement by its primary key is the very node that a join on that key uses.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ivm.graph import Gather
from ivm.words import Schema
from planner import gathers
from planner.gathers import Cell


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of an arranged row: ``gather`` makes [key | val] of a row, ``at`` gives the cell of each column."""

    gather: Gather
    key_width: int
    at: tuple[Cell, ...]

    @property
    def width(self) -> int:
        return len(self.gather.words)

    def restore(self, schema: Schema) -> Gather:
        """The gather from an arranged row back to a row of ``schema``, whose columns come first in the layout."""
        gather = gathers.trusted_row(self.at[: len(schema)], schema)
        more = any(cell.null is not None for cell in self.at[len(schema) :])
        return gather if more else gathers.without_kept_bits(gather)


@dataclass(frozen=True, slots=True)
class Arranging:
    """How an arrangement that is not by columns alone is made of a stored relation's rows: by a row program (None: the
    rows as they are), then ``gather``, with ``key_width`` words as the key."""

    program: Hashable
    gather: Gather
    key_width: int


StoredKey = tuple[int, ...] | Arranging
"""What distinguishes a stored relation's arrangements: key columns, for the layout of ``table_layout``, or how it is
made."""


def arranged(schema: Schema, keys: Sequence[int], null_safe: Sequence[bool] | None = None) -> Layout:
    """The layout by key columns ``keys``.

    A row with a NULL key is dropped, unless that key is ``null_safe``: then more key words hold the keys' null
    bits, 64 each. Without keys the key is one zero word.
    """
    safe = (False,) * len(keys) if null_safe is None else tuple(null_safe)
    nullable = gathers.nullability(schema)
    return (_narrow if len(nullable) <= gathers.NARROW else _arranged)(nullable, tuple(keys), safe)


def _arranged(nullable: tuple[bool, ...], keys: tuple[int, ...], safe: tuple[bool, ...]) -> Layout:
    """The same of a schema, of which only what may be NULL matters."""
    own = gathers.cells_of(nullable)
    width = len(own) + ((len(own) + 63) // 64 if any(nullable) else 0)
    words = [own[k].word for k in keys]
    bits: list[tuple[int, int, int, int]] = []
    drops = []
    for position, (k, s) in enumerate(zip(keys, safe, strict=True)):
        null = own[k].null
        if null is None:
            continue
        if s:
            bits.append((*null, len(keys) + position // 64, position % 64))
        else:
            drops.append(null)
    if any(safe) or not keys:
        words += [-1] * max((len(keys) + 63) // 64, 1)
    key_width = len(words)
    place = {word: position for position, word in reversed(list(enumerate(words[: len(keys)])))}
    rest = [w for w in range(width) if w not in place]
    for word in rest:
        place[word] = len(words)
        words.append(word)
    at = tuple(Cell(place[c.word], None if c.null is None else (place[c.null[0]], c.null[1])) for c in own)
    return Layout(Gather(tuple(words), tuple(bits), tuple(drops)), key_width, at)


_narrow = lru_cache(1024)(_arranged)


def whole_row(schema: Schema) -> Layout:
    """The layout keyed by all words of the row, including null words."""
    width = gathers.width(schema)
    return Layout(gathers.identity(width), width, gathers.cells(schema))


def table_layout(schema: Schema, key: Sequence[int]) -> Layout:
    """The layout of a stored relation's arrangement by columns ``key``; by whole row if there are none."""
    return arranged(schema, key) if key else whole_row(schema)
