"""Evaluation of many rows in slices, between which it is asked whether the work is to end, and for memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ivm.rows import Vector
from ivm.stops import poll, room
from planner.expr.context import Context
from planner.expr.rows import Failures, with_nulls

SLICE: Final = 1 << 16
Evaluate = Callable[[Sequence[Vector], int, Context], tuple[list[Vector], Failures | None]]


def in_slices(
    evaluate: Evaluate, columns: Sequence[Vector], count: int, context: Context
) -> tuple[list[Vector], Failures | None]:
    """What ``evaluate`` gives of all rows. Raises Stopped (57014, 53200)."""
    parts: list[list[Vector]] = []
    failed: list[Failures] = []
    for at in range(0, count, SLICE):
        poll()
        if context.dictionary.is_scratch:
            room(context.dictionary.arena.byte_size)  # what a query interns is its own
        rows = slice(at, min(at + SLICE, count))
        part = [Vector(v.words[rows], None if v.nulls is None else v.nulls[rows]) for v in columns]
        vectors, failures = evaluate(part, rows.stop - at, context)
        parts.append(vectors)
        if failures is not None:
            failed.append(Failures(failures.rows + at, failures.errors))
    whole = [_together(vectors) for vectors in zip(*parts, strict=True)]
    if not failed:
        return whole, None
    return whole, Failures(np.concatenate([f.rows for f in failed]), [e for f in failed for e in f.errors])


def _together(vectors: Sequence[Vector]) -> Vector:
    words = np.concatenate([v.words for v in vectors])
    if all(v.nulls is None for v in vectors):
        return Vector(words)
    nulls = [np.zeros(len(v.words), np.bool_) if v.nulls is None else v.nulls for v in vectors]
    return with_nulls(words, np.concatenate(nulls))
