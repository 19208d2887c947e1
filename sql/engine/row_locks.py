"""Locks of rows and tables, which open transactions hold until they end.

A lock is on a key, not on a row: on each unique key of a changed row, and on the whole row where a table has no primary
key. So two transactions that insert one key meet, too. The strengths and what conflicts with what are PostgreSQL's row
locks. Used on the thread that owns the engine; what waits for a lock waits elsewhere (``sql.coordination.waits``) and
runs its statement again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from ivm.errors import SqlError
from planner.physical.key_checks import KeyName

Target = tuple[int, KeyName | None, bytes]
"""A table's id, the name of one of its keys (None: the whole row) and the words of it."""
NOTHING: Final = b""


def whole(table: int) -> Target:
    """The table with all its rows."""
    return table, None, NOTHING


def whole_of(target: Target) -> int | None:
    """The table that a target is the whole of."""
    return target[0] if target == whole(target[0]) and target[0] >= 0 else None


def use(table: int) -> Target:
    """What everybody who changes rows of a table holds, shared, so that its definition stays."""
    return table, None, b"use"


DATAFLOW: Final = whole(-1)
"""The dataflow itself: a transaction that has loaded a large file has it to itself."""
NAMES: Final = -2
"""In place of a table in the targets of names that transactions give to what they create."""
ADVISORY: Final = -3
"""In place of a table in the targets of advisory locks, which sessions hold (``sql.coordination.advisory``)."""


def name_of(schema: str, name: str) -> Target:
    """A name in a schema; of the schema itself if it is empty."""
    return NAMES, None, f"{schema}\0{name}".encode()


class Strength(IntEnum):
    """What a lock is for, as FOR KEY SHARE to FOR UPDATE."""

    KEY_SHARE = 0
    SHARE = 1
    NO_KEY_UPDATE = 2
    UPDATE = 3

    def conflicts(self, other: Strength) -> bool:
        """Whether two transactions may not hold these at once (PostgreSQL's table of row-level locks)."""
        return self + other >= Strength.UPDATE


@dataclass(eq=False, slots=True)
class LockOwner:
    """A transaction as the owner of locks. ``backend``: its session's number; ``taken``: in order."""

    backend: int = 0
    taken: list[Target] = field(default_factory=list)


class BlockedError(Exception):
    """Other transactions hold a lock that this statement needs. It has to be undone, and may run again later.

    It is no SqlError, so that no handler of errors takes it for one.
    """

    def __init__(
        self,
        target: Target,
        holders: Collection[LockOwner],
        message: str,
        strength: Strength = Strength.UPDATE,
        sessions: Callable[[], Collection[int]] | None = None,
    ) -> None:
        """``sessions``: those that hold it now, of a lock that sessions hold and not transactions."""
        super().__init__(message)
        self.target = target
        self.holders = tuple(holders)
        self.strength = strength
        self.sessions = sessions

    @property
    def error(self) -> SqlError:
        """The error of a statement that does not wait."""
        return SqlError("55P03", str(self))


