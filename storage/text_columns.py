"""Columns of texts as bytes: where each row's value lies, and what can be made of them without a Python object each.

``ivm.kernels.texts`` does the work. A column is made from ids, from words that are numbers, or from bytes; functions of
columns give new ones, which mostly name parts of the same bytes; ``interned`` copies the bytes once, into the
dictionary. Counts of characters are counts of code points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ivm.rows import Bytes, Mask, Words, plain
from ivm.stops import may_move, move, room
from storage.dictionary import Dictionary
from storage.long_values import LONG

LARGE: Final = 16 << 20
"""The most bytes of a column's values together that are worked on at once."""
ALL: Final = 1 << 40
"""More characters than any value has."""


class TooLarge(Exception):
    """The values are too large to be worked on in one go, in which nothing can end the work."""


@dataclass(slots=True)
class TextColumn:
    """Row i's value is the ``lengths[i]`` bytes at the address ``starts[i]``; int64[n] each, and never written to once
    others see the column. ``held`` keeps the memory alive."""

    starts: Words
    lengths: Words
    held: tuple[object, ...]

    def __len__(self) -> int:
        return len(self.starts)

    def copy(self) -> TextColumn:
        return TextColumn(self.starts.copy(), self.lengths.copy(), self.held)

    def rows(self, rows: Words | Mask | slice) -> TextColumn:
        """The column of these rows only."""
        return TextColumn(self.starts[rows], self.lengths[rows], self.held)


def of_ids(ids: Words, dictionary: Dictionary) -> TextColumn:
    """The values of ids. Raises TooLarge, AssertionError for an id that was never assigned."""
    from ivm.kernels import texts

    if len(ids) > 1 and ids.strides == (0,):
        return _repeated(of_ids(ids[:1], dictionary), len(ids))
    generation = dictionary.generation  # before the descriptor: keeps what it points to alive
    column = TextColumn(np.empty(len(ids), np.int64), np.empty(len(ids), np.int64), (dictionary.arena, generation))
    unknown = texts.locate(dictionary.arena.descriptor, plain(ids), column.starts, column.lengths)
    assert not unknown, "an id that the arena does not have"
    size = int(column.lengths.sum())
    if size > LARGE:
        raise TooLarge
    if size > LONG and may_move():
        move()
    return column


def _repeated(column: TextColumn, count: int) -> TextColumn:
    return TextColumn(np.repeat(column.starts, count), np.repeat(column.lengths, count), column.held)


def of_bytes(data: Bytes, offsets: Words) -> TextColumn:
    """The values ``data[offsets[i]:offsets[i+1]]``."""
    return of_parts(data, offsets[:-1], np.diff(offsets))


def of_parts(data: Bytes, starts: Words, lengths: Words) -> TextColumn:
    """The values of ``lengths`` bytes of contiguous ``data`` from ``starts`` on."""
    from ivm.kernels.memory import address

    return TextColumn(address(data) + starts, lengths, (data,))


def of_value(value: bytes, count: int) -> TextColumn:
    """One value in every row."""
    from ivm.kernels.memory import address

    data = np.frombuffer(bytearray(value + b"\0"), np.uint8)
    return _repeated(TextColumn(np.array([address(data)]), np.array([len(value)]), (data,)), count)


def of_texts(values: Sequence[bytes]) -> TextColumn:
    """A value for each row. Raises TooLarge."""
    lengths = np.array([len(value) for value in values], np.int64)
    _, offsets = room_for(lengths)
    return of_bytes(np.frombuffer(bytearray(b"".join(values) + b"\0"), np.uint8), offsets)


def of_choices(choices: Sequence[bytes], which: Words) -> TextColumn:
    """One of a few values in every row, by its number."""
    return of_texts(choices).rows(which)


def of_decimals(mantissas: Words, scales: Words | int) -> TextColumn:
    """``mantissa * 10**-scale`` as text, with that many digits after the point; scales up to 31."""
    from ivm.kernels import texts
    from ivm.kernels.memory import address

    count = len(mantissas)
    data, lengths = np.empty(max(count, 1) * texts.DECIMAL_ROOM, np.uint8), np.empty(count, np.int64)
    wide = plain(np.broadcast_to(scales, count))
    texts.write_decimals(plain(mantissas), wide, data, lengths)
    ends = address(data) + texts.DECIMAL_ROOM * np.arange(1, count + 1)
    return TextColumn(ends - lengths, lengths, (data,))


def decimals(column: TextColumn) -> tuple[Words, Words]:
    """(mantissas, scales) of values that are plain decimals of up to 18 digits; the scale is -1 for any other."""
    from ivm.kernels import texts

    mantissas, scales = np.empty(len(column), np.int64), np.empty(len(column), np.int64)
    texts.read_decimals(column.starts, column.lengths, mantissas, scales)
    return mantissas, scales


