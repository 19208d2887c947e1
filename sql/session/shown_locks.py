"""The locks of pg_locks.

A table that a transaction changes is one RowExclusiveLock, ExclusiveLock if it has the whole table: readers wait for
none. Rows' locks are many, so only those that somebody waits for are shown, as in PostgreSQL. Who changes the catalog
has the database.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sql.coordination.advisory import Key, key_of
from sql.coordination.coordinator import Coordinator
from sql.engine.row_locks import ADVISORY, DATAFLOW, NAMES, LockOwner, Strength, Target, whole, whole_of
from sql.system.state import LockInfo

_DATABASES: Final = 1262
_ROW_MODES: Final = {
    Strength.KEY_SHARE: "AccessShareLock",
    Strength.SHARE: "RowShareLock",
    Strength.NO_KEY_UPDATE: "ExclusiveLock",
    Strength.UPDATE: "AccessExclusiveLock",
}
"""The modes that PostgreSQL shows for locks of rows."""


def locks(coordinator: Coordinator, database: int) -> Iterator[LockInfo]:
    """All sessions' locks in a database. May be called on any thread."""
    held, waits = coordinator.jobs.engine.row_locks, coordinator.jobs.waits
    for table, owner in held.tables():
        if table == NAMES:
            yield _of_database(owner, database, True)
            continue
        alone = held.strength(owner, whole(table)) is not None
        yield LockInfo("relation", owner.backend, "ExclusiveLock" if alone else "RowExclusiveLock", relation=table)
    waiting = waits.waited_for()
    rows = (t for _, t, _ in waiting if t[0] >= 0 and whole_of(t) is None)
    for target in dict.fromkeys(rows):
        for owner, strength in held.holding(target):
            yield _of_row(owner, target, strength, True)
    for owner, target, strength in waiting:
        table_ = whole_of(target)
        if target == DATAFLOW or target[0] == NAMES:
            yield _of_database(owner, database, False)
        elif target[0] == ADVISORY:
            yield _advisory(owner.backend, key_of(target), strength is Strength.SHARE, False)
        elif table_ is not None:
            yield LockInfo("relation", owner.backend, "ExclusiveLock", False, relation=table_)
        else:
            yield _of_row(owner, target, strength, False)
    tentative = coordinator.jobs.engine.tentative
    if tentative is not None and tentative.is_fixed:
        yield _of_database(tentative.owner_of_locks, database, True)
    for backend, key, shared in coordinator.advisory.all():
        yield _advisory(backend, key, shared, True)


def _advisory(backend: int, key: Key, shared: bool, granted: bool) -> LockInfo:
    if len(key) == 1:
        numbers = (key[0] >> 32 & 0xFFFFFFFF, key[0] & 0xFFFFFFFF, 1)
    else:
        numbers = (key[0] & 0xFFFFFFFF, key[1] & 0xFFFFFFFF, 2)
    return LockInfo("advisory", backend, "ShareLock" if shared else "ExclusiveLock", granted, numbers=numbers)


def _of_row(owner: LockOwner, target: Target, strength: Strength, granted: bool) -> LockInfo:
    return LockInfo("tuple", owner.backend, _ROW_MODES[strength], granted, relation=target[0])


def _of_database(owner: LockOwner, database: int, granted: bool) -> LockInfo:
    numbers = _DATABASES, database, 0
    return LockInfo("object", owner.backend, "AccessExclusiveLock", granted, numbers=numbers)
