"""Words as Arrow tables and back, for the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from ivm.rows import Words
from storage.record import NO_ENTRIES, Entries


def table_of(columns: Mapping[str, Words | pa.Array]) -> pa.Table:
    """A table of words and Arrow arrays. ``pa.table`` would first import pandas where that is installed."""
    arrays = [
        column
        if isinstance(column, pa.Array)
        else pa.Array.from_buffers(pa.int64(), len(column), [None, pa.py_buffer(np.ascontiguousarray(column))])
        for column in columns.values()
    ]
    return pa.Table.from_arrays(arrays, names=list(columns))


def column_words(table: pa.Table, name: str) -> Words:
    return np.asarray(table.column(name).to_numpy(), np.int64)


def matrix_words(table: pa.Table, words: Sequence[str]) -> Words:
    rows = np.empty((table.num_rows, len(words)), np.int64)
    for i, word in enumerate(words):
        rows[:, i] = table.column(word).to_numpy()
    return rows


def binary_of(entries: Entries) -> pa.Array:
    offsets = np.ascontiguousarray(entries.offsets, np.int64)
    data = np.ascontiguousarray(entries.data)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(entries.ids), buffers)


def entries_of(table: pa.Table) -> Entries:
    """Dictionary entries from the columns ``id`` and ``value``."""
    if table.num_rows == 0:
        return NO_ENTRIES
    values = table.column("value").cast(pa.large_binary()).combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks)
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return Entries(column_words(table, "id"), content[ends[0] : ends[-1]], ends - ends[0])
