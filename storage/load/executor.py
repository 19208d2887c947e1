"""What runs on Spark's executors: a source's batches → rows as words, and the values that they name.

It knows Arrow only; Spark calls it through ``mapInArrow``. Executors need this package with the same Python and numpy.

One stream carries both rows and dictionary entries, told apart by ``part``:

    part    0 a row, 1 an entry, 2 a row that is left out
    place   int64: a hash of the whole row, or the entry's id; Spark partitions by it
    diff    how often the row occurs in the batch; 0 for an entry
    w0 …    the row's words; an entry has its id in w0
    value   an entry's bytes; a reject as JSON; NULL for a row
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ivm.errors import SqlError
from ivm.rows import Words, pack
from ivm.words import row_width
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn, load_schema
from storage.load.rejects import Reject, Rejects, TooManyRejects
from storage.load.source import Block, Decode, SourceDecode
from storage.spark.errors import marked

ROW: Final = 0
ENTRY: Final = 1
REJECT: Final = 2


def stream_schema(columns: Sequence[LoadColumn]) -> pa.Schema:
    """The Arrow schema of the stream."""
    words = [(f"w{i}", pa.int64()) for i in range(stream_width(columns))]
    return pa.schema(
        [("part", pa.int32()), ("place", pa.int64()), ("diff", pa.int64()), *words, ("value", pa.binary())]
    )


def stream_width(columns: Sequence[LoadColumn]) -> int:
    """How many words the stream's rows have: at least one, for an entry's id."""
    return max(1, row_width(load_schema(columns)))


def encoder(
    columns: Sequence[LoadColumn], decode: Decode, secret: bytes, id_bits: int = 63
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow`` over a source's batches. ``id_bits``: see ``Dictionary``."""

    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        dictionary = Dictionary(secret, id_bits=id_bits)
        schema = load_schema(columns)
        for vectors, count in _marking(decode(batches, dictionary)):
            yield _row_batch(pack(vectors, schema, count), columns)
            for ids, data, offsets in dictionary.drain_new():
                yield _entry_batch(ids, data, offsets, columns)

    return encode


def rejecting_encoder(
    columns: Sequence[LoadColumn], decode: SourceDecode, secret: bytes, id_bits: int, most: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """As ``encoder``, with the rows that are left out. ``most``: how many the load may have.

    A task that finds more stops there: by the first ones of each task the driver knows the load's first.
    """

    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rejects = Rejects("", most)
        encoded = encoder(columns, lambda given, dictionary: decode(given, dictionary, rejects), secret, id_bits)
        yield from encoded(batches)
        if rejects.found:
            yield _reject_batch(rejects.found, columns)

    return encode


def _marking(blocks: Iterator[Block]) -> Iterator[Block]:
    try:
        yield from blocks
    except TooManyRejects:  # the driver will say so
        return
    except SqlError as error:
        raise marked(error) from error


def _row_batch(rows: Words, columns: Sequence[LoadColumn]) -> pa.RecordBatch:
    count = len(rows)
    words = [np.ascontiguousarray(rows[:, i]) for i in range(rows.shape[1])] or [np.zeros(count, np.int64)]
    return _batch(ROW, _hash(words, count), np.ones(count, np.int64), [*words, pa.nulls(count, pa.binary())], columns)


def _entry_batch(
    ids: Words, data: np.ndarray[tuple[int], np.dtype[np.uint8]], offsets: Words, columns: Sequence[LoadColumn]
) -> pa.RecordBatch:
    count = len(ids)
    zeros = np.zeros(count, np.int64)
    words = [ids] + [zeros] * (stream_width(columns) - 1)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(np.ascontiguousarray(data))]
    values = pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, buffers).cast(pa.binary())
    return _batch(ENTRY, ids, zeros, [*words, values], columns)


def _reject_batch(rejects: Sequence[Reject], columns: Sequence[LoadColumn]) -> pa.RecordBatch:
    count = len(rejects)
    zeros = np.zeros(count, np.int64)
    values = pa.array([json.dumps(reject, ensure_ascii=False).encode() for reject in rejects], pa.binary())
    return _batch(REJECT, zeros, zeros + 1, [*[zeros] * stream_width(columns), values], columns)


def rejects_of(table: pa.Table) -> list[Reject]:
    """Of the stream's columns diff and value: the inverse."""
    diffs, values = table.column("diff").to_pylist(), table.column("value").to_pylist()
    return [Reject(*json.loads(value)) for value, diff in zip(values, diffs, strict=True) for _ in range(diff)]


def _batch(part: int, place: Words, diff: Words, rest: Sequence[Any], columns: Sequence[LoadColumn]) -> pa.RecordBatch:
    arrays = map(pa.array, (np.full(len(place), part, np.int32), place, diff, *rest))
    return pa.RecordBatch.from_arrays(list(arrays), schema=stream_schema(columns))


def _hash(words: Sequence[Words], count: int) -> Words:
    """A row's place: multiply and rotate, word by word, as FxHash does; any even spread serves."""
    place = np.zeros(count, np.uint64)
    for word in words:
        turned = (place << np.uint64(5)) | (place >> np.uint64(59))
        place = (turned ^ word.view(np.uint64)) * np.uint64(0x517CC1B727220A95)
    return place.view(np.int64)
