"""Random owners of random locks: nobody waits for what nobody holds."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from typing import Any, cast

import pytest

from ivm.errors import SqlError
from sql.coordination.waits import Waits
from sql.engine.row_locks import BlockedError, LockOwner, RowLocks, Strength, Target, whole

TABLES, ROWS = 2, 3


class Engine:
    """What ``Waits`` needs of one."""

    def __init__(self) -> None:
        self.row_locks = RowLocks()
        self.released: deque[Target] = deque()
        self.tentative = None

    def give_back(self, owner: LockOwner, kept: int = 0) -> None:
        self.released.extend(self.row_locks.release(owner, kept))


async def _transaction(engine: Engine, waits: Waits, backend: int, rng: random.Random, ends: Counter[str]) -> None:
    owner = LockOwner(backend)
    try:
        for _ in range(rng.randint(1, 4)):
            table, strength = rng.randrange(TABLES), rng.choice(list(Strength))
            rows = [(table, None, bytes([rng.randrange(ROWS)])) for _ in range(rng.randint(1, 2))]
            kept = len(owner.taken)

            async def statement(
                table: int = table, strength: Strength = strength, rows: list[Target] = rows, kept: int = kept
            ) -> None:
                for _ in range(rng.choice([0, 0, 1, 2])):
                    await asyncio.sleep(0)
                try:
                    if rng.random() < 0.1:
                        engine.row_locks.take_whole(owner, table, "t", keep=True)
                    for row in rows:
                        engine.row_locks.take(owner, [row], strength, "t", keep=rng.random() < 0.9)
                except BlockedError:
                    engine.give_back(owner, kept)
                    waits.look()
                    raise

            await waits.attempt(statement, owner, patience=rng.choice([0, 0, 0, 1, 5]))
            for _ in range(rng.choice([0, 1, 3])):
                await asyncio.sleep(0)
        ends["committed"] += 1
    except SqlError as error:
        ends[error.sqlstate] += 1
    finally:
        engine.give_back(owner)
        waits.look()


def _shown(engine: Engine, waits: Waits) -> str:
    """Who waits for whom, for a test that has failed."""
    lines = ["nobody goes on"]
    for owner, waiting in waits._waiting.items():
        before = [other.backend for other in waits._before(waiting)]
        queued = waiting in waits._queues.get(waiting.target, ())
        lines.append(f"{owner.backend} waits for {waiting.target}, for {before}, queued: {queued}")
    lines += [f"{t}: {[(o.backend, s.name) for o, s in held.items()]}" for t, held in engine.row_locks._held.items()]
    wanted = {table: owner.backend for table, owner in engine.row_locks.wanted.items()}
    return "\n".join([*lines, f"wanted: {wanted}", f"turns: {[o.backend for o in waits._turns.values()]}"])


async def _run(seed: int) -> Counter[str]:
    rng = random.Random(seed)
    engine = Engine()
    waits = Waits(cast("Any", engine))
    ends: Counter[str] = Counter()
    tasks: set[asyncio.Task[None]] = set()
    for backend in range(1, 250):
        while len(tasks) >= 8:
            done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=5)
            assert done, _shown(engine, waits)
        task = asyncio.create_task(_transaction(engine, waits, backend, rng, ends))
        tasks.add(task)
        if rng.random() < 0.05:
            await asyncio.sleep(0)
            rng.choice(sorted(tasks, key=id)).cancel()
    done, left = await asyncio.wait(tasks, timeout=5)
    assert not left, _shown(engine, waits)
    for empty in (waits._queues, waits._waiting, waits._turns, engine.row_locks._held, engine.row_locks.wanted):
        assert not empty
    return ends


@pytest.mark.parametrize("seed", range(12))
def test_everybody_goes_on_in_the_end(seed: int) -> None:
    ends = asyncio.run(_run(seed))
    assert ends["committed"] > 50, ends
    assert ends["40P01"] < ends["committed"]


def test_one_that_is_blocked_again_is_not_forgotten_by_those_that_go_on() -> None:
    """Two are woken for a row in one turn of the event loop, and the first meets another lock of it."""

    async def run() -> None:
        engine = Engine()
        waits, locks = Waits(cast("Any", engine)), engine.row_locks
        row = (1, None, b"row")
        first, second, third = (LockOwner(n) for n in (1, 2, 3))
        locks.take(first, [row], Strength.UPDATE, "t", keep=True)
        others = [asyncio.create_task(waits.attempt(_taking(locks, each, row), each)) for each in (second, third)]
        await asyncio.sleep(0)
        for _ in range(2):
            engine.give_back(first)
            engine.released.append(row)
            waits.look()
        locks.take(first, [row], Strength.UPDATE, "t", keep=True)
        for _ in range(5):
            await asyncio.sleep(0)
        engine.give_back(first)
        waits.look()
        await asyncio.wait(others, timeout=2, return_when=asyncio.FIRST_COMPLETED)
        for each in (second, third):
            engine.give_back(each)
            waits.look()
            await asyncio.sleep(0.01)
        assert all(task.done() for task in others)
        assert locks.strength(second, whole(1)) is None

    asyncio.run(run())


def _taking(locks: RowLocks, owner: LockOwner, row: Target) -> Any:
    async def take() -> None:
        locks.take(owner, [row], Strength.UPDATE, "t", keep=True)

    return take
