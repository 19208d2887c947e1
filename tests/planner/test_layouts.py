"""Rows come back from an arrangement's layout as they were."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ivm.rows import Vector, pack
from ivm.words import INT8, ColumnType
from planner import gathers
from planner.physical.layouts import table_layout


@pytest.mark.parametrize("columns", [1, 3, 8, 70, 140])
def test_rows_are_restored(columns: int) -> None:
    rng = random.Random(columns)
    for _ in range(40):
        schema = tuple(ColumnType(INT8, rng.random() < 0.6) for _ in range(columns))
        key = tuple(rng.sample(range(columns), rng.randrange(1, min(columns, 3) + 1)))
        vectors = []
        for place, column in enumerate(schema):
            words = np.array([rng.randrange(-(2**63), 2**63) for _ in range(12)], np.int64)
            nulls = np.array([rng.random() < 0.4 for _ in range(12)])
            some = column.nullable and place not in key
            vectors.append(Vector(np.where(nulls, 0, words), nulls) if some else Vector(words))
        rows = pack(vectors, schema, 12)
        layout = table_layout(schema, key)
        moved, _ = gathers.apply(layout.gather, rows)
        back, _ = gathers.apply(layout.restore(schema), moved)
        assert (back == rows).all()


def test_a_table_by_its_first_column_is_as_it_was() -> None:
    """So that reading it copies nothing."""
    schema = (ColumnType(INT8, False), *(ColumnType(INT8, True) for _ in range(5)))
    rows = np.arange(28).reshape(4, 7)
    assert gathers.apply(table_layout(schema, (0,)).restore(schema), rows)[0] is rows
