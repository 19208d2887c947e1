"""A batch's rows and entries, as executors encoded them, in this process: Arrow arrays in, words out, no objects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivm.rows import Words
from ivm.words import row_width
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn, load_schema
from storage.load.entries import replace_ids, take_entries
from storage.streams.encoded import ENTRY, ROW


def arrived_rows(table: pa.Table, columns: Sequence[LoadColumn], dictionary: Dictionary) -> Words | None:
    """The stream's rows (``storage.streams.encoded``) in their order, int64[n, width] packed by ``load_schema``.

    Their values are in the dictionary then. None: an id stands for two values, so that the batch must be encoded again
    by one task (once in 2^63 pairs of values).
    """
    part = table.column("part")
    entries = table.filter(pc.equal(part, ENTRY)).select(["w0", "value"]).rename_columns(["id", "value"])
    remap = take_entries([entries], dictionary)
    if remap is None:
        return None
    found = table.filter(pc.equal(part, ROW))
    rows = np.empty((found.num_rows, row_width(load_schema(columns))), np.int64)
    for i in range(rows.shape[1]):
        rows[:, i] = found.column(f"w{i}").to_numpy()
    replace_ids(rows, columns, remap)
    return rows
