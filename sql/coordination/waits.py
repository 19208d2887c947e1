"""Statements that wait for the locks of other transactions.

A statement that meets a lock is undone, waits here, and runs again over the newest state. Those that wait for one lock
are woken one at a time, in the order in which they came, so that a row that everybody changes costs each transaction a
few runs. A cycle of transactions that wait for one another is found when it closes: the one that would close it fails
(40P01).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from ivm.errors import SqlError
from sql.engine.engine import Engine
from sql.engine.row_locks import DATAFLOW, BlockedError, LockOwner, Strength, Target, whole_of

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Waiting:
    owner: LockOwner
    blocked: BlockedError
    woken: asyncio.Future[None]

    @property
    def target(self) -> Target:
        return self.blocked.target


class Waits:
    """Who waits for what. Used on the event loop only."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queues: dict[Target, deque[_Waiting]] = {}
        self._waiting: dict[LockOwner, _Waiting] = {}
        self._turns: dict[Target, LockOwner] = {}
        """Who has been woken for a target, and runs its statement again."""

    async def attempt(self, run: Callable[[], Awaitable[T]], owner: LockOwner, patience: int = 0) -> T:
        """Run a statement, again each time after it has waited for a lock that it met.

        ``run`` undoes what it has done before it raises BlockedError. ``patience``: milliseconds for each wait, 0 for
        any time. Raises 55P03 after that, 40P01 for a deadlock.
        """
        turn: Target | None = None
        try:
            while True:
                try:
                    return await run()
                except BlockedError as blocked:
                    again = blocked.target == turn
                    if turn is not None:
                        self._end_turn(turn, owner)
                        if not again:
                            self._wake(turn)
                    turn = None
                    await self._wait(blocked, owner, patience, first=again)
                    turn = blocked.target
        finally:
            if turn is not None:
                self._end_turn(turn, owner)
                self._wake(turn)

    def look(self) -> None:
        """Wake those who wait for what has been unlocked."""
        released = self._engine.released
        if not self._queues:
            released.clear()
        while released:
            target = released.popleft()
            if target in self._queues:
                self._wake(target)

    def is_waited_for(self, target: Target) -> bool:
        """May be called on any thread."""
        return target in self._queues

    def blocking(self, backend: int) -> list[int]:
        """The sessions that the one with this number waits for. May be called on any thread."""
        found = [w for owner, w in tuple(self._waiting.items()) if owner.backend == backend]
        return sorted({holder.backend for waiting in found for holder in self._before(waiting)})

    def waited_for(self) -> list[tuple[LockOwner, Target, Strength]]:
        """Who waits for what. May be called on any thread."""
        return [(o, w.target, w.blocked.strength) for o, w in tuple(self._waiting.items()) if not w.woken.done()]

    async def _wait(self, blocked: BlockedError, owner: LockOwner, patience: int, first: bool) -> None:
        if not self._is_held(blocked):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(owner, blocked, future)
        queue = self._queues.setdefault(blocked.target, deque())
        if first:
            queue.appendleft(waiting)
        else:
            queue.append(waiting)
        if not self._is_held(blocked):  # it was given back on another thread, which did not see that somebody waits
            future.set_result(None)
        self._waiting[owner] = waiting
        table = whole_of(blocked.target)
        if table is not None:
            self._engine.row_locks.wanted.setdefault(table, owner)
        try:
            self._check_cycle(owner)
            await asyncio.wait_for(future, patience / 1000 if patience else None)
        except TimeoutError:
            self._pass_on(waiting)
            raise SqlError("55P03", "canceling statement due to lock timeout") from None
        except BaseException:
            self._pass_on(waiting)
            raise
        finally:
            self._waiting.pop(owner, None)
            if waiting in queue:
                queue.remove(waiting)
            if not queue and self._queues.get(blocked.target) is queue:
                del self._queues[blocked.target]

    def _is_held(self, blocked: BlockedError) -> bool:
        if blocked.sessions is not None:
            return bool(blocked.sessions())
        if blocked.target == DATAFLOW:
            tentative = self._engine.tentative
            return tentative is not None and tentative.owner_of_locks in blocked.holders and tentative.is_fixed
        locks, table = self._engine.row_locks, whole_of(blocked.target)
        if table is not None and locks.wanted.get(table) in blocked.holders:
            return True
        return any(locks.is_in(owner, blocked.target) for owner in blocked.holders)

    def _end_turn(self, target: Target, owner: LockOwner) -> None:
        if self._turns.get(target) is owner:
            del self._turns[target]
        table = whole_of(target)
        if table is not None and self._engine.row_locks.wanted.get(table) is owner:
            del self._engine.row_locks.wanted[table]

    def _pass_on(self, waiting: _Waiting) -> None:
        """One who does not go on leaves its turn, and its place, to the next one."""
        woken = waiting.woken.done() and not waiting.woken.cancelled()
        waiting.woken.cancel()
        table = whole_of(waiting.target)
        if table is not None and self._engine.row_locks.wanted.get(table) is waiting.owner:
            del self._engine.row_locks.wanted[table]
        if woken:
            self._end_turn(waiting.target, waiting.owner)
        self._wake(waiting.target)

    def _wake(self, target: Target) -> None:
        """Wake who comes first, or who keeps all others out of the table, unless another still has the lock."""
        queue, table = self._queues.get(target, ()), whole_of(target)
        alone = None if table is None else self._engine.row_locks.wanted.get(table)
        found = None if alone is None else next((w for w in queue if w.owner is alone and not w.woken.done()), None)
        found = found or next((w for w in queue if not w.woken.done()), None)
        locks = self._engine.row_locks
        if found is not None and not locks.holders(found.owner, target, found.blocked.strength):
            self._queues[target].remove(found)
            found.woken.set_result(None)
            self._turns[target] = found.owner

    def _before(self, waiting: _Waiting) -> tuple[LockOwner, ...]:
        """Those that must end before a waiting one goes on."""
        if waiting.woken.done():
            return ()
        target, locks = waiting.target, self._engine.row_locks
        if waiting.blocked.sessions is not None:
            return self._of_sessions(waiting.blocked.sessions())
        before = [holder for holder in waiting.blocked.holders if target == DATAFLOW or locks.is_in(holder, target)]
        table = whole_of(target)
        if table is not None:
            alone = locks.wanted.get(table, waiting.owner)
            before += locks.present(table) if alone is waiting.owner else [alone]
            before = [owner for owner in before if owner is not waiting.owner]
        if target in self._turns:
            before.append(self._turns[target])
        for other in self._queues.get(target, ()):
            if other is waiting:
                break
            before.append(other.owner)
        before += locks.holders(waiting.owner, target, waiting.blocked.strength)
        return tuple(dict.fromkeys(before))

    def _of_sessions(self, backends: Collection[int]) -> tuple[LockOwner, ...]:
        """The transactions that wait in these sessions, or just the sessions."""
        found = {owner.backend: owner for owner in tuple(self._waiting) if owner.backend in backends}
        return tuple(found.get(backend) or LockOwner(backend) for backend in backends)

    def _check_cycle(self, owner: LockOwner) -> None:
        """40P01 if the owner waits for itself in the end."""
        path: dict[LockOwner, LockOwner] = {}
        todo = [owner]
        while todo:
            at = todo.pop()
            waiting = self._waiting.get(at)
            for other in () if waiting is None else self._before(waiting):
                if other is owner:
                    raise _deadlock(owner, at, path)
                if other not in path:
                    path[other] = at
                    todo.append(other)


def _deadlock(owner: LockOwner, last: LockOwner, path: dict[LockOwner, LockOwner]) -> SqlError:
    chain = [owner, last]
    while chain[-1] is not owner:
        chain.append(path[chain[-1]])
    chain.reverse()
    lines = [
        f"Process {waiter.backend} waits for a lock; blocked by process {blocker.backend}."
        for waiter, blocker in pairwise(chain)
        if waiter is not blocker
    ]
    return SqlError("40P01", "deadlock detected", "\n".join(lines), "Run the transaction again.")
