"""INSERT … VALUES, and of unnested arrays, without a plan: rows that read no relation are computed directly.

A prepared single-row INSERT is the commonest write, and arrays are the commonest way to send many rows. Planning and
running a dataflow for them would cost more than the rest of their commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import FEW, RowSet, Vector, Words, null_bits, pack
from ivm.words import ColumnType, Kind, Schema, SqlType, row_width
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluated
from planner.expr.functions.library import ASSIGNMENT_CAST, RAISING_CASTS
from planner.expr.functions.system.sequence import IDENTITY, NEXTVAL
from planner.expr.literal_rows import LiteralRows
from planner.expr.scalar import Call, Column, Literal, Parameter, Scalar
from planner.logical.nodes import Project, Rel, TableFunction, Values
from planner.logical.traversal import has_subquery, scalars
from planner.memo import by_identity
from planner.peek.order_limit import projected
from planner.physical.table_programs import given_arrays, spread, widens
from storage.types.codec import encode


def constant_source(rel: Rel, context: Context) -> RowSet | None:
    """The rows of VALUES, of the client's unnested arrays, and of projections of these; None for other sources.

    Raises the errors of the expressions.
    """
    match rel:
        case Values() if not any(not isinstance(e, Literal | Parameter) and has_subquery(e) for e in scalars(rel)):
            return _values(rel, context)
        case TableFunction(function="unnest", ordinality=False) if rel.input == _ONE_ROW:
            arrays = given_arrays(rel.args, context)
            if arrays is None:
                return None
            expansion = spread(arrays, tuple(c.type for c in rel.columns), context)
            return RowSet(pack(expansion.columns, rel.columns, len(expansion.source)), rel.columns)
        case Project() if not any(map(has_subquery, rel.exprs)):
            source = constant_source(rel.input, context)
            if source is None or _is_whole(rel.exprs, source.schema):
                return source
            return projected(source, rel.exprs, context)
        case _:
            return None


_ONE_ROW: Final = Values(((),), ())
"""The plan that a lone table function in FROM is joined to."""


def _is_whole(exprs: tuple[Scalar, ...], schema: Schema) -> bool:
    """Whether the expressions are the columns, in order."""
    return len(exprs) == len(schema) and all(isinstance(e, Column) and e.index == i for i, e in enumerate(exprs))


def _values(rel: Values, context: Context) -> RowSet:
    count = len(rel.rows)
    if isinstance(rel.rows, LiteralRows) and count <= FEW:
        return RowSet(_few(rel.rows, rel.schema, context), rel.schema)
    if isinstance(rel.rows, LiteralRows):
        pairs = zip(rel.rows.types, rel.rows.columns, strict=True)
        return RowSet(pack([encode(t, c, context.dictionary) for t, c in pairs], rel.schema, count), rel.schema)
    vectors = [_column([row[i] for row in rel.rows], c.type, context) for i, c in enumerate(rel.schema)]
    schema = tuple(
        ColumnType(c.type, c.nullable or v.nulls is not None) for c, v in zip(rel.schema, vectors, strict=True)
    )
    return RowSet(pack(vectors, schema, count), schema)


def _few(rows: LiteralRows, schema: Schema, context: Context) -> Words:
    """A few rows as words: the columns of one type, which may be many, are encoded together."""
    count, width = len(rows), len(schema)
    found = np.zeros((count, row_width(schema)), np.int64)
    mask = np.zeros((count, width), np.bool_)
    for type_, places, columns in _alike(rows):
        vector = encode(type_, list(chain.from_iterable(columns)), context.dictionary)
        found[:, places] = vector.words.reshape(len(columns), count).T
        if vector.nulls is not None:
            mask[:, places] = vector.nulls.reshape(len(columns), count).T
    if mask.any():
        found[:, width:] = null_bits(mask)
    return found


def _alike(rows: LiteralRows) -> Iterator[tuple[SqlType, slice | list[int], Sequence[Sequence[object]]]]:
    """The columns of each type and their positions; by the types' identity, since equal ones are mostly one object."""
    if len(set(map(id, rows.types))) == 1:
        yield rows.types[0], slice(len(rows.types)), rows.columns
        return
    alike: dict[int, list[int]] = {}
    for i, type_ in enumerate(rows.types):
        alike.setdefault(id(type_), []).append(i)
    for places in alike.values():
        yield rows.types[places[0]], places, [rows.columns[i] for i in places]


def _column(cells: Sequence[Scalar], type_: SqlType, context: Context) -> Vector:
    """One column of VALUES: datums are encoded at once, other expressions are evaluated row by row."""
    plain = [plain_cell(c, type_) for c in cells]
    if None not in plain:
        return encode(type_, [_datum(c, context) for c in plain], context.dictionary)
    if all(c is cells[0] for c in cells):  # a column's default
        numbers = _numbers(cells[0], len(cells), context)
        if numbers is not None:
            return numbers
        (vector,) = evaluated(_alone(cells[0]), [], len(cells), context)
        return vector
    words = np.zeros(len(cells), np.int64)
    nulls = np.zeros(len(cells), np.bool_)
    for i, cell in enumerate(cells):
        (vector,) = evaluated(_alone(cell), [], 1, context)
        words[i] = vector.words[0]
        nulls[i] = vector.nulls is not None and bool(vector.nulls[0])
    return Vector(words, nulls if nulls.any() else None)


_GREATEST: Final = {Kind.INT2: 2**15 - 1, Kind.INT4: 2**31 - 1}


def _numbers(cell: Scalar, count: int, context: Context) -> Vector | None:
    """The next numbers of a sequence (SERIAL and identity columns), without the evaluator."""
    call, greatest = cell, None
    if isinstance(call, Call) and call.function == ASSIGNMENT_CAST and call.type.kind in _GREATEST:
        greatest, call = _GREATEST[call.type.kind], call.args[0]
    if not isinstance(call, Call) or call.function not in (NEXTVAL, IDENTITY) or not isinstance(call.args[0], Literal):
        return None
    assert context.session is not None, "a session inserts"
    sequence = call.args[0].value
    assert isinstance(sequence, int), "an oid"
    words = context.session.nextval(sequence, count, call.function == IDENTITY)
    if greatest is not None and (words.max() > greatest or words.min() < ~greatest):
        name = "smallint" if cell.type.kind is Kind.INT2 else "integer"
        raise SqlError("22003", f"{name} out of range")
    return Vector(words)


@by_identity
def _alone(cell: Scalar) -> tuple[Scalar]:
    """Always the same tuple for a cell: compiled expressions are cached by identity."""
    return (cell,)


def plain_cell(cell: Scalar, type_: SqlType) -> Literal | Parameter | None:
    """The constant or parameter whose datum a cell of a column's type is; None for others."""
    if isinstance(cell, Call) and cell.function in RAISING_CASTS and cell.type == type_:
        argument = cell.args[0]
        return argument if isinstance(argument, Parameter) and widens(argument.type, type_) else None
    return cell if isinstance(cell, Literal | Parameter) and cell.type == type_ else None


def _datum(cell: Scalar | None, context: Context) -> object:
    if isinstance(cell, Parameter):
        return context.parameters[cell.index - 1]
    assert isinstance(cell, Literal), "checked by the caller"
    return cell.value
