"""The algebra of ``Gather``: building, composing and recognising programs that only move words and null bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

import numpy as np

from ivm.graph import Gather
from ivm.rows import Words
from ivm.words import Schema, null_words, row_width

FEW: Final = 64
"""Up to this many rows, one numpy call for all words is faster than one for each word."""


NARROW: Final = 64
"""Up to so many columns, layouts are kept, since most statements need the same few."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The position of a column in a row: its word, and its null bit (word, bit); None: it is never NULL."""

    word: int
    null: tuple[int, int] | None = None


def moved(cell: Cell, by: int) -> Cell:
    """The same cell in a row with ``by`` more words in front."""
    return Cell(cell.word + by, None if cell.null is None else (cell.null[0] + by, cell.null[1]))


def width(schema: Schema) -> int:
    """The number of words of a row of ``schema``."""
    return row_width(schema)


def cells(schema: Schema, base: int = 0) -> tuple[Cell, ...]:
    """The cells of a row of ``schema`` that starts at word ``base``."""
    nullable = nullability(schema)
    return (_narrow_cells if len(nullable) <= NARROW else cells_of)(nullable, base)


def nullability(schema: Schema) -> tuple[bool, ...]:
    """Which columns may be NULL: with their number, all that layouts depend on."""
    return tuple([c.nullable for c in schema])


