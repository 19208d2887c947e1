"""Many rows are evaluated in slices: the same values and failures as all at once."""

from __future__ import annotations

import numpy as np
import pytest

from ivm.rows import Vector
from ivm.words import BOOL, INT8
from planner.expr.context import Context
from planner.expr.evaluate import evaluator, slices
from planner.expr.scalar import Call, Column, Literal
from storage.dictionary import Dictionary


@pytest.mark.parametrize("size", [7, 1000])
def test_slices_are_as_the_whole(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    rng = np.random.default_rng(1)
    words, nulls = rng.integers(-3, 4, 100), rng.random(100) < 0.2
    exprs = (
        Call("/(int8,int8)", (Literal(6, INT8), Column(0, INT8)), INT8),
        Call("is null", (Column(0, INT8),), BOOL, False),
        Literal(5, INT8),
    )
    for module in (evaluator, slices):
        monkeypatch.setattr(module, "SLICE", size)
    context = Context(Dictionary(bytes(16)).scratch())
    vectors, failures = evaluator.compile_expressions(exprs)([Vector(words, nulls)], 100, context)
    assert failures is not None
    assert failures.rows.tolist() == np.flatnonzero((words == 0) & ~nulls).tolist()
    assert {e.sqlstate for e in failures.errors} == {"22012"}
    good = (words != 0) & ~nulls
    assert vectors[0].nulls is not None
    assert vectors[0].nulls.tolist() == (~good).tolist()
    assert vectors[0].words[good].tolist() == [int(6 / w) for w in words[good].tolist()]
    assert vectors[1].words.tolist() == nulls.astype(int).tolist()
    assert vectors[2].words.tolist() == [5] * 100
