"""Reads a batch's rows and entries, as executors encoded them: Arrow arrays in, words out, without Python objects."""

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
    """The stream's rows (``storage.streams.encoded``) in order, int64[n, width], packed by ``load_schema``.

    Interns their values in the dictionary. None: one id stands for two values, so the batch must be encoded again by
    one task (once in 2^63 pairs of values).
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
