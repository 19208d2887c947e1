"""Evaluates expressions over the rows of a data-modifying statement (ON CONFLICT, RETURNING), with or without
subqueries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ivm.rows import RowSet, Vector, Words, pack
from ivm.words import INT8, ColumnType
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluated
from planner.expr.scalar import Column, Scalar
from planner.logical.nodes import Get, Project, Rel
from planner.logical.traversal import has_subquery

ROWS: Final = -(1 << 30)
"""The relation id of these rows in the subqueries' plan; the parts of a WITH count down from -1."""

RowValues = Callable[[Sequence[Scalar], RowSet], list[Vector]]
"""The expressions' values over rows. Raises the first row's error."""

RunGiven = Callable[[Rel, Words], RowSet]
"""Runs a plan in which ``ROWS`` has these distinct rows."""


def direct(context: Context) -> RowValues:
    """For expressions without subqueries."""

    def values(exprs: Sequence[Scalar], rows: RowSet) -> list[Vector]:
        return evaluated(exprs, rows.columns(), len(rows), context)

    return values


def over_snapshot(context: Context, run: RunGiven) -> RowValues:
    """For expressions with subqueries: they become a query over the numbered rows, planned anew for each execution."""
    plain = direct(context)

    def values(exprs: Sequence[Scalar], rows: RowSet) -> list[Vector]:
        planned = [has_subquery(e) for e in exprs]
        asked = [e for e, is_planned in zip(exprs, planned, strict=True) if is_planned]
        found = iter(_queried(asked, rows, run))
        rest = iter(plain([e for e, is_planned in zip(exprs, planned, strict=True) if not is_planned], rows))
        return [next(found) if is_planned else next(rest) for is_planned in planned]

    return values


def _queried(exprs: Sequence[Scalar], rows: RowSet, run: RunGiven) -> list[Vector]:
    count, width = len(rows), len(rows.schema)
    if not count or not exprs:
        return [Vector(np.zeros(0, np.int64)) for _ in exprs]
    schema = (*(ColumnType(c.type, c.nullable) for c in rows.schema), ColumnType(INT8, False))
    numbered = pack([*rows.columns(), Vector(np.arange(count))], schema, count)
    given = np.ascontiguousarray(numbered[np.lexsort(numbered.T[::-1])])
    result = run(Project(Get(ROWS, schema), (Column(width, INT8, False), *exprs)), given)
    assert len(result) == count, "a row has one value of each expression"
    numbers, *vectors = result.columns()
    back = np.argsort(numbers.words)
    return [Vector(v.words[back], None if v.nulls is None else v.nulls[back]) for v in vectors]
