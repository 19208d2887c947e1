"""SELECT … FOR UPDATE and its like: the rows of a query, locked; and LOCK TABLE."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from ivm.rows import Mask, RowSet, Words, pack
from planner.expr.context import Context
from planner.peek.order_limit import finish
from sql.dml.key_index import KeyIndex
from sql.engine.row_locks import BlockedError, Strength
from sql.engine.writer import Writer
from sql.statements.queries import LockedRows, Query
from sql.statements.statements import Lock

_OF_WRITERS: Final = ("row share", "row exclusive", "share update exclusive")
"""The modes of LOCK TABLE in which others may change rows."""


def locked(writer: Writer, keys: KeyIndex, query: Query, rows: RowSet, context: Context) -> RowSet:
    """The result of a query's rows: ordered, locked and cut by LIMIT.

    As in PostgreSQL, rows are locked in order and until LIMIT is reached; SKIP LOCKED passes over those that others
    have. Raises BlockedError, and 55P03 for NOWAIT.
    """
    finishing = query.finishing
    for lock in query.locks:
        if lock.columns is None:
            _whole(writer, lock)
    rows = finish(rows, replace(finishing, limit=None, offset=None, width=None, project=None), context)
    skipping = [lock for lock in query.locks if lock.wait == "skip locked" and lock.columns is not None]
    for lock in skipping:
        rows = RowSet(rows.rows[_free(writer, keys, lock, rows, context)], rows.schema)
    rows = finish(rows, replace(finishing, order=(), width=None, project=None), context)
    for lock in query.locks:
        if lock.columns is not None:
            _lock(writer, keys, lock, rows, context)
    return finish(rows, replace(finishing, order=(), limit=None, offset=None), context)


def _stored(lock: LockedRows, rows: RowSet) -> Words:
    """The table's rows among the query's."""
    assert lock.columns is not None, "rows of the query"
    columns = rows.columns()
    return pack([columns[i] for i in lock.columns], lock.table.schema, len(rows))


def _strength(lock: LockedRows) -> Strength:
    return Strength[lock.strength.upper().replace(" ", "_")]


def _free(writer: Writer, keys: KeyIndex, lock: LockedRows, rows: RowSet, context: Context) -> Mask:
    """The rows that nobody else has locked."""
    return np.array(
        [
            writer.engine.row_locks.is_free(writer.owner_of_locks, target, _strength(lock))
            for target in keys.identities(lock.table, _stored(lock, rows), context)
        ],
        np.bool_,
    )


def _lock(writer: Writer, keys: KeyIndex, lock: LockedRows, rows: RowSet, context: Context) -> None:
    if not writer.locks_in(lock.table) or not len(rows):
        return
    try:
        writer.use(lock.table)
        writer.lock(lock.table, keys.identities(lock.table, _stored(lock, rows), context), _strength(lock))
    except BlockedError as blocked:
        if lock.wait:
            raise blocked.error from None
        raise


def _whole(writer: Writer, lock: LockedRows) -> None:
    try:
        writer.lock_whole(lock.table)
    except BlockedError as blocked:
        if lock.wait:
            raise blocked.error from None
        raise


def lock_tables(writer: Writer, statement: Lock) -> None:
    """LOCK TABLE, in a mode that concerns writers. Raises BlockedError, and 55P03 for NOWAIT."""
    for table in statement.tables:
        try:
            if statement.mode in _OF_WRITERS:
                writer.use(table)
            else:
                writer.lock_whole(table)
        except BlockedError as blocked:
            if statement.nowait:
                raise blocked.error from None
            raise
