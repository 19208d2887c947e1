"""BEFORE triggers of rows, which make a statement run row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ivm.errors import SqlError
from ivm.rows import RowSet, Vector, Words, pack
from ivm.trace.trace import LATEST
from ivm.words import ColumnType
from planner import gathers
from planner.physical.layouts import table_layout
from sql.catalog.catalog import Relation
from sql.dml.constraints import fit
from sql.dml.triggers import Datums, Firer, fire_before, rows_of, triggers_of
from storage.types.codec import decode, encode


def row_by_row(changer: Firer, table: Relation, event: str) -> bool:
    """Whether rows of a table, or of the tables below it, have BEFORE triggers for this event."""
    links = changer.keys.links(changer.writer.catalog)
    if not links.triggers or changer.caller is None:
        return False
    tables = (table, *changer.writer.catalog.below(table))
    return any(triggers_of(changer, t, "before", event, row=True) for t in tables)


def given_rows(source: RowSet, first: int, table: Relation, changer: Firer) -> list[Datums]:
    """The columns of a statement's source from ``first`` on, as rows of a table."""
    vectors = source.columns()[first : first + len(table.columns)]
    pairs = zip(table.columns, vectors, strict=True)
    columns = [decode(c.type, v, changer.context.dictionary) for c, v in pairs]
    return list(zip(*columns, strict=True)) if columns else [()] * len(source)


def vectors_of(table: Relation, row: Datums, changer: Firer) -> list[Vector]:
    """One row as columns."""
    return [encode(c.type, [value], changer.context.dictionary) for c, value in zip(table.columns, row, strict=True)]


def with_columns(source: RowSet, first: int, vectors: Sequence[Vector]) -> RowSet:
    """The source with other columns from ``first`` on."""
    columns, schema = list(source.columns()), list(source.schema)
    for i, vector in enumerate(vectors):
        columns[first + i] = vector
        schema[first + i] = ColumnType(schema[first + i].type, True)
    return RowSet(pack(columns, tuple(schema), len(source)), tuple(schema))


def inserted(changer: Firer, table: Relation, source: RowSet) -> RowSet | None:
    """The one row of the source as BEFORE INSERT triggers give it, None to leave it out. Raises 0A000 where a trigger
    moves the row to another partition."""
    (row,) = given_rows(source, 0, table, changer)
    leaf = table
    if table.partitioning is not None:
        leaf = leaf_of(changer, table, source)
    places = [[c.name for c in table.columns].index(c.name) for c in leaf.columns]
    own = tuple(None if c.expression is not None else row[p] for c, p in zip(leaf.columns, places, strict=True))
    if not triggers_of(changer, leaf, "before", "insert", row=True):
        return source
    found = fire_before(changer, leaf, "insert", None, own)
    if found is None:
        return None
    changed = list(row)
    for place, value in zip(places, found, strict=True):
        changed[place] = value
    after = with_columns(source, 0, vectors_of(table, tuple(changed), changer))
    if leaf is not table:
        _check_stays(changer, table, leaf, after)
    return after


def leaf_of(changer: Firer, table: Relation, source: RowSet) -> Relation:
    """The partition of the source's one row. Raises 23514."""
    rows = fit(table, source, changer.context)
    return changer.router().route(table, rows)[0].leaf


def _check_stays(changer: Firer, table: Relation, leaf: Relation, after: RowSet) -> None:
    if leaf_of(changer, table, after).id == leaf.id:
        return
    name = triggers_of(changer, leaf, "before", "insert", row=True)[-1].name
    detail = f'Before executing trigger "{name}", the row was to be in partition "{leaf.schema_name}.{leaf.name}".'
    message = "moving row to another partition during a BEFORE FOR EACH ROW trigger is not supported"
    raise SqlError("0A000", message, detail)


def updated(changer: Firer, table: Relation, old: Words, source: RowSet, place: Callable[[int], int]) -> RowSet | None:
    """The one row of the source as BEFORE UPDATE triggers give it, None to leave it out. ``table``: the one that stores
    the row; ``place``: where the source has a column's new value."""
    if not triggers_of(changer, table, "before", "update", row=True):
        return source
    (before,) = rows_of(table, old, changer.context)
    columns = source.columns()
    new = tuple(
        None if c.expression is not None else decode(c.type, columns[place(i)], changer.context.dictionary)[0]
        for i, c in enumerate(table.columns)
    )
    found = fire_before(changer, table, "update", before, new)
    if found is None:
        return None
    kinds = list(source.schema)
    for i, vector in enumerate(vectors_of(table, found, changer)):
        columns[place(i)] = vector
        kinds[place(i)] = ColumnType(kinds[place(i)].type, True)
    return RowSet(pack(columns, tuple(kinds), 1), tuple(kinds))


def moved(changer: Firer, table: Relation, leaf: Relation, old: Words, source: RowSet, first: int) -> RowSet | None:
    """The one row of an UPDATE of a partitioned table as the triggers of a deletion and an insertion give it, if it
    moves to another partition; None to leave it out. If only the insertion is refused, the old row is deleted, as in
    Postgres. ``first``: where the source has the new row."""
    columns = source.columns()[first : first + len(table.columns)]
    schema = tuple(ColumnType(c.type, True) for c in table.columns)
    new = RowSet(pack(columns, schema, 1), schema)
    if leaf_of(changer, table, new).id == leaf.id:
        return source
    if not deletes(changer, leaf, old):
        return None
    after = inserted(changer, table, new)
    if after is None:
        changer.apply(leaf, old, old[:0])
        return None
    return with_columns(source, first, after.columns())


def deletes(changer: Firer, table: Relation, old: Words) -> bool:
    """Whether BEFORE DELETE triggers let a row be deleted."""
    if not triggers_of(changer, table, "before", "delete", row=True):
        return True
    (before,) = rows_of(table, old, changer.context)
    return fire_before(changer, table, "delete", before, None) is not None


def check_present(changer: Firer, table: Relation, rows: Words, what: str) -> None:
    """27000 where a row is gone: a trigger of the same statement has changed it. ``what``: updated or deleted."""
    writer = changer.writer
    if writer.pending((table.id,)) is None:
        writer.settle()
    version, stored = writer.arrangement(table), writer.engine.stored()[table.id]
    arranged, _ = gathers.apply(table_layout(stored.schema, stored.primary_key).gather, rows)
    keys = np.ascontiguousarray(arranged[:, : version.key_width])
    found, diffs, _ = version.lookup(keys, LATEST)
    there: dict[bytes, int] = {}
    for row, diff in zip(found, diffs, strict=True):
        there[row.tobytes()] = there.get(row.tobytes(), 0) + int(diff)
    if any(there.get(np.ascontiguousarray(row).tobytes(), 0) <= 0 for row in arranged):
        hint = "Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows."
        message = f"tuple to be {what} was already modified by an operation triggered by the current command"
        raise SqlError("27000", message, hint=hint)
