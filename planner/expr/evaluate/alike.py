"""A chain of operands of a few forms: each is computed on many rows and many operands' constants at a time.

Cost: that of the forms on rows × operands values, in blocks, and a few arrays for each block.
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
from planner.expr.context import Context
from planner.expr.evaluate.calls import Run
from planner.expr.functions.text.string import all_together
from planner.expr.rows import RowBatch, nulls_of, some, take
from planner.expr.scalar import Alike, Column, Form, Literal, Scalar, children
from storage.types.codec import decode, encode
from storage.types.type_names import format_type

_BLOCK: Final = 1 << 16
"""Values that are computed together."""
_SMALL: Final = 1 << 12
"""The same where the form makes texts or other large values on its way."""
_Failed = tuple[Words, Words, SqlError]
"""Rows, the place of the operand that failed in each, and the error."""
_Values = tuple[Any, Any, list[_Failed]]
"""The words and nulls of rows × operands, and what failed."""
_BITS: Final = {Kind.INT2: 15, Kind.INT4: 31, Kind.INT8: 63}


class _Operands:
    """The values of a chain's operands. ``args``: of what the forms read of the row; ``bodies``: the forms."""

    def __init__(self, chain: Alike, args: tuple[Run, ...], bodies: tuple[Run, ...]) -> None:
        self.chain = chain
        self._args = args
        self._forms = tuple(map(_Form, chain.forms, bodies))
        self._size = _SMALL if any(_makes_large(f.body) for f in chain.forms) else _BLOCK
        order = np.array(chain.order)
        self._places = [np.flatnonzero(order == number) for number in range(len(chain.forms))]

    def blocks(self, batch: RowBatch) -> Iterator[_Block]:
        """The next operands on those rows that are still asked for (``_Block.rest``), until none are."""
        columns = [a(batch) for a in self._args]
        rows = np.arange(batch.count)
        at, count = 0, len(self.chain.order)
        while at < count and len(rows):
            poll()
            many = min(max(self._size // len(rows), 1), count - at)
            own = columns if len(rows) == batch.count else [take(c, rows) for c in columns]
            block = self._block(batch, own, rows, at, many)
            yield block
            at, rows = at + many, block.rest

    def _block(self, batch: RowBatch, columns: list[Vector], rows: Words, at: int, many: int) -> _Block:
        block: _Block | None = None
        for form, places in zip(self._forms, self._places, strict=True):
            first, last = np.searchsorted(places, (at, at + many)).tolist()
            if first == last:
                continue
            words, nulls, failed = form.values(batch.context, columns, len(rows), first, last)
            if last - first == many:
                return _Block(rows, words, nulls, failed)
            if block is None:
                shape = (len(rows), many)
                block = _Block(rows, np.empty(shape, np.int64), np.empty(shape, np.bool_), [])
            block.put(places[first:last] - at, words, nulls, failed)
        assert block is not None, "each operand is of a form"
        return block


class _Form:
    """One form of a chain's operands."""

    def __init__(self, form: Form, body: Run) -> None:
        self._form = form
        self._body = body
        self._known: tuple[int, list[Words]] = (0, [])

    def values(self, context: Context, columns: list[Vector], count: int, first: int, last: int) -> _Values:
        """Of these operands on ``count`` rows."""
        many, constants = last - first, self._constants(context)
        if not constants:  # all operands are the same
            inner = RowBatch(columns, count, context)
            found = self._body(inner)
            words, nulls = found.words[:, None], nulls_of(found)[:, None]
            failed = [(rows, np.zeros(len(rows), np.int64), error) for rows, error in inner.failed]
            return np.broadcast_to(words, (count, many)), np.broadcast_to(nulls, (count, many)), failed
        spread = [_repeated(c, many) for c in columns]
        spread += [Vector(np.tile(c[first:last], count)) for c in constants]
        inner = RowBatch(spread, count * many, context)
        found = self._body(inner)
        failed = [(at // many, at % many, error) for at, error in inner.failed]
        return found.words.reshape(count, many), nulls_of(found).reshape(count, many), failed

    def _constants(self, context: Context) -> list[Words]:
        dictionary, rows = context.dictionary, self._form.constants
        serial, found = self._known  # read once: another thread may use another dictionary
        if rows is None or serial == dictionary.serial:
            return found
        found = [encode(t, list(c), dictionary).words for c, t in zip(rows.columns, rows.types, strict=True)]
        self._known = dictionary.serial, found
        return found


def _makes_large(body: Scalar) -> bool:
    large = body.type.storage is not Storage.DIRECT and not isinstance(body, Column | Literal)
    return large or any(map(_makes_large, children(body)))


class _Block:
    """``words`` and ``nulls``: of some rows and operands. ``rest``: the rows that go on to the next operands."""

    __slots__ = ("_failed", "nulls", "rest", "rows", "words")

    def __init__(self, rows: Words, words: Any, nulls: Any, failed: list[_Failed]) -> None:
        self.rows = rows
        self.words = words
        self.nulls = nulls
        self.rest = rows
        self._failed = failed

    def put(self, places: Words, words: Any, nulls: Any, failed: list[_Failed]) -> None:
        """The values of one form's operands, which stand at these places among all."""
        self.words[:, places] = words
        self.nulls[:, places] = nulls
        self._failed += [(rows, places[own], error) for rows, own, error in failed]

    def fail(self, batch: RowBatch, before: Words) -> Mask:
        """Fails the rows in which an operand failed at a place before that one. Gives them as a mask."""
        lost = np.zeros(len(self.rows), np.bool_)
        if not self._failed:
            return lost
        first = np.full(len(self.rows), self.words.shape[1])
        which = np.zeros(len(self.rows), np.int64)
        for number, (rows, places, _) in enumerate(self._failed):
            for r, p in zip(rows.tolist(), places.tolist(), strict=True):
                if p < first[r]:
                    first[r], which[r] = p, number
        lost = first < before
        for number in distinct(which[lost]).tolist():
            batch.failed.append((self.rows[lost & (which == number)], self._failed[number][2]))
        return lost


def _repeated(vector: Vector, many: int) -> Vector:
    return Vector(np.repeat(vector.words, many), None if vector.nulls is None else np.repeat(vector.nulls, many))


def run_alike(chain: Alike, args: tuple[Run, ...], bodies: tuple[Run, ...]) -> Run:
    """The chain on a batch. ``bodies``: its forms, compiled."""
    operands = _Operands(chain, args, bodies)
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
            same = [f.constants for f in operands.chain.forms] == [None]
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
