"""One key's rows by rank, against a sorted list: several layers, retractions in others, and updates of later times."""

from __future__ import annotations

import random
from collections import Counter
from itertools import accumulate

import numpy as np

from ivm.kernels.join import STATS
from ivm.trace.batch import Block
from ivm.trace.ordered import Ordered
from ivm.trace.shards import sorted_block
from ivm.trace.spine import Spine

Value = tuple[int, int]


def block(updates: Counter[tuple[int, int, int, int]]) -> Block:
    """A sorted block of (key, value, value, time) with diffs."""
    kept = sorted((u, n) for u, n in updates.items() if n)
    rows = np.array([u[:3] for u, _ in kept], np.int64).reshape(-1, 3)
    times, diffs = np.array([u[3] for u, _ in kept], np.int64), np.array([[n] for _, n in kept], np.int64)
    return sorted_block(Block.of(rows, times, diffs.reshape(-1, 1)))


def change(rnd: random.Random, present: Counter[Value], time: int, count: int) -> Counter[tuple[int, int, int, int]]:
    """Random insertions and deletions of key 7; other keys are only there."""
    found: Counter[tuple[int, int, int, int]] = Counter()
    for _ in range(count):
        if present and rnd.random() < 0.4:
            value = rnd.choice(sorted(present))
            found[7, *value, time] -= 1
            present[value] -= 1
            present += Counter()
        else:
            value = (rnd.randint(0, 30), rnd.randint(0, 3))
            found[7, *value, time] += 1
            present[value] += 1
        found[rnd.choice([6, 8]), 0, 0, time] += 1
    return found


def test_ranks_rows_and_spots() -> None:
    for seed in range(30):
        rnd = random.Random(seed)
        spine, present = Spine(3, 1), Counter[Value]()
        spine.rank()
        for time in range(1, 6):
            spine.insert(block(change(rnd, present, time, rnd.choice([20, 300]))))
        before = present.copy()
        first = change(rnd, present, 10, 5)
        between = present.copy()
        updates = Counter(first)
        for update, n in change(rnd, present, 11, 5).items():
            updates[update] += n
        delta = block(updates)
        spine.insert(delta)
        keys = delta.rows[: delta.n, 0]
        low, high = int(np.searchsorted(keys, 7)), int(np.searchsorted(keys, 7, "right"))
        if low == high:
            continue
        nothing, stats = Block(3).d, np.zeros(STATS, np.int64)
        for at, wanted in ((-(2**63), before), (10, between), (11, present)):
            check(Ordered(spine, nothing, delta, low, high, at, stats), +wanted, rnd)


def check(rows: Ordered, wanted: Counter[Value], rnd: random.Random) -> None:
    values = sorted(wanted)
    counts = [wanted[v] for v in values]
    starts = [0, *accumulate(counts)]
    assert rows.size == starts[-1]
    for _ in range(5):
        probe = (rnd.randint(-1, 31), rnd.randint(0, 3))
        for words in (1, 2):
            asked = np.array([probe[:words]], np.int64)
            assert rows.ranks(asked, False)[0] == sum(n for v, n in wanted.items() if v[:words] < probe[:words])
            assert rows.ranks(asked, True)[0] == sum(n for v, n in wanted.items() if v[:words] <= probe[:words])
        if not values:
            continue
        low = rnd.randrange(starts[-1])
        high = rnd.randint(low, starts[-1])
        inside = [i for i in range(len(values)) if low < high and starts[i] < high and starts[i + 1] > low]
        found, numbers, begin = rows.rows(low, high)
        assert [tuple(v) for v in found.tolist()] == [values[i] for i in inside]
        assert numbers.tolist() == [counts[i] for i in inside]
        assert not inside or begin == starts[inside[0]]
        spot = rows.spots(np.array([low, starts[-1]]))
        here = next(i for i in range(len(values)) if starts[i + 1] > low)
        assert (spot.rank[0], spot.count[0], spot.count[1]) == (starts[here], counts[here], 0)
        total = 0
        for k, (start, place) in enumerate(zip(rows.starts.tolist(), spot.places[0].tolist(), strict=True)):
            total += int(rows.layer(k, start, place)[1].sum())
        assert total == starts[here]
