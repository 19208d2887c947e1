"""The locks of a transaction that changes something: on names, tables and rows."""

from __future__ import annotations

from collections.abc import Iterable

from sql.catalog.catalog import Catalog, Relation
from sql.engine.engine import Engine
from sql.engine.row_locks import LockOwner, Strength, Target, name_of, use


class Locking:
    """A part of ``sql.engine.writer.Writer``."""

    __slots__ = ()

    engine: Engine
    catalog: Catalog
    owner_of_locks: LockOwner
    is_open: bool

    def name(self, schema: str, name: str) -> None:
        """Lock a name for what is to be created. Raises BlockedError: another transaction may create something of this
        name."""
        target = name_of(schema, name)
        self.engine.row_locks.take(self.owner_of_locks, [target], Strength.UPDATE, name, keep=self.is_open)

    def locks_in(self, table: Relation) -> bool:
        """Whether rows of a table must be locked: it keeps its locks, or another transaction has some there."""
        return self.is_open or self.engine.row_locks.others(self.owner_of_locks, table.id)

    def lock(self, table: Relation, targets: Iterable[Target], strength: Strength) -> None:
        """Lock rows of a table. Raises BlockedError."""
        self.engine.row_locks.take(self.owner_of_locks, targets, strength, table.name, keep=self.is_open)

    def lock_row(self, table: Relation, target: Target, strength: Strength) -> None:
        """Lock one row of a table, whose definition stays as it is. Raises BlockedError."""
        self.engine.row_locks.take_row(self.owner_of_locks, target, strength, table.name, keep=self.is_open)

    def use(self, table: Relation) -> None:
        """Keep a table's definition as it is while its rows are changed. Raises BlockedError."""
        if self.locks_in(table):
            self.lock(table, [use(table.id)], Strength.KEY_SHARE)

    def lock_whole(self, table: Relation) -> None:
        """Lock a table with all its rows. Raises BlockedError."""
        self.engine.row_locks.take_whole(self.owner_of_locks, table.id, table.name, keep=self.is_open)

    def hold_still(self, table: Relation) -> None:
        """Lock a table and those below it, whose rows are to stay as they are found. Raises BlockedError."""
        for each in (table, *self.catalog.below(table)):
            self.lock_whole(each)
