"""UPDATE and DELETE of the rows of a table and of the tables that inherit from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ivm.errors import SqlError
from ivm.rows import RowSet, Vector, Words, pack, unpack
from ivm.words import Schema
from planner.expr.context import Context
from sql.bind.generation import generated_columns
from sql.dml.constraints import fit
from sql.statements.statements import Branch, Delete, Update


@dataclass(frozen=True, slots=True)
class BranchRows:
    """One table's share of a statement's rows. ``places``: their positions in the source."""

    branch: Branch
    places: Words
    old: Words


def shares(statement: Update | Delete, source: RowSet) -> list[BranchRows]:
    """The source's rows, grouped by the table that stores them."""
    columns = source.columns()
    oids = columns[statement.width - 1].words
    found = []
    for branch in statement.branches:
        places = np.flatnonzero(oids == branch.table.oid)
        if len(places):
            own = [taken(columns[i], places) for i in branch.columns]
            found.append(BranchRows(branch, places, pack(own, branch.table.schema, len(places))))
    return found


def new_rows(statement: Update, share: BranchRows, source: RowSet, kept: Words, context: Context) -> Words:
    """The new rows of one table for its rows at the positions ``kept`` of the source; 23502."""
    columns = source.columns()[statement.width :]
    width = len(share.branch.columns)
    own = [taken(columns[i], kept) for i in share.branch.columns]
    schema = tuple(source.schema[statement.width + i] for i in share.branch.columns)
    assert len(schema) == width
    return fit(share.branch.table, RowSet(pack(own, schema, len(kept)), schema), context)


def stored_rows(source: RowSet, schema: Schema) -> Words:
    """The source's leading columns as stored rows of ``schema``."""
    if source.schema == schema:
        return source.rows
    columns = source.columns()[: len(schema)]
    for column, vector in zip(schema, columns, strict=True):
        if not column.nullable and vector.nulls is not None and vector.nulls.any():
            raise SqlError("XX000", "internal error: a stored row has NULL in a column that is NOT NULL")
    return pack(columns, schema, len(source))


def part(source: RowSet, places: Words, columns: tuple[int, ...]) -> RowSet:
    """These columns of these rows."""
    vectors = source.columns()
    kept = [
        Vector(v.words[places], None if v.nulls is None else v.nulls[places]) for v in (vectors[i] for i in columns)
    ]
    schema = tuple(source.schema[i] for i in columns)
    return RowSet(pack(kept, schema, len(places)), schema)


def show_generated(shown: list[Vector], changed: Sequence[tuple[Branch, Words]], kept: Sequence[Words]) -> None:
    """Put the generated columns of each table's new rows, which were at ``kept`` of the source, into the columns shown,
    in the order of ``chosen_rows``."""
    places = np.sort(np.concatenate(kept)) if kept else np.zeros(0, np.int64)
    for (branch, rows), own in zip(changed, kept, strict=True):
        vectors = unpack(rows, branch.table.schema)
        for i, _ in generated_columns(branch.table):
            wide = branch.columns[i]
            words, nulls = shown[wide].words.copy(), shown[wide].nulls
            nulls = np.zeros(len(words), np.bool_) if nulls is None else nulls.copy()
            at = np.searchsorted(places, own)
            words[at] = vectors[i].words
            given = vectors[i].nulls
            nulls[at] = False if given is None else given
            shown[wide] = Vector(words, nulls)


def chosen_rows(source: RowSet, kept: Sequence[Words]) -> RowSet:
    """The source's rows at these positions, in the source's order."""
    places = np.sort(np.concatenate(kept)) if kept else np.zeros(0, np.int64)
    return RowSet(source.rows[places], source.schema)


def taken(vector: Vector, places: Words) -> Vector:
    """A column at these positions."""
    return Vector(vector.words[places], None if vector.nulls is None else vector.nulls[places])
