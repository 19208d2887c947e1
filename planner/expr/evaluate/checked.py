"""Values that must meet a condition, or all of whose elements must: ``Checked``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ivm.rows import Vector
from ivm.words import Kind, SqlType
from planner.expr.evaluate.calls import Run
from planner.expr.rows import RowBatch, nulls_of, with_nulls
from storage.types.arrays import elements, shape
from storage.types.codec import decode, encode


def run_checked(value: Run, check: Run, element: SqlType | None) -> Run:
    """The value, NULL where the check has failed. ``check``: over the value as its one column, or over each element of
    the array if ``element`` says their type."""

    def run(batch: RowBatch) -> Vector:
        vector = value(batch)
        owner = np.arange(batch.count)
        given = vector
        if element is not None:
            given, owner = _elements(vector, element, batch)
        inner = RowBatch((given,), len(owner), batch.context)
        if not len(owner):
            return vector
        check(inner)
        if not inner.failed:
            return vector
        nulls = nulls_of(vector).copy()
        for failed, error in inner.failed:
            batch.failed.append((owner[failed], error))
            nulls[owner[failed]] = True
        return with_nulls(vector.words, nulls)

    return run


def _elements(vector: Vector, element: SqlType, batch: RowBatch) -> tuple[Vector, Any]:
    """The elements of all arrays, and the row that each is from."""
    dictionary = batch.context.dictionary
    flat: list[Any] = []
    owner: list[int] = []
    for row, array in enumerate(decode(SqlType(Kind.ARRAY, element=element), vector, dictionary)):
        if array is not None and (lengths := shape(array, element.kind is Kind.INTERVAL)):
            found = list(elements(array, len(lengths)))
            flat += found
            owner += [row] * len(found)
    return encode(element, flat, dictionary), np.array(owner, np.int64)
