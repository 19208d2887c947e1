"""Floats → their texts, as columns: pyarrow finds the shortest digits, a kernel lays them out as PostgreSQL does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ivm.rows import Mask
from storage.text_columns import TextColumn, of_bytes, of_parts


def float_texts(values: NDArray[np.float64], narrow: bool) -> tuple[TextColumn, Mask]:
    """What ``format_float8`` gives, or ``format_float4`` of ``narrow`` ones, and the rows of which it is not known:
    numbers that stand halfway between two others need care from 2**53, or 2**24, on."""
    import pyarrow as pa

    from ivm.kernels import floats

    count = len(values)
    rest = ~(np.abs(values) < (2.0**24 if narrow else 2.0**53))
    known = np.where(rest, 0.0, values)
    digits = pa.array(known.astype(np.float32) if narrow else known).cast(pa.string())
    _, offsets, data = digits.buffers()
    ends = np.frombuffer(offsets, np.int32, count + 1).astype(np.int64)
    column = of_bytes(np.frombuffer(data, np.uint8), ends)
    texts, sizes = np.empty(max(count, 1) * floats.FLOAT_ROOM, np.uint8), np.empty(count, np.int64)
    floats.lay_out_floats(column.starts, column.lengths, 6 if narrow else 15, texts, sizes)
    return of_parts(texts, floats.FLOAT_ROOM * np.arange(count), sizes), rest
