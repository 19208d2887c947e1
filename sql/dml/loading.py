"""Inserts a load's rows into a table. Large loads are sorted beside the engine; the remaining checks are lookups in the
table."""

from __future__ import annotations

import numpy as np

from ivm.rows import Words
from ivm.trace.trace import LATEST
from planner.physical.layouts import table_layout
from sql.catalog.catalog import Relation
from sql.catalog.keys import Check
from sql.dml.changes import Changer
from sql.dml.constraints import CHECKED_ROWS, duplicate_key
from sql.dml.key_index import TableKey, first_of_each
from storage.load.collector import Few, KeyOrder, SortedLoad
from storage.row_file import slices


def order_of(table: Relation) -> KeyOrder:
    """The order and layout in which a table's own arrangement keeps a load's rows."""
    layout = table_layout(table.row_schema, table.primary_key)
    return KeyOrder(layout.gather.words, layout.key_width)


def insert_load(changer: Changer, table: Relation, rows: Few | SortedLoad, checks: tuple[Check, ...]) -> None:
    """Insert a load's rows, which have passed ``checks``. Raises 23505, 23514, 23503.

    Cost: O(rows · log state) if the table is not empty and has keys, or refers to other tables; else that of an insert
    of few rows.
    """
    fires = changer.keys.links(changer.writer.catalog).triggers.get(table.id)
    excluding = changer.keys.rules(table).exclusions
    if (
        isinstance(rows, Few)
        or excluding
        or table.empties
        or table.partitioning is not None
        or fires
        or rows.order != order_of(table)
    ):
        changer.insert_rows(table, rows.whole())
        return
    changer.writer.lock_whole(table)
    for part in slices(len(rows.rows), CHECKED_ROWS):  # now: what waits is undone, and the file would be gone
        changer.references().lock_referred(table, rows.rows[part])
    changer.check_conditions(table, rows.rows, met=checks)
    _check_keys(changer, table, rows)
    changer.keys.record(table, rows.rows, 1, changer.context, changer.writer)
    changer.writer.add_arranged(table.id, rows.rows, rows.file, rows.batch)
    changer.writer.add(table.id, rows.more.rows, rows.more.times)
    for part in slices(len(rows.rows), CHECKED_ROWS):
        changer.keep_references(table, rows.rows[:0], None, rows.rows[part])


def _check_keys(changer: Changer, table: Relation, rows: SortedLoad) -> None:
    for check in changer.keys.rules(table).computed:
        check.keys(rows.rows, changer.context)
        check.keys(rows.more.rows, changer.context)
    for key in changer.keys.of(table):
        if key.index.columns == table.primary_key and key.key_check.plain:
            if rows.twice is not None:
                raise duplicate_key(table, key.index, rows.twice, changer.context)
        else:
            _check_among(changer, table, key, rows)
        if len(rows.more.rows) and key.index.columns == table.primary_key and not key.index.computed:
            raise duplicate_key(table, key.index, rows.more.rows[0], changer.context)
        _check_stored(changer, table, key, rows.rows)


def _check_among(changer: Changer, table: Relation, key: TableKey, rows: SortedLoad) -> None:
    whole = np.concatenate([rows.rows, rows.more.rows]) if len(rows.more.rows) else rows.rows
    keys, source = key.key_check.keys(whole, changer.context)
    first = first_of_each(keys)
    if not first.all():
        place = int(np.argmin(first))
        row = whole[place if source is None else int(source[place])]
        raise duplicate_key(table, key.index, row, changer.context)


def _check_stored(changer: Changer, table: Relation, key: TableKey, rows: Words) -> None:
    """23505 for the first row of a slice whose key is in the table."""
    changer.writer.settle()
    version = changer.writer.engine.key_arrangement(table.id, key.key_check)
    if not version.count:
        return
    for part in slices(len(rows), CHECKED_ROWS):
        keys, source = key.key_check.keys(rows[part], changer.context)
        _, diffs, index = version.lookup(keys, LATEST)
        held = np.bincount(index, weights=diffs, minlength=len(keys)) > 0
        if held.any():
            place = int(np.argmax(held))
            row = rows[part][place if source is None else int(source[place])]
            raise duplicate_key(table, key.index, row, changer.context)