def cells_of(nullable: tuple[bool, ...], base: int = 0) -> tuple[Cell, ...]:
    """``cells`` of columns of which these may be NULL."""
    nulls = base + len(nullable)
    return tuple([Cell(base + i, (nulls + i // 64, i % 64) if null else None) for i, null in enumerate(nullable)])


_narrow_cells = lru_cache(1024)(cells_of)


def row_of(sources: Sequence[Cell | None], schema: Schema) -> Gather:
    """The gather that makes a row of ``schema`` from cells; None stands for a column that is always NULL.

    A gather cannot set a null bit that its input lacks: padding with NULLs sets the bits afterwards
    (``planner.physical.row_programs.Pad``).
    """
    assert len(sources) == len(schema)
    words = [-1 if s is None else s.word for s in sources] + [-1] * null_words(schema)
    first = len(schema)
    bits = []
    for i, source in enumerate(sources):
        if source is not None and source.null is not None:
            assert schema[i].nullable, "a nullable cell in a column that is NOT NULL"
            bits.append((*source.null, first + i // 64, i % 64))
    return Gather(tuple(words) or (-1,), tuple(bits))


def trusted_row(at: Sequence[Cell], schema: Schema) -> Gather:
    """``row_of`` for a caller that guarantees that cells have no NULLs where a column is NOT NULL."""
    return row_of([c if s.nullable else Cell(c.word) for c, s in zip(at, schema, strict=True)], schema)


def without_kept_bits(gather: Gather) -> Gather:
    """The gather with words copied whole where it copies a word's bits to the same places of one that has no others.

    The caller guarantees that no other bits of such a word are set.
    """
    sources: dict[int, set[int]] = {}
    targets: dict[int, set[int]] = {}
    moved: set[int] = set()
    for word, bit, target, target_bit in gather.bits:
        sources.setdefault(target, set()).add(word)
        targets.setdefault(word, set()).add(target)
        if bit != target_bit or gather.words[target] >= 0:
            moved.add(target)
    kept = {
        target: word
        for target, (word, *others) in sources.items()
        if not others and len(targets[word]) == 1 and target not in moved
    }
    words = tuple(kept.get(k, w) for k, w in enumerate(gather.words))
    return Gather(words, tuple(b for b in gather.bits if b[2] not in kept), gather.drop_if)


@lru_cache(256)
def identity(width: int) -> Gather:
    """The gather that changes nothing."""
    return Gather(_in_order(width))


def is_identity(gather: Gather, width: int) -> bool:
    """Whether a gather over rows of ``width`` words changes nothing."""
    return not gather.bits and not gather.drop_if and gather.words == _in_order(width)


def columns(schema: Schema, indexes: Sequence[int], target: Schema | None = None) -> Gather:
    """The gather that selects columns of a row, as a row of ``target`` (default: the columns' own schema).

    ``target`` may be nullable where the source is not. In the opposite case the caller guarantees that there are no
    NULLs.
    """
    target = target or tuple(schema[i] for i in indexes)
    if target == schema and tuple(indexes) == tuple(range(len(schema))):
        return identity(width(schema))
    at = cells(schema)
    return trusted_row([at[i] for i in indexes], target)


def compose(first: Gather, second: Gather) -> Gather:
    """The gather that does ``first``, then ``second``."""
    if is_identity(first, len(first.words)):
        return second
    words = tuple(-1 if w < 0 else first.words[w] for w in second.words)
    onto: dict[int, list[tuple[int, int, int]]] = {}
    for word, bit, out, out_bit in first.bits:
        onto.setdefault(out, []).append((word, bit, out_bit))
    bits: list[tuple[int, int, int, int]] = []
    for k, w in enumerate(second.words):
        bits += [(word, bit, k, out_bit) for word, bit, out_bit in onto.get(w, ())]
    for w, b, out, out_bit in second.bits:
        bits += [(word, bit, out, out_bit) for word, bit in _sources(first, onto, w, b)]
    drops = list(first.drop_if)
    for w, b in second.drop_if:
        drops += _sources(first, onto, w, b)
    return Gather(words, tuple(dict.fromkeys(bits)), tuple(dict.fromkeys(drops)))


def _sources(first: Gather, onto: dict[int, list[tuple[int, int, int]]], word: int, bit: int) -> list[tuple[int, int]]:
    found = [(w, b) for w, b, out_bit in onto.get(word, ()) if out_bit == bit]
    if first.words[word] >= 0:
        found.append((first.words[word], bit))
    return found


@lru_cache(4096)
def _places(words: tuple[int, ...]) -> tuple[Words, list[int]]:
    """The source words for ``numpy.take``, and the output words that are to be 0."""
    return np.maximum(np.array(words, np.int64), 0), [k for k, w in enumerate(words) if w < 0]


@cache
def _in_order(width: int) -> tuple[int, ...]:
    return tuple(range(width))


def append(gather: Gather, words: Sequence[int]) -> Gather:
    """The same gather with more words copied at the end."""
    return Gather((*gather.words, *words), gather.bits, gather.drop_if)


def apply(gather: Gather, rows: Words) -> tuple[Words, Words | None]:
    """(moved rows, int64[m, len(words)]; the source index of each, None if no row was dropped). Plain numpy."""
    source: Words | None = None
    if gather.drop_if:
        keep = np.ones(len(rows), np.bool_)
        for word, bit in gather.drop_if:
            keep &= (rows[:, word] >> np.int64(bit)) & 1 == 0
        source = np.flatnonzero(keep).astype(np.int64)
        rows = rows[source]
    if not gather.bits and gather.words == _in_order(rows.shape[1]):
        return rows, source
    if len(rows) <= FEW and rows.shape[1]:
        places, holes = _places(gather.words)
        out = rows.take(places, axis=1)
        if holes:
            out[:, holes] = 0
    else:
        out = np.zeros((len(rows), len(gather.words)), np.int64)
        for k, w in enumerate(gather.words):
            if w >= 0:
                out[:, k] = rows[:, w]
    for move in moves(gather.bits) if gather.bits else ():
        out[:, move.target] |= move.apply(rows[:, move.word])
    return out, source


@dataclass(frozen=True, slots=True)
class Move:
    """Bits that go from one word to another by one distance. ``mask``: where they arrive."""

    word: int
    target: int
    left: np.int64
    right: np.int64
    mask: np.int64

    def apply(self, words: Words) -> Words:
        """The bits of the target."""
        return ((words << self.left) >> self.right) & self.mask


@lru_cache(4096)
def moves(bits: tuple[tuple[int, int, int, int], ...]) -> tuple[Move, ...]:
    """All of a word together: a row of a thousand columns has as many bits in a few words."""
    masks: dict[tuple[int, int, int], int] = {}
    for word, bit, target, target_bit in bits:
        key = word, target, target_bit - bit
        masks[key] = masks.get(key, 0) | 1 << target_bit
    return tuple(
        [
            Move(word, target, np.int64(max(by, 0)), np.int64(max(-by, 0)), np.uint64(mask).astype(np.int64))
            for (word, target, by), mask in masks.items()
        ]
    )


def apply_to_one(gather: Gather, row: Sequence[int]) -> list[int] | None:
    """``apply`` to one row, without numpy; None if the row is dropped."""
    if any(row[word] >> bit & 1 for word, bit in gather.drop_if):
        return None
    out = [row[word] if word >= 0 else 0 for word in gather.words]
    for word, bit, target, target_bit in gather.bits:
        if row[word] >> bit & 1:
            out[target] |= 1 << target_bit if target_bit < 63 else -1 << 63
    return out
