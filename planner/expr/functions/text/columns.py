"""Vector forms of functions of texts (``storage.text_columns``). What a form does not cover is left to the function:
rows that fail, and texts so long that something may want to end the
work.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final

import numpy as np

from ivm.rows import Bytes, Mask, Words
from planner.expr.functions.table import CallSite, Made, VectorForm
from storage.text_columns import (
    ALL,
    TextColumn,
    characters,
    cut,
    find,
    interned,
    joined,
    of_bytes,
    of_ids,
    of_parts,
    of_value,
    packed,
    replaced,
    searchable,
    split,
    stripped,
)  # fmt: skip
from storage.types.like import like_pattern

_WIDEST: Final = 10_000
"""The most characters that a form pads a text to."""


def _column(site: CallSite, ids: Words) -> TextColumn:
    return of_ids(ids, site.context.dictionary)


def constant(words: Words) -> bool:
    """Whether an argument is the same for all rows."""
    return words.strides == (0,)


def _bytes(site: CallSite, ids: Words) -> bytes:
    """The value of a constant."""
    return site.context.dictionary.lookup_one(int(ids[0]))


def made_texts(site: CallSite, rest: Mask | None, *parts: TextColumn) -> Made:
    """The parts put together, of all rows but the rest."""
    dictionary = site.context.dictionary
    if rest is None or not np.count_nonzero(rest):
        return Made(interned(dictionary, *parts))
    words, rows = np.zeros(len(rest), np.int64), np.flatnonzero(~rest)
    words[rows] = interned(dictionary, *[part.rows(rows) for part in parts])
    return Made(words, None, rest)


def length(site: CallSite, ids: Words) -> Made:
    return Made(characters(_column(site, ids)))


def size(bits: int = 1) -> VectorForm:
    """The number of bytes, times ``bits``."""
    return lambda site, ids: Made(_column(site, ids).lengths * bits)


def concatenated(site: CallSite, *ids: Words) -> Made:
    return made_texts(site, None, *[_column(site, part) for part in ids])


def whole(work: Callable[[str], str]) -> VectorForm:
    """``work`` on all texts as one, which no other character than NUL is between; it leaves NULs where they are."""

    def form(site: CallSite, ids: Words) -> Made:
        return made_texts(site, None, _apart(work(_as_one(_column(site, ids)))))

    return form


def _as_one(column: TextColumn) -> str:
    """The texts, each with a NUL behind it, which none of them has."""
    return packed(joined(column, of_value(b"\0", len(column))))[0][:-1].tobytes().decode()


def _apart(text: str) -> TextColumn:
    data = np.frombuffer(text.encode(), np.uint8)
    ends = np.flatnonzero(data == 0)
    starts = np.concatenate([[0], ends[:-1] + 1])
    return of_parts(data, starts, ends - starts)


def capitalised(site: CallSite, ids: Words) -> Made:
    """initcap of ASCII."""
    data, offsets = packed(_column(site, ids))
    small, large = _among(data, "a", 26), _among(data, "A", 26)
    within = np.zeros(len(data), np.bool_)
    within[1:] = (small | large | _among(data, "0", 10))[:-1]
    within[offsets[:-1]] = False
    changed: Bytes = data ^ (np.where(within, large, small) * np.uint8(32))
    rest = np.zeros(len(ids), np.bool_)
    far = np.flatnonzero(data[: offsets[-1]] >= 128)
    if len(far):
        rest[np.searchsorted(offsets, far, side="right") - 1] = True
    return made_texts(site, rest, of_bytes(changed, offsets))


def _among(data: Bytes, first: str, count: int) -> Mask:
    """Which bytes are one of so many letters from the first one on."""
    found: Mask = data - np.uint8(ord(first)) < count
    return found


def translated(site: CallSite, ids: Words, old: Words, new: Words) -> Made | None:
    if not (constant(old) and constant(new)):
        return None
    table = letters(_bytes(site, old).decode(), _bytes(site, new).decode())
    return whole(lambda text: text.translate(table))(site, ids)


def letters(old: str, new: str) -> dict[int, str | None]:
    """What translate makes of each letter."""
    table: dict[int, str | None] = {}
    for place, letter in enumerate(old):
        table.setdefault(ord(letter), new[place] if place < len(new) else None)
    return table


def reversed_texts(site: CallSite, ids: Words) -> Made:
    backwards = _apart(_as_one(_column(site, ids))[-2::-1] + "\0")
    return made_texts(site, None, backwards.rows(slice(None, None, -1)))


def substring_from(site: CallSite, ids: Words, starts: Words) -> Made:
    return made_texts(site, None, cut(_column(site, ids), np.maximum(starts - 1, 0), ALL))


def substring(site: CallSite, ids: Words, starts: Words, counts: Words) -> Made:
    skipped = np.maximum(starts - 1, 0)
    taken = np.maximum(starts - 1 + counts, 0) - skipped
    return made_texts(site, counts < 0, cut(_column(site, ids), skipped, np.maximum(taken, 0)))


def left(site: CallSite, ids: Words, counts: Words) -> Made:
    column = _column(site, ids)
    taken = counts if (counts >= 0).all() else np.where(counts < 0, characters(column) + counts, counts)
    return made_texts(site, None, cut(column, 0, np.maximum(taken, 0)))


def right(site: CallSite, ids: Words, counts: Words) -> Made:
    column = _column(site, ids)
    skipped = -counts if (counts < 0).all() else np.where(counts >= 0, characters(column) - counts, -counts)
    return made_texts(site, None, cut(column, np.maximum(skipped, 0), ALL))


def trimmed(from_left: bool, from_right: bool) -> VectorForm:
    """Takes spaces, or the characters of a constant of ASCII, from the ends."""

    def form(site: CallSite, ids: Words, unwanted: Words | None = None) -> Made | None:
        if unwanted is not None and not constant(unwanted):
            return None
        characters = b" " if unwanted is None else _bytes(site, unwanted)
        if not characters.isascii():
            return None
        return made_texts(site, None, stripped(_column(site, ids), characters, from_left, from_right))

    return form


def padded(on_left: bool) -> VectorForm:
    """Fills up with spaces, or with a constant text, and cuts what is too long."""

    def form(site: CallSite, ids: Words, widths: Words, fill: Words | None = None) -> Made | None:
        if fill is not None and not constant(fill):
            return None
        filling = b" " if fill is None else _bytes(site, fill)
        widest = int(widths.max())
        if not filling or widest > _WIDEST or len(filling) > _WIDEST:
            return None
        column = _column(site, ids)
        lacking = np.maximum(widths - characters(column), 0)
        most = int(lacking.max())
        padding = cut(of_value(filling * min(most, most // len(filling.decode()) + 1), len(column)), 0, lacking)
        value = cut(column, 0, np.maximum(widths, 0))
        return made_texts(site, None, *((padding, value) if on_left else (value, padding)))

    return form


def position(site: CallSite, ids: Words, wanted: Words) -> Made:
    column, part = _column(site, ids), _column(site, wanted)
    fine = searchable(column, part)
    found = find(column, part, np.where(fine, 0, -1))
    before = characters(TextColumn(column.starts, np.maximum(found, 0), column.held))
    return Made(np.where(found < 0, 0, before + 1), None, ~fine)


def starts_with(site: CallSite, ids: Words, prefixes: Words) -> Made:
    column, prefix = _column(site, ids), _column(site, prefixes)
    return Made(_stands(column, prefix, 0, column.lengths).astype(np.int64))


def _stands(column: TextColumn, part: TextColumn, begins: Words | int, ends: Words) -> Mask:
    """Whether a part is at a byte of each value, and ends there where the value is to end."""
    fits = begins + part.lengths <= ends
    begin = np.where(fits, begins, 0)
    here = TextColumn(column.starts + begin, np.where(fits, part.lengths, 0), column.held)
    found: Mask = fits & (find(here, part) == 0)
    return found


def replacing(site: CallSite, ids: Words, old: Words, new: Words) -> Made:
    column, wanted = _column(site, ids), _column(site, old)
    rest = ~searchable(column, wanted) | (wanted.lengths == 0)
    if not np.count_nonzero(rest):
        return made_texts(site, None, replaced(column, wanted, _column(site, new)))
    rows = np.flatnonzero(~rest)
    words = np.zeros(len(ids), np.int64)
    done = replaced(column.rows(rows), wanted.rows(rows), _column(site, new).rows(rows))
    words[rows] = interned(site.context.dictionary, done)
    return Made(words, None, rest)


def split_part(site: CallSite, ids: Words, delimiters: Words, fields: Words) -> Made:
    column, delimiter = _column(site, ids), _column(site, delimiters)
    rest = ~searchable(column, delimiter) | (delimiter.lengths == 0) | (fields < 1)
    return made_texts(site, rest, split(column, _filled(delimiter, rest), np.where(rest, 1, fields)))


def _filled(column: TextColumn, rest: Mask) -> TextColumn:
    """The column with a value of one byte in the rows that are left."""
    if not np.count_nonzero(rest):
        return column
    one = of_value(b"\xff", len(column))
    starts, lengths = np.where(rest, one.starts, column.starts), np.where(rest, 1, column.lengths)
    return TextColumn(starts, lengths, (column.held, one.held))


def repeated(site: CallSite, ids: Words, counts: Words) -> Made | None:
    most = int(counts.max())
    if most > 8:
        return None
    column = _column(site, ids)
    parts = [TextColumn(column.starts, np.where(counts > i, column.lengths, 0), column.held) for i in range(most)]
    return made_texts(site, None, *parts or [TextColumn(column.starts, 0 * column.lengths, column.held)])


def like(wanted: bool) -> VectorForm:
    """LIKE with a constant pattern without ``_``; its parts are found one after the other."""

    def form(site: CallSite, ids: Words, patterns: Words) -> Made | None:
        if not constant(patterns):
            return None
        pattern = like_pattern(_bytes(site, patterns).decode(), "\\", False)
        parts = [part.text for part in pattern.parts]
        if pattern.dangling or None in parts:
            return None
        column = _column(site, ids)
        texts = [of_value((text or "").encode(), len(column)) for text in parts]
        rest = np.zeros(len(column), np.bool_)
        for text in texts:
            rest |= ~searchable(column, text)
        return Made((_matches(column, texts) == wanted).astype(np.int64), None, rest)

    return form


def _matches(column: TextColumn, parts: list[TextColumn]) -> Mask:
    first, *middle = parts
    if not middle:
        whole: Mask = column.lengths == first.lengths
        return whole & _stands(column, first, 0, column.lengths)
    last = middle.pop()
    ends = column.lengths - last.lengths
    found = _stands(column, first, 0, ends) & _stands(column, last, np.maximum(ends, 0), column.lengths)
    at: Words = np.where(found, first.lengths, -1)
    within = TextColumn(column.starts, np.maximum(ends, 0), column.held)
    for part in middle:
        at = find(within, part, at)
        at = np.where(at < 0, -1, at + part.lengths)
    return np.asarray(at >= 0)


def by_bytes(work: Callable[[bytes], bytes]) -> VectorForm:
    """What Python makes of each value's bytes."""

    def form(site: CallSite, ids: Words) -> Made:
        data, offsets = packed(_column(site, ids))
        whole, bounds = data.tobytes(), offsets.tolist()
        dictionary = site.context.dictionary
        return Made(dictionary.intern([work(whole[a:b]) for a, b in pairwise(bounds)]))

    return form
