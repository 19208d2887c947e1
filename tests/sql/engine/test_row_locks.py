"""Locks of single rows, compared with locks of any rows."""

from __future__ import annotations

import random

import pytest

from sql.engine.row_locks import BlockedError, LockOwner, RowLocks, Strength, Target, use

KEY = ((0,), True, None)


@pytest.mark.parametrize("seed", range(30))
def test_a_row_is_locked_as_rows_are(seed: int) -> None:
    """Random owners lock rows and tables, and end, in two sets of locks: one takes single rows by ``take_row``."""
    rng = random.Random(seed)
    sides = [(RowLocks(), [LockOwner(i) for i in range(4)]) for _ in range(2)]
    for _ in range(400):
        who, strength, keep = rng.randrange(4), rng.choice(list(Strength)), rng.random() < 0.9
        target: Target = (rng.randrange(2), KEY, bytes([rng.randrange(3)]))
        action = rng.random()
        found = []
        for quick, (locks, owners) in zip((True, False), sides, strict=True):
            owner = owners[who]
            try:
                if action < 0.1:
                    locks.release(owner, len(owner.taken) // 2)
                elif action < 0.13:
                    locks.take_whole(owner, target[0], "t", keep=keep)
                elif action < 0.15:
                    locks.wanted[target[0]] = owner
                elif action < 0.2:
                    locks.wanted.pop(target[0], None)
                elif quick:
                    locks.take_row(owner, target, strength, "t", keep=keep)
                else:
                    locks.take(owner, [use(target[0])], Strength.KEY_SHARE, "t", keep=keep)
                    locks.take(owner, [target], strength, "t", keep=keep)
                met = None
            except BlockedError as blocked:
                met = blocked.target, [o.backend for o in blocked.holders], blocked.strength
            found.append((met, [(o.taken, [locks.strength(o, t) for t in o.taken]) for o in owners]))
        assert found[0] == found[1]
