"""Floats ↔ texts, as columns: pyarrow reads them and finds the shortest digits; a kernel lays these out as PostgreSQL
does."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ivm.rows import Mask, Words
from storage.text_columns import TextColumn, of_bytes, of_parts, packed

_EXACT: Final = 1 << 53
"""Up to here doubles hold all integers."""
_TENS: Final = np.array([float(10**n) for n in range(23)])
"""The powers of ten that doubles hold."""


def decimal_floats(mantissas: Words, scales: Words) -> tuple[NDArray[np.float64], Mask]:
    """The doubles nearest to ``mantissa * 10**-scale``, and which are not known: the quotient of two integers that
    doubles hold is one that is rounded once."""
    rest = (np.abs(mantissas) >= _EXACT) | (scales < 0) | (scales >= len(_TENS))
    return np.where(rest, 0, mantissas) / _TENS[np.where(rest, 0, scales)], rest


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


def floats_of(column: TextColumn) -> NDArray[np.float64]:
    """The doubles nearest to numbers, written ``[-]digits[.digits]``; NaN for other texts."""
    import pyarrow as pa

    data, offsets = packed(column)
    firsts = data[np.minimum(offsets[:-1] + (data[offsets[:-1]] == ord("-")), len(data) - 1)]
    numbers = np.flatnonzero((firsts >= ord("0")) & (firsts <= ord("9")) & (column.lengths > 0))
    if len(numbers) < len(column):
        data, offsets = packed(column.rows(numbers))
    texts = pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data))
    values = np.full(len(column), np.nan)
    values[numbers] = texts.cast(pa.float64()).to_numpy()
    return values
