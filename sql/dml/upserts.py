"""Rows that arrive by key (ENVELOPE UPSERT and DEBEZIUM): the last row of each key replaces its row, or deletes it."""

from __future__ import annotations

import numpy as np

from ivm.distinct import distinct_rows
from ivm.errors import SqlError
from ivm.rows import Mask, Words
from sql.bind.index_keys import key_check_of
from sql.catalog.catalog import Relation
from sql.catalog.keys import Index
from sql.dml.changes import Changer


def upsert_by_key(changer: Changer, table: Relation, index: Index, rows: Words, gone: Mask) -> int:
    """Set each key's row to the last of its ``rows``, or delete it if that one is ``gone``. The number of keys.

    ``rows``: of the table's layout, in order of arrival; for deleted rows only the key columns matter. Raises 23502 for
    a NULL in the key, and the errors of the table's other constraints. Unchanged rows cause no updates.
    """
    key_check, writer = key_check_of(table, index), changer.writer
    keys, source = key_check.keys(rows, changer.context)
    if source is not None and len(source) < len(rows):
        names = ", ".join(table.columns[i].name for i in index.columns)
        raise SqlError("23502", f'null value in the key ({names}) of a row for relation "{table.name}"')
    last = _last_of_each(keys)
    keys, rows, gone = np.ascontiguousarray(keys[last]), np.ascontiguousarray(rows[last]), gone[last]
    held, place = changer.keys.holders(table, key_check, keys, writer)
    changer.apply(table, held[gone[place]], rows[:0])
    held, place = held[~gone[place]], place[~gone[place]]
    same = (held == rows[place]).all(axis=1)
    kept = ~gone
    kept[place[same]] = False
    old, replaced = held[~same], rows[place[~same]]
    new = rows[kept]
    if len(new):
        changer.check_rows(table, old, new)
        changer.apply(table, old, new, replaced)
    return len(keys)


def _last_of_each(keys: Words) -> Words:
    """The positions of each key's last row, ascending."""
    return np.sort(len(keys) - 1 - distinct_rows(keys[::-1]).first)
