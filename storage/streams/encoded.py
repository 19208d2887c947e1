"""What Spark's executors run for a stream: a batch → rows as words, in order, and the values that they refer to.

It depends on Arrow only; Spark calls it through ``mapInArrow``. Executors need this package with the same Python and
numpy.

One stream carries both rows and dictionary entries, distinguished by ``part``:

part    0 a row, 1 an entry
w0 …    the row's words; an entry has its id in w0
value   an entry's bytes; NULL for a row
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ivm.rows import Words, pack
from ivm.words import row_width
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn, load_schema
from storage.load.executor import marking_errors
from storage.load.source import Decode

ROW: Final = 0
ENTRY: Final = 1


def stream_schema(columns: Sequence[LoadColumn]) -> pa.Schema:
    """The Arrow schema of the stream."""
    words = [(f"w{i}", pa.int64()) for i in range(stream_width(columns))]
    return pa.schema([("part", pa.int32()), *words, ("value", pa.binary())])


def stream_width(columns: Sequence[LoadColumn]) -> int:
    """The width of the stream's rows in words: at least one, for an entry's id."""
    return max(1, row_width(load_schema(columns)))


def encoder(
    columns: Sequence[LoadColumn], decode: Decode, secret: bytes, id_bits: int = 63
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow`` over a source's batches. ``id_bits``: see ``Dictionary``."""

    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        dictionary = Dictionary(secret, id_bits=id_bits)
        schema = load_schema(columns)
        for vectors, count in marking_errors(decode(batches, dictionary)):
            yield _row_batch(pack(vectors, schema, count), columns)
            for ids, data, offsets in dictionary.drain_new():
                yield _entry_batch(ids, data, offsets, columns)

    return encode


def _row_batch(rows: Words, columns: Sequence[LoadColumn]) -> pa.RecordBatch:
    count = len(rows)
    words = [np.ascontiguousarray(rows[:, i]) for i in range(rows.shape[1])] or [np.zeros(count, np.int64)]
    return _batch(ROW, [*words, pa.nulls(count, pa.binary())], columns)


def _entry_batch(
    ids: Words, data: np.ndarray[tuple[int], np.dtype[np.uint8]], offsets: Words, columns: Sequence[LoadColumn]
) -> pa.RecordBatch:
    count = len(ids)
    zeros = np.zeros(count, np.int64)
    words = [ids] + [zeros] * (stream_width(columns) - 1)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(np.ascontiguousarray(data))]
    values = pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, buffers).cast(pa.binary())
    return _batch(ENTRY, [*words, values], columns)


def _batch(part: int, rest: Sequence[Any], columns: Sequence[LoadColumn]) -> pa.RecordBatch:
    arrays = map(pa.array, (np.full(len(rest[0]), part, np.int32), *rest))
    return pa.RecordBatch.from_arrays(list(arrays), schema=stream_schema(columns))
