"""Vector forms of functions of numerics (``ivm.kernels.numerics``). Those that are very long or not finite, and what
fails, are left to the functions."""

from __future__ import annotations

import numpy as np

from ivm.rows import Mask, Words, plain
from planner.expr.functions.table import CallSite, Made, VectorForm
from storage.dictionary import Dictionary
from storage.text_columns import TextColumn, interned, of_ids, of_parts


def _texts(words: Words, dictionary: Dictionary) -> TextColumn:
    """The texts of those that are ids."""
    rows = np.flatnonzero(words & 1)
    found = TextColumn(np.zeros(len(words), np.int64), np.zeros(len(words), np.int64), ())
    if len(rows):
        texts = of_ids(plain(words)[rows], dictionary)
        found.starts[rows], found.lengths[rows], found.held = texts.starts, texts.lengths, texts.held
    return found


class _Results:
    """What the kernels write."""

    def __init__(self, count: int) -> None:
        from ivm.kernels import numerics

        self.scratch = np.empty(numerics.SCRATCH, np.int64)
        self.data = np.empty(max(count, 1) * numerics.TEXT_ROOM, np.uint8)  # of which the kernel touches what it needs
        self.words, self.starts, self.lengths = (np.empty(count, np.int64) for _ in range(3))

    def made(self, dictionary: Dictionary) -> Made:
        rest: Mask = self.lengths < 0
        texts = np.flatnonzero(self.lengths > 0)
        if len(texts):
            self.words[texts] = interned(dictionary, of_parts(self.data, self.starts, self.lengths).rows(texts))
        return Made(self.words, None, rest if np.count_nonzero(rest) else None)


def computed(operation: int, left: Words, right: Words, dictionary: Dictionary) -> Made:
    """An operation on two numerics (``ivm.kernels.numeric_codes``)."""
    from ivm.kernels import numerics

    one, other, results = _texts(left, dictionary), _texts(right, dictionary), _Results(len(left))
    numerics.compute(
        operation, plain(left), one.starts, one.lengths, plain(right), other.starts, other.lengths,
        results.scratch, results.data, results.words, results.starts, results.lengths,
    )  # fmt: skip
    return results.made(dictionary)


def changed(how: int, words: Words, places: Words | int, dictionary: Dictionary) -> Made:
    """A numeric rounded to so many places."""
    from ivm.kernels import numerics

    texts, results = _texts(words, dictionary), _Results(len(words))
    numerics.change(
        how, plain(words), texts.starts, texts.lengths, plain(np.broadcast_to(places, len(words))),
        results.scratch, results.data, results.words, results.starts, results.lengths,
    )  # fmt: skip
    return results.made(dictionary)


def resigned(how: int, words: Words, dictionary: Dictionary) -> Made:
    """Numerics with the other sign or without one."""
    return changed(how, words, 0, dictionary)


def pair(operation: int) -> VectorForm:
    return lambda site, left, right: computed(operation, left, right, site.context.dictionary)


def cut(how: int) -> VectorForm:
    def form(site: CallSite, words: Words, places: Words | int = 0) -> Made:
        return changed(how, words, places, site.context.dictionary)

    return form
