"""A chain of operands of one form: the form is computed on many rows and many operands' constants at a time.

Cost: that of the form on rows × operands values, in blocks, and a few arrays for each block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from sys import getsizeof
from typing import Any, Final

import numpy as np

from ivm.distinct import distinct
from ivm.errors import SqlError
from ivm.rows import Mask, Vector, Words
from ivm.stops import Taking, poll
from ivm.words import TEXT, Kind, Storage
from planner.expr.evaluate.calls import Run
from planner.expr.functions.text.string import all_together
from planner.expr.rows import RowBatch, nulls_of, some, take
from planner.expr.scalar import Alike, Column, Literal, Scalar, children
from storage.types.codec import decode, encode
from storage.types.type_names import format_type

_BLOCK: Final = 1 << 16
"""Values that are computed together."""
_SMALL: Final = 1 << 12
"""The same where the form makes texts or other large values on its way."""
_BITS: Final = {Kind.INT2: 15, Kind.INT4: 31, Kind.INT8: 63}


class _Operands:
    """The values of a chain's operands. ``args``: of what the form reads of the row; ``body``: the form."""

    def __init__(self, chain: Alike, args: tuple[Run, ...], body: Run) -> None:
        self.chain = chain
        self._args = args
        self._body = body
        self._known: tuple[int, list[Words]] = (0, [])
        self._size = _SMALL if _makes_large(chain.body) else _BLOCK

    def blocks(self, batch: RowBatch) -> Iterator[_Block]:
        """The next operands on those rows that are still asked for (``_Block.rest``), until none are."""
        columns = [a(batch) for a in self._args]
        constants = self._constants(batch)
        rows = np.arange(batch.count)
        at, count = 0, self.chain.count
        while at < count and len(rows):
            poll()
            many = min(max(self._size // len(rows), 1), count - at)
            own = columns if len(rows) == batch.count else [take(c, rows) for c in columns]
            block = self._block(batch, own, [c[at : at + many] for c in constants], rows, many)
            yield block
            at, rows = at + many, block.rest

    def _constants(self, batch: RowBatch) -> list[Words]:
        dictionary, rows = batch.context.dictionary, self.chain.constants
        serial, found = self._known  # read once: another thread may use another dictionary
        if rows is None or serial == dictionary.serial:
            return found
        found = [encode(t, list(c), dictionary).words for c, t in zip(rows.columns, rows.types, strict=True)]
        self._known = dictionary.serial, found
        return found

    def _block(self, batch: RowBatch, columns: list[Vector], constants: list[Words], rows: Words, many: int) -> _Block:
        if not constants:  # all operands are the same
            inner = RowBatch(columns, len(rows), batch.context)
            found = self._body(inner)
            words, nulls = found.words[:, None], nulls_of(found)[:, None]
            shape = (len(rows), many)
            return _Block(rows, np.broadcast_to(words, shape), np.broadcast_to(nulls, shape), inner.failed, 1)
        spread = [_repeated(c, many) for c in columns]
        spread += [Vector(np.tile(c, len(rows))) for c in constants]
        inner = RowBatch(spread, len(rows) * many, batch.context)
        found = self._body(inner)
        shape = (len(rows), many)
        return _Block(rows, found.words.reshape(shape), nulls_of(found).reshape(shape), inner.failed, many)


def _makes_large(body: Scalar) -> bool:
    large = body.type.storage is not Storage.DIRECT and not isinstance(body, Column | Literal)
    return large or any(map(_makes_large, children(body)))


class _Block:
    """``words`` and ``nulls``: of some rows and operands. ``rest``: the rows that go on to the next operands.
    ``width``: how many operands the failures count in a row."""

    __slots__ = ("_failed", "_width", "nulls", "rest", "rows", "words")

    def __init__(self, rows: Words, words: Any, nulls: Any, failed: list[tuple[Words, SqlError]], width: int) -> None:
        self.rows = rows
        self.words = words
        self.nulls = nulls
        self.rest = rows
        self._failed = failed
        self._width = width

    def fail(self, batch: RowBatch, before: Words) -> Mask:
        """Fails the rows in which an operand failed at a place before that one. Gives them as a mask."""
        lost = np.zeros(len(self.rows), np.bool_)
        if not self._failed:
            return lost
        first = np.full(len(self.rows), self._width)
        which = np.zeros(len(self.rows), np.int64)
        for number, (failed, _) in enumerate(self._failed):
            row, place = failed // self._width, failed % self._width
            for r, p in zip(row.tolist(), place.tolist(), strict=True):
                if p < first[r]:
                    first[r], which[r] = p, number
        lost = first < np.minimum(before, self._width)
        for number in distinct(which[lost]).tolist():
            batch.failed.append((self.rows[lost & (which == number)], self._failed[number][1]))
        return lost


def _repeated(vector: Vector, many: int) -> Vector:
    return Vector(np.repeat(vector.words, many), None if vector.nulls is None else np.repeat(vector.nulls, many))


def run_alike(chain: Alike, args: tuple[Run, ...], body: Run) -> Run:
    """The chain on a batch."""
    operands = _Operands(chain, args, body)
    runners: dict[str, Callable[[_Operands], Run]] = {"and": _all, "or": _any, "+": _sum, "||": _text}
    return runners[chain.operator](operands)


def _all(operands: _Operands) -> Run:
    return _junction(operands, 0)


def _any(operands: _Operands) -> Run:
    return _junction(operands, 1)


def _junction(operands: _Operands, decided: int) -> Run:
    """AND or OR. ``decided``: the value that decides a row, after which no operand can fail."""

    def run(batch: RowBatch) -> Vector:
        words = np.full(batch.count, 1 - decided, np.int64)
        nulls = np.zeros(batch.count, np.bool_)
        for block in operands.blocks(batch):
            decisive = (block.words == decided) & ~block.nulls
            hit = decisive.any(axis=1)
            lost = block.fail(batch, np.where(hit, decisive.argmax(axis=1), decisive.shape[1]))
            hit &= ~lost
            nulls[block.rows] |= block.nulls.any(axis=1) | lost
            nulls[block.rows[hit]] = False
            words[block.rows[hit]] = decided
            block.rest = block.rows[~(hit | lost)]
        words[nulls] = 0
        return Vector(words, some(nulls))

    return run


def _sum(operands: _Operands) -> Run:
    """Integers, from left to right: the first sum out of range fails its row, unless one before it is NULL."""
    type_ = operands.chain.type
    bits = _BITS[type_.kind]
    error = SqlError("22003", f"{format_type(type_)} out of range")

    def run(batch: RowBatch) -> Vector:
        total, nulls = np.zeros(batch.count, np.int64), np.zeros(batch.count, np.bool_)
        for block in operands.blocks(batch):
            known = np.logical_or.accumulate(block.nulls, axis=1) | nulls[block.rows][:, None]
            sums, over = _sums(total[block.rows], block.words, bits)
            over &= ~known
            wrong = over.any(axis=1)
            place = np.where(wrong, over.argmax(axis=1) + 1, over.shape[1])
            lost = block.fail(batch, place)
            wrong &= ~lost
            if wrong.any():
                batch.failed.append((block.rows[wrong], error))
            total[block.rows] = sums
            nulls[block.rows] = known[:, -1] | wrong | lost
            block.rest = block.rows[~(wrong | lost)]
        total[nulls] = 0
        return Vector(total, some(nulls))

    return run


def _sums(before: Words, words: Any, bits: int) -> tuple[Words, Any]:
    """The last sums, and where one is out of range. Integers of 8 bytes are added one at a time, to see it."""
    if bits < 63:
        sums = np.cumsum(words, axis=1, dtype=np.int64)
        sums += before[:, None]
        return sums[:, -1], (sums >= 1 << bits) | (sums < -(1 << bits))
    over = np.zeros(words.shape, np.bool_)
    for place in range(words.shape[1]):
        added = words[:, place]
        after = before + added
        over[:, place] = ((before ^ after) & (added ^ after)) < 0
        before = after
    return before, over


def _text(operands: _Operands) -> Run:
    """Texts put together, each row's once."""

    def run(batch: RowBatch) -> Vector:
        parts: list[list[str]] = [[] for _ in range(batch.count)]
        nulls = np.zeros(batch.count, np.bool_)
        for block in operands.blocks(batch):
            lost = block.fail(batch, np.full(len(block.rows), block.words.shape[1]))
            nulls[block.rows] |= block.nulls.any(axis=1) | lost
            block.rest = block.rows[~lost]
            same = operands.chain.constants is None
            words = np.ascontiguousarray(block.words[:, :1] if same else block.words)
            texts = decode(TEXT, Vector(words.ravel()), batch.context.dictionary)
            many, width = block.words.shape[1], words.shape[1]
            for number, row in enumerate(block.rows.tolist()):
                if not nulls[row]:
                    own = texts[number * width : (number + 1) * width]
                    parts[row] += own * many if same else own
        return _joined(batch, parts, nulls)

    return run


def _joined(batch: RowBatch, parts: list[list[str]], nulls: Mask) -> Vector:
    taking = Taking()
    made: list[str | None] = []
    try:
        for row, own in enumerate(parts):
            poll()
            made.append(None)
            if nulls[row]:
                continue
            try:
                made[row] = all_together(*own)
                taking.add(getsizeof(made[row]))
            except SqlError as error:
                error.__traceback__ = None
                batch.failed.append((np.array([row]), error))
        return encode(TEXT, made, batch.context.dictionary)
    finally:
        taking.release()
