"""Distinct words and rows are those that numpy.unique finds, whose calls hold Python's lock."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ivm.distinct import distinct, distinct_rows
from ivm.rows import Words
from tests.support.paths import ROOT

NUMBERS = st.one_of(st.integers(-2, 2), st.sampled_from([-(2**63), 2**63 - 1]))
ROWS = st.tuples(st.integers(0, 12), st.integers(1, 3)).flatmap(lambda shape: arrays(np.int64, shape, elements=NUMBERS))


@given(arrays(np.int64, st.integers(0, 12), elements=NUMBERS))
def test_words(words: Words) -> None:
    np.testing.assert_array_equal(distinct(words), np.unique(words))


@given(ROWS, st.booleans())
def test_rows(rows: Words, backwards: bool) -> None:
    rows = np.asfortranarray(rows)[::-1] if backwards else rows
    found = distinct_rows(rows)
    known = np.unique(rows, axis=0, return_index=True, return_inverse=True, return_counts=True)
    for ours, theirs in zip(found, known, strict=True):
        np.testing.assert_array_equal(ours, theirs.reshape(ours.shape))
    assert found.rows.flags.c_contiguous


def test_rows_without_columns() -> None:
    found = distinct_rows(np.zeros((3, 0), np.int64))
    assert [part.tolist() for part in found] == [[[]], [0], [0, 0, 0], [3]]
    assert [len(part) for part in distinct_rows(np.zeros((0, 0), np.int64))] == [0] * 4


@pytest.mark.parametrize("folder", ["ivm", "planner", "storage", "sql"])
def test_nothing_calls_what_holds_the_lock(folder: str) -> None:
    """numpy.unique of words sorts, and releases the lock, if it returns more than the words."""
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.unique":
                named = {keyword.arg for keyword in node.keywords}
                assert named & {"return_index", "return_inverse", "return_counts"}, f"{path}:{node.lineno}"
                assert "axis" not in named, f"{path}:{node.lineno}"
