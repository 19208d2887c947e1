"""Dictionary entries that executors propose: taken into the server's dictionary, and rows told the ids they got."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from ivm.rows import Words
from ivm.words import Storage
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn

Remap = tuple[Words, Words]
"""Proposed ids that are to be replaced, sorted, and what by."""


def take_entries(tables: Iterable[pa.Table], dictionary: Dictionary) -> Remap | None:
    """Interns the entries of tables with the columns w0 (the id) and value. None: an id stands for two values."""
    proposed, given = [], []
    for table in tables:
        ids = table.column("w0").to_numpy()
        values = table.column("value").cast(pa.large_binary()).combine_chunks()
        values = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
        if not len(ids):
            continue
        _, offsets, data = values.buffers()
        content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
        proposed.append(ids)
        given.append(dictionary.intern_packed(content[ends[0] : ends[-1]], ends - ends[0]))
    if not proposed:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    pairs = np.unique(np.stack([np.concatenate(proposed), np.concatenate(given)], axis=1), axis=0)
    if len(pairs) and (pairs[1:, 0] == pairs[:-1, 0]).any():
        return None
    moved = pairs[pairs[:, 0] != pairs[:, 1]]
    return moved[:, 0], moved[:, 1]


def replace_ids(rows: Words, columns: Sequence[LoadColumn], remap: Remap) -> None:
    """Gives words that are ids the ids that the server's dictionary has for their values, in place."""
    old, new = remap
    if not len(old):
        return
    for i, column in enumerate(columns):
        if column.type.storage is Storage.DIRECT:
            continue
        words = rows[:, i]
        at = np.minimum(np.searchsorted(old, words), len(old) - 1)
        rows[:, i] = np.where(old[at] == words, new[at], words)
