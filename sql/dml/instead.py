"""INSTEAD OF triggers: what a statement asks of a view, its triggers do, row by row."""

from __future__ import annotations

import numpy as np

from ivm.rows import Mask, RowSet, Vector, pack
from ivm.words import ColumnType
from sql.catalog.catalog import Relation, RelationKind
from sql.dml.triggered import given_rows
from sql.dml.triggers import Datums, Firer, fire_instead
from sql.statements.statements import Delete, Insert, Update
from storage.types.codec import encode


def is_view(table: Relation) -> bool:
    """Whether a statement's target is a view, whose triggers do its work."""
    return table.kind is RelationKind.VIEW


def inserted_instead(changer: Firer, statement: Insert, source: RowSet) -> RowSet:
    """The rows as the triggers of an INSERT give them."""
    view = statement.table
    found = [fire_instead(changer, view, "insert", None, row) for row in given_rows(source, 0, view, changer)]
    return _rows(changer, view, [row for row in found if row is not None])


def updated_instead(changer: Firer, statement: Update, source: RowSet) -> RowSet:
    """The rows (new row as the triggers give it, others) of an UPDATE."""
    view = statement.table
    width = len(view.columns)
    pairs = zip(given_rows(source, 0, view, changer), given_rows(source, width, view, changer), strict=True)
    found = [fire_instead(changer, view, "update", old, new) for old, new in pairs]
    new = _rows(changer, view, [row for row in found if row is not None])
    kept = np.array([row is not None for row in found], np.bool_)
    others = _taken(source, kept)
    columns = [*new.columns(), *others.columns()[2 * width :]]
    schema = (*new.schema, *others.schema[2 * width :])
    return RowSet(pack(columns, schema, len(new)), schema)


def deleted_instead(changer: Firer, statement: Delete, source: RowSet) -> RowSet:
    """The rows of a DELETE that the triggers have deleted."""
    old = given_rows(source, 0, statement.table, changer)
    found = [fire_instead(changer, statement.table, "delete", row, None) is not None for row in old]
    return _taken(source, np.array(found, np.bool_))


def _taken(source: RowSet, kept: Mask) -> RowSet:
    return RowSet(np.ascontiguousarray(source.rows[kept]), source.schema)


def _rows(changer: Firer, view: Relation, rows: list[Datums]) -> RowSet:
    schema = tuple(ColumnType(c.type, True) for c in view.columns)
    dictionary = changer.context.dictionary
    vectors: list[Vector] = [encode(c.type, [row[i] for row in rows], dictionary) for i, c in enumerate(view.columns)]
    return RowSet(pack(vectors, schema, len(rows)), schema)