class RowLocks:
    """Who holds what.

    Invariant: ``_present[table][owner]`` is the number of the owner's targets in the table, never 0.
    """

    def __init__(self) -> None:
        self._held: dict[Target, dict[LockOwner, Strength]] = {}
        self._present: dict[int, dict[LockOwner, int]] = {}
        self.wanted: dict[int, LockOwner] = {}
        """Who waits for a whole table: nobody else enters it meanwhile. Set on the event loop."""

    def others(self, owner: LockOwner, table: int) -> bool:
        """Whether another transaction holds anything in a table, or waits for all of it."""
        present = self._present.get(table)
        if present is None:
            return table in self.wanted
        return len(present) > 1 or owner not in present

    def present(self, table: int) -> list[LockOwner]:
        """Who holds anything in a table. May be called on any thread."""
        return list(self._present.get(table, ()))

    def tables(self) -> list[tuple[int, LockOwner]]:
        """The tables that anybody holds anything in, with those who do. May be called on any thread."""
        return [(table, owner) for table in list(self._present) for owner in self.present(table)]

    def strength(self, owner: LockOwner, target: Target) -> Strength | None:
        """What the owner holds of a target. May be called on any thread."""
        return self._held.get(target, {}).get(owner)

    def is_in(self, owner: LockOwner, target: Target) -> bool:
        """Whether the owner holds a target, or for ``whole(table)`` anything in it. May be called on any thread."""
        return owner in (self._present.get(target[0], {}) if target == whole(target[0]) else self._held.get(target, {}))

    def holding(self, target: Target) -> list[tuple[LockOwner, Strength]]:
        """Who holds a target. May be called on any thread."""
        return list(self._held.get(target, {}).items())

    def holders(self, owner: LockOwner, target: Target, strength: Strength) -> list[LockOwner]:
        """The other transactions whose locks on the target conflict. May be called on any thread."""
        found = self._held.get(target)
        if found is None:
            return []
        held, least = list(found.items()), Strength.UPDATE - strength  # in one go: another thread may change it
        return [o for o, s in held if s >= least and o is not owner]

    def is_free(self, owner: LockOwner, target: Target, strength: Strength) -> bool:
        """Whether a row could be locked."""
        return not self.holders(owner, whole(target[0]), strength) and not self.holders(owner, target, strength)

    def take(self, owner: LockOwner, targets: Iterable[Target], strength: Strength, name: str, *, keep: bool) -> None:
        """Take locks on rows of one table, all or none; without ``keep`` only see whether that is possible.

        Raises BlockedError. Cost: the targets, or nothing if nothing is kept and nobody else is in the table.
        """
        wanted = list(targets)
        if not wanted:
            return
        table = wanted[0][0]
        before = self.wanted.get(table)
        if before is not None and before is not owner and owner not in self._present.get(table, ()):
            raise BlockedError(whole(table), [before], f'could not obtain lock on row in relation "{name}"', strength)
        if self.others(owner, table):
            for target in (whole(table), *wanted):
                holders = self.holders(owner, target, strength)
                if holders:
                    raise BlockedError(target, holders, f'could not obtain lock on row in relation "{name}"', strength)
        if keep:
            for target in wanted:
                self._keep(owner, target, strength)

    def take_row(self, owner: LockOwner, target: Target, strength: Strength, name: str, *, keep: bool) -> None:
        """``take`` of one row whose table's definition is to stay as it is."""
        table = target[0]
        whole_held, row_held = self._held.get(whole(table)), self._held.get(target)
        if self.wanted or whole_held is not None or (row_held is not None and row_held.keys() != {owner}):
            self.take(owner, (use(table),), Strength.KEY_SHARE, name, keep=keep)
            self.take(owner, (target,), strength, name, keep=keep)
        elif keep:
            self._keep(owner, use(table), Strength.KEY_SHARE)
            self._keep(owner, target, strength)

    def take_whole(self, owner: LockOwner, table: int, name: str, *, keep: bool) -> None:
        """The same for a whole table."""
        if self.others(owner, table):
            holders = [o for o in self._present.get(table, ()) if o is not owner]
            if holders:
                raise BlockedError(whole(table), holders, f'could not obtain lock on relation "{name}"')
        if keep:
            self._keep(owner, whole(table), Strength.UPDATE)

    def _keep(self, owner: LockOwner, target: Target, strength: Strength) -> None:
        holders = self._held.setdefault(target, {})
        before = holders.get(owner)
        if before is None:
            present = self._present.setdefault(target[0], {})
            present[owner] = present.get(owner, 0) + 1
            owner.taken.append(target)
        if before is None or before < strength:
            holders[owner] = strength

    def release(self, owner: LockOwner, kept: int = 0) -> list[Target]:
        """Give back all but the first ``kept`` locks; what others may have waited for."""
        released = owner.taken[kept:]
        del owner.taken[kept:]
        tables: dict[int, None] = {}
        for target in released:
            holders = self._held[target]
            del holders[owner]
            if not holders:
                del self._held[target]
            present = self._present[target[0]]
            present[owner] -= 1
            if not present[owner]:
                del present[owner]
                tables[target[0]] = None
            if not present:
                del self._present[target[0]]
        return [*released, *(target for t in tables if (target := whole(t)) not in released)]
