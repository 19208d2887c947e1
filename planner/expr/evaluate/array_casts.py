"""Casts of arrays, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ivm.rows import Vector, Words
from ivm.words import Kind, SqlType
from planner.expr.evaluate.calls import Run
from planner.expr.rows import RowBatch
from storage.types.arrays import Bounded, bounded, elements, nest, shape
from storage.types.codec import decode, encode

ElementCast = Callable[[Run, SqlType, SqlType, bool], tuple[Run, bool]]


def array_cast(
    arg: Run, source: SqlType, target: SqlType, assignment: bool, element_cast: ElementCast
) -> tuple[Run, bool]:
    """The function that runs an array cast, and whether the cast is immutable."""
    have, want = source.element, target.element
    assert have is not None
    assert want is not None
    cast, immutable = element_cast(lambda batch: batch.column(0), have, want, assignment)

    def run(batch: RowBatch) -> Vector:
        vector = arg(batch)
        arrays = decode(source, vector, batch.context.dictionary)
        shapes = [None if a is None else shape(a, have.kind is Kind.INTERVAL) for a in arrays]
        flat: list[Any] = []
        owner: list[int] = []
        for row, (array, lengths) in enumerate(zip(arrays, shapes, strict=True)):
            if lengths:
                before = len(flat)
                flat.extend(elements(array, len(lengths)))
                owner += [row] * (len(flat) - before)
        if not flat:
            return vector
        inner = RowBatch((encode(have, flat, batch.context.dictionary),), len(flat), batch.context)
        datums = decode(want, cast(inner), batch.context.dictionary)
        failed = _fail(batch, inner, np.array(owner, np.int64))
        built = _rebuilt(datums, shapes, failed)
        for row, array in enumerate(arrays):
            if isinstance(array, Bounded) and (cast_array := built[row]) is not None:
                built[row] = bounded(cast_array, array.lower)
        return encode(target, built, batch.context.dictionary)

    return run, immutable


def _fail(batch: RowBatch, inner: RowBatch, owner: Words) -> set[int]:
    rows: set[int] = set()
    for failed, error in inner.failed:
        batch.failed.append((owner[failed], error))
        rows.update(owner[failed].tolist())
    return rows


def _rebuilt(datums: list[Any], shapes: list[tuple[int, ...] | None], failed: set[int]) -> list[Any]:
    at = 0
    out: list[Any] = []
    for row, lengths in enumerate(shapes):
        if lengths is None:
            out.append(None)
            continue
        size = int(np.prod(lengths)) if lengths else 0
        items = datums[at : at + size]
        at += size
        out.append(None if row in failed else nest(items, lengths))
    return out
