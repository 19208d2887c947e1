"""INSERT … VALUES without a plan: rows that need no relation are computed where they stand.

A prepared single-row INSERT is the commonest write of all; planning and running a dataflow for it would cost more
than everything else in its commit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ivm.rows import RowSet, Vector, pack
from ivm.words import ColumnType, SqlType
from planner.context import Context
from planner.evaluate import evaluate
from planner.logical import Project, Rel, Values
from planner.scalar import Literal, Parameter, Scalar
from planner.traverse import has_subquery
from storage.codec import encode


def constant_source(rel: Rel, context: Context) -> RowSet | None:
    """The rows of VALUES and projections of it, None for other sources. Raises what an expression raises."""
    match rel:
        case Values() if not any(has_subquery(e) for row in rel.rows for e in row):
            return _values(rel, context)
        case Project() if not any(map(has_subquery, rel.exprs)):
            source = constant_source(rel.input, context)
            if source is None:
                return None
            vectors, failures = evaluate(rel.exprs, source.columns(), len(source), context)
            if failures is not None:
                raise failures.errors[0]
            schema = tuple(
                ColumnType(e.type, e.nullable or v.nulls is not None) for e, v in zip(rel.exprs, vectors, strict=True)
            )
            return RowSet(pack(vectors, schema, len(source)), schema)
        case _:
            return None


def _values(rel: Values, context: Context) -> RowSet:
    count = len(rel.rows)
    vectors = [_column([row[i] for row in rel.rows], c.type, context) for i, c in enumerate(rel.schema)]
    schema = tuple(
        ColumnType(c.type, c.nullable or v.nulls is not None) for c, v in zip(rel.schema, vectors, strict=True)
    )
    return RowSet(pack(vectors, schema, count), schema)


def _column(cells: Sequence[Scalar], type_: SqlType, context: Context) -> Vector:
    """One column of VALUES: datums are encoded at once, anything else is evaluated row by row."""
    if all(isinstance(c, Literal | Parameter) and c.type == type_ for c in cells):
        return encode(type_, [_datum(c, context) for c in cells], context.dictionary)
    words = np.zeros(len(cells), np.int64)
    nulls = np.zeros(len(cells), np.bool_)
    for i, cell in enumerate(cells):
        (vector,), failures = evaluate((cell,), [], 1, context)
        if failures is not None:
            raise failures.errors[0]
        words[i] = vector.words[0]
        nulls[i] = vector.nulls is not None and bool(vector.nulls[0])
    return Vector(words, nulls if nulls.any() else None)


def _datum(cell: Scalar, context: Context) -> object:
    if isinstance(cell, Parameter):
        return context.parameters[cell.index - 1]
    assert isinstance(cell, Literal), "checked by the caller"
    return cell.value