def rounded_decimals(column: TextColumn, places: int) -> tuple[Words, Mask]:
    """Plain decimals in units of ``10**-places``, rounded half away from zero; and which have more than 17 digits then,
    or are none."""
    from ivm.kernels import decimals

    mantissas = np.empty(len(column), np.int64)
    decimals.read_rounded(column.starts, column.lengths, places, mantissas)
    return mantissas, mantissas == decimals.UNREAD


def characters(column: TextColumn) -> Words:
    """How many characters each value has."""
    from ivm.kernels import texts

    out = np.empty(len(column), np.int64)
    texts.characters(column.starts, column.lengths, out)
    return out


def cut(column: TextColumn, skipped: Words | int, taken: Words | int) -> TextColumn:
    """``taken`` characters of each value after the first ``skipped`` ones; neither is negative."""
    from ivm.kernels import texts

    found = column.copy()
    texts.cut(found.starts, found.lengths, _spread(skipped, found), _spread(taken, found))
    return found


def _spread(words: Words | int, column: TextColumn) -> Words:
    return plain(np.broadcast_to(words, len(column)))


def find(column: TextColumn, wanted: TextColumn, begins: Words | int = 0) -> Words:
    """The byte where ``wanted`` is first in each value, from byte ``begins`` on; -1: nowhere, or begins is negative."""
    from ivm.kernels import texts

    out = np.empty(len(column), np.int64)
    texts.find(column.starts, column.lengths, _spread(begins, column), wanted.starts, wanted.lengths, out)
    return out


def equal(column: TextColumn, other: TextColumn) -> Mask:
    """Which values are the same in both."""
    same = column.lengths == other.lengths
    here = TextColumn(column.starts, np.where(same, column.lengths, 0), column.held)
    found: Mask = same & (find(here, TextColumn(other.starts, here.lengths, other.held)) == 0)
    return found


def searchable(column: TextColumn, wanted: TextColumn) -> Mask:
    """The rows in which a search, which tries every place, takes no long time."""
    fine: Mask = column.lengths * wanted.lengths <= LONG
    return fine


def split(column: TextColumn, delimiters: TextColumn, fields: Words) -> TextColumn:
    """The n-th part (from 1) of each value between delimiters, which are not empty; nothing if there is none."""
    from ivm.kernels import texts

    found = column.copy()
    texts.split(found.starts, found.lengths, delimiters.starts, delimiters.lengths, plain(fields))
    return found


def replaced(column: TextColumn, old: TextColumn, new: TextColumn) -> TextColumn:
    """Each value with ``new`` in every place of ``old``, which is not empty. Raises TooLarge."""
    from ivm.kernels import texts

    counts = np.empty(len(column), np.int64)
    texts.count_found(column.starts, column.lengths, old.starts, old.lengths, counts)
    data, offsets = room_for(column.lengths + counts * (new.lengths - old.lengths))
    texts.replace(
        column.starts, column.lengths, old.starts, old.lengths, new.starts, new.lengths, offsets, data
    )  # fmt: skip
    return of_bytes(data, offsets)


def stripped(column: TextColumn, unwanted: bytes, left: bool, right: bool) -> TextColumn:
    """Each value without those bytes, all below 128, at its ends."""
    from ivm.kernels import texts

    found, table = column.copy(), np.zeros(128, np.int64)
    table[list(unwanted)] = 1
    texts.strip(found.starts, found.lengths, table, left, right)
    return found


def joined(*parts: TextColumn) -> TextColumn:
    """Each row's values one after the other. Raises TooLarge."""
    data, offsets = _packed(parts)
    return of_bytes(data, offsets)


def packed(column: TextColumn) -> tuple[Bytes, Words]:
    """The values' bytes in an array of their own, and their offsets int64[n + 1]."""
    return _packed((column,))


def _packed(parts: Sequence[TextColumn]) -> tuple[Bytes, Words]:
    from ivm.kernels import texts

    starts = np.stack([part.starts for part in parts], axis=1).reshape(-1)
    lengths = np.stack([part.lengths for part in parts], axis=1).reshape(-1)
    data, offsets = room_for(lengths.reshape(-1, len(parts)).sum(axis=1))
    texts.join(starts, lengths, len(parts), offsets, data)
    return data, offsets


def room_for(lengths: Words) -> tuple[Bytes, Words]:
    """An array for values of these lengths, and their offsets int64[n + 1]. Raises TooLarge."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > LARGE:
        raise TooLarge
    room(int(offsets[-1]))
    return np.empty(int(offsets[-1]) + 1, np.uint8), offsets


def interned(dictionary: Dictionary, *parts: TextColumn) -> Words:
    """The ids of each row's values one after the other, int64[n]. Raises TooLarge."""
    data, offsets = _packed(parts)
    return dictionary.intern_packed(data, offsets)
