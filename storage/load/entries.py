"""Takes dictionary entries proposed by executors into the server's dictionary, and remaps the rows' ids where they
differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ivm.distinct import distinct_rows
from ivm.rows import Words
from ivm.words import Storage
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn

Remap = tuple[Words, Words]
"""Proposed ids to replace, sorted, and their replacements."""


def take_entries(batches: Iterable[pa.RecordBatch | pa.Table], dictionary: Dictionary) -> Remap | None:
    """Interns entries, given as columns id and value. None if one batch has the same id for two values."""
    moved: list[Words] = [np.zeros((0, 2), np.int64)]
    for batch in batches:
        if not batch.num_rows:
            continue
        proposed = batch.column("id").to_numpy()
        given = dictionary.intern_packed(*_packed(batch.column("value")))
        pairs = distinct_rows(np.stack([proposed, given], axis=1)).rows
        if (pairs[1:, 0] == pairs[:-1, 0]).any():
            return None
        moved.append(pairs[pairs[:, 0] != pairs[:, 1]])
    found = distinct_rows(np.concatenate(moved)).rows
    return found[:, 0], found[:, 1]


def _packed(values: Any) -> tuple[NDArray[np.uint8], Words]:
    values = values.cast(pa.large_binary())
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks)
    _, offsets, data = values.buffers()
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return content[ends[0] : ends[-1]], ends - ends[0]


def replace_ids(rows: Words, columns: Sequence[LoadColumn], remap: Remap) -> None:
    """Replaces proposed ids among the words by those of the server's dictionary, in place."""
    old, new = remap
    if not len(old):
        return
    for i, column in enumerate(columns):
        if column.type.storage is Storage.DIRECT:
            continue
        words = rows[:, i]
        at = np.minimum(np.searchsorted(old, words), len(old) - 1)
        rows[:, i] = np.where(old[at] == words, new[at], words)
