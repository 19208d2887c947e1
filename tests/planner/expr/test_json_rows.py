"""JSON of rows that the query makes, which is written from the rows' fields, against JSON of rows."""

from __future__ import annotations

from random import Random
from typing import Final

import numpy as np
import pytest

from ivm.rows import Vector
from ivm.words import INT8, JSON, JSONB, TEXT, Kind, SqlType
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluated
from planner.expr.functions.row import ROW
from planner.expr.scalar import Call, Column, Scalar
from storage.dictionary import Dictionary
from storage.types.codec import decode, encode
from tests.planner.expr.test_vector_forms import DRAWN

FUNCTIONS: Final = (
    ("row_to_json(record)", JSON), ("to_json(anyelement)", JSON), ("json_element(anyelement)", TEXT),
    ("to_jsonb(anyelement)", JSONB), ("jsonb_element(anyelement)", TEXT),
)  # fmt: skip
NAMES: Final = ("id", "a name", 'quote"d', "ä", "id", "zz", "Tab\t")


def answers(call: Scalar, columns: list[Vector], count: int, context: Context) -> list[object]:
    (found,) = evaluated((call,), columns, count, context)
    return decode(call.type, found, context.dictionary)


@pytest.mark.parametrize(("function", "result"), FUNCTIONS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_from_fields_or_from_the_row(function: str, result: SqlType, seed: int) -> None:
    random, count = Random(seed), 100
    context = Context(Dictionary(b"0123456789abcdef"), timezone="Europe/Berlin")
    types = [INT8, *random.choices([t for t in DRAWN if t not in (INT8, JSON)], k=random.randint(0, 6))]
    values = [[None if random.random() < 0.1 else DRAWN[t](random) for _ in range(count)] for t in types]
    columns = [encode(t, column, context.dictionary) for t, column in zip(types, values, strict=True)]
    row_type = SqlType(Kind.RECORD, fields=tuple(zip(NAMES, types, strict=False)))
    row = Call(ROW, tuple(Column(i, t) for i, t in enumerate(types)), row_type, False)
    (rows,) = evaluated((row,), columns, count, context)
    made = answers(Call(function, (row,), result), columns, count, context)
    assert made == answers(Call(function, (Column(0, row_type),), result), [rows], count, context)
    few = [Vector(c.words[:3], None if c.nulls is None else c.nulls[:3]) for c in columns]
    assert made[:3] == answers(Call(function, (row,), result), few, 3, context)
    assert len(set(made)) > 1
    assert np.count_nonzero([m is None for m in made]) == 0
