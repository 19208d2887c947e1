"""Locked joins in the engine, against a model that replays the history commit by commit."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from ivm.dataflow import Dataflow
from ivm.graph import Arrange, Gather, Input, Lock, NodeId, Output
from ivm.hydration.detached import Detached, detach
from ivm.kernels.codes import ALONE, MARKER, MATCH
from ivm.trace.spine import ROOM, Spine

Row = tuple[int, ...]
Commit = tuple[list[tuple[Row, int]], list[tuple[Row, int]]]


class Replayed:
    """Each copy of a left row with the match it found: [left rows] in order of arrival."""

    def __init__(self) -> None:
        self.left: dict[Row, list[Counter[Row]]] = {}
        self.right: Counter[Row] = Counter()

    def copy(self) -> Replayed:
        other = Replayed()
        other.left = {row: list(found) for row, found in self.left.items()}
        other.right = Counter(self.right)
        return other

    def commit(self, commit: Commit) -> None:
        left: Counter[Row] = Counter()
        for row, diff in commit[1]:
            self.right[row] += diff
        for row, diff in commit[0]:
            left[row] += diff
        for row, diff in left.items():
            found = Counter({r: n for r, n in self.right.items() if n > 0 and r[0] == row[0]})
            copies = self.left.setdefault(row, [])
            if diff > 0:
                copies += [found] * diff
            else:
                del copies[:-diff]

    def rows(self) -> Counter[Row]:
        """(left row, part, right row) with counts."""
        total: Counter[Row] = Counter()
        for row, copies in self.left.items():
            for found in copies:
                total[(*row, MARKER, 0, 0)] += 1
                for other, n in found.items():
                    total[(*row, MATCH, *other)] += n
                if not found:
                    total[(*row, ALONE, 0, 0)] += 1
        return total


class Locked:
    """The engine's: left (key, value) and right (key, value)."""

    def __init__(self, at: int = 0, hold: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        self.flow = Dataflow()
        self.inputs = [self.flow.add(Input(2)), self.flow.add(Input(2))]
        self.arranged = [self.flow.add(Arrange(node, Gather((0, 0, 1)), 1)) for node in self.inputs]
        self.out = -1
        self.held: Counter[Row] = Counter()
        self.flow.hydrate()
        self.hold = hold
        self.at = at

    def install(self) -> None:
        self.lock = self.flow.add(Lock(self.arranged[0], self.arranged[1], 1, (0, 0), self.hold is not None))
        self.out = self.flow.add(Output(self.lock))
        self.flow.hydrate()

    def install_beside(self) -> Detached:
        """As ``install``, but detached: not to be read before ``attach``."""

        def make(flow: Detached) -> tuple[NodeId, NodeId]:
            lock = flow.add(Lock(self.arranged[0], self.arranged[1], 1, (0, 0)))
            return lock, flow.add(Output(lock))

        flow, (self.lock, self.out) = detach(self.flow, make)
        return flow

    def feed(self, commit: Commit, at: int, sign: int = 1) -> None:
        for node, updates in zip(self.inputs, commit, strict=True):
            if updates:
                rows = np.array([row for row, _ in updates], np.int64)
                diffs = np.array([sign * diff for _, diff in updates], np.int64)
                self.flow.feed(node, rows, at, diffs)

    def check(self, expected: Counter[Row], at: int) -> None:
        changes = self.flow.changes(self.out)
        for row, diff in zip(changes.rows.tolist(), changes.diffs.tolist(), strict=True):
            self.held[tuple(row)] += diff
        assert set(changes.times.tolist()) <= set(range(at + 1))
        found: Counter[Row] = Counter()
        for row, n in self.held.items():
            assert n >= 0
            found[(*row[:2], row[3], *row[4:])] += n
        assert +found == expected

    def contents(self) -> tuple[np.ndarray, np.ndarray]:
        rows, diffs = self.flow.publish()[self.out].rows_at(self.at)
        return rows, diffs


def draw(rng: random.Random, model: Replayed) -> Commit:
    """Insertions and deletions on both sides, with duplicates; deletes no more than there is."""
    left: list[tuple[Row, int]] = []
    right: list[tuple[Row, int]] = []
    for _ in range(rng.choice([0, 1, 1, 3])):
        held = [row for row, copies in sorted(model.left.items()) if copies]
        if held and rng.random() < 0.4:
            row = rng.choice(held)
            gone = sum(-d for r, d in left if r == row and d < 0)
            if len(model.left[row]) > gone:
                left.append((row, -rng.randint(1, len(model.left[row]) - gone)))
        else:
            left.append(((rng.randrange(3), rng.randrange(2)), rng.choice([1, 1, 2])))
    for _ in range(rng.choice([0, 1, 1, 2])):
        held = [row for row, n in sorted(model.right.items()) if n > 0 and (row, -1) not in right]
        if held and rng.random() < 0.45:
            right.append((rng.choice(held), -1))
        else:
            right.append(((rng.randrange(3), rng.randrange(2)), rng.choice([1, 1, 2])))
    return left, right


def play(seed: int, steps: int = 10) -> None:
    rng = random.Random(seed)
    model = Replayed()
    engine = Locked()
    late = rng.randrange(4)
    at = 0
    for step in range(steps):
        if step == late:
            engine.install()
            model.left = {row: [_now(model, row)] * len(copies) for row, copies in model.left.items()}
            engine.check(model.rows(), at)
        for _ in range(rng.choice([1, 1, 3])):
            at += 1
            commit = draw(rng, model)
            engine.feed(commit, at)
            model.commit(commit)
        engine.flow.step()
        engine.at = at
        if step >= late:
            engine.check(model.rows(), at)
            at = _transaction(rng, engine, model, at)
        if rng.random() < 0.5:
            engine.flow.allow_compaction(at)
        if step > late and rng.random() < 0.2:
            engine = _restarted(rng, engine, model, at)


def play_beside(seed: int) -> None:
    """A lock created beside running commits: the rows present when it is attached are locked then."""
    rng = random.Random(seed)
    model = Replayed()
    engine = Locked()

    def commits() -> None:
        for _ in range(rng.choice([0, 1, 1, 3])):
            engine.at += 1
            commit = draw(rng, model)
            engine.feed(commit, engine.at)
            model.commit(commit)
        engine.flow.step()
        if rng.random() < 0.5:
            engine.flow.allow_compaction(engine.at)

    for _ in range(rng.randrange(4)):
        commits()
    flow = engine.install_beside()
    commits()
    flow.run()
    for _ in range(rng.randrange(5)):
        commits()
        flow.advance()
        commits()
        flow.run()
    flow.advance()
    flow.run()
    flow.attach()
    model.left = {row: [_now(model, row)] * len(copies) for row, copies in model.left.items()}
    engine.check(model.rows(), engine.at)
    for _ in range(6):
        commits()
        engine.check(model.rows(), engine.at)


@pytest.mark.parametrize("seed", range(60))
def test_made_beside(seed: int) -> None:
    play_beside(seed)


def _now(model: Replayed, row: Row) -> Counter[Row]:
    return Counter({r: n for r, n in model.right.items() if n > 0 and r[0] == row[0]})


def _transaction(rng: random.Random, engine: Locked, model: Replayed, at: int) -> int:
    """Two parts at one ordinal, each checked, then rolled back or not."""
    at += 1
    before = model.copy()
    parts: list[Commit] = []
    for _ in range(2):
        state = before.copy()
        for part in parts:
            state.commit(part)
        parts.append(draw(rng, state))
        engine.feed(parts[-1], at)
        engine.flow.step()
        whole = before.copy()
        whole.commit(([u for p in parts for u in p[0]], [u for p in parts for u in p[1]]))
        engine.check(whole.rows(), at)
    if rng.random() < 0.5:
        for part in parts:
            engine.feed(part, at, -1)
        engine.flow.step()
        engine.check(before.rows(), at)
    else:
        model.left, model.right = whole.left, whole.right
    engine.at = at
    return at


def _restarted(rng: random.Random, engine: Locked, model: Replayed, at: int) -> Locked:
    """Another dataflow over the same tables, given what was locked."""
    again = Locked(at, engine.contents())
    again.install()
    left = [(row, len(copies)) for row, copies in model.left.items() if copies]
    again.feed((left, [(row, n) for row, n in model.right.items() if n]), at)
    again.flow.step()
    again.flow.load(again.lock, *engine.contents())
    again.flow.step()
    again.check(model.rows(), at)
    return again


@pytest.mark.parametrize("seed", range(80))
def test_histories(seed: int) -> None:
    play(seed)


def draw_long(rng: random.Random, model: Replayed) -> Commit:
    """Draws changes of one key: runs of right rows that grow and shrink at either end, and copies of one left row."""
    left: list[tuple[Row, int]] = []
    right: list[tuple[Row, int]] = []
    held = sorted(row for row, n in model.right.items() if n > 0)
    if held and rng.random() < 0.6:
        start, count = rng.choice([0, max(len(held) - 40, 0)]), rng.choice([1, 40])
        right = [(row, -model.right[row]) for row in held[start:][:count]]
    else:
        start = rng.randrange(200)
        right = [((0, start + i), rng.choice([1, 2])) for i in range(rng.choice([1, 40, 90]))]
    copies = len(model.left.get((0, 7), []))
    if copies and rng.random() < 0.5:
        left.append(((0, 7), -rng.choice([1, copies])))
    elif rng.random() < 0.7:
        left.append(((0, 7), rng.choice([1, 2])))
    return left, right


def play_long(seed: int) -> None:
    rng = random.Random(seed)
    model = Replayed()
    engine = Locked()
    engine.install()
    for _ in range(25):
        for _ in range(rng.choice([1, 1, 4])):
            engine.at += 1
            commit = draw_long(rng, model)
            engine.feed(commit, engine.at)
            model.commit(commit)
        engine.flow.step()
        engine.check(model.rows(), engine.at)
        if rng.random() < 0.1:
            engine.flow.allow_compaction(engine.at)


@pytest.mark.parametrize("seed", range(12))
def test_long_runs_that_are_gone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spine, "FUEL", 1)
    play_long(seed)


def work(engine: Locked, commit: Commit) -> int:
    """A commit's cost in rows read and seeks."""
    engine.at += 1
    before = engine.flow.counters
    engine.feed(commit, engine.at)
    engine.flow.step()
    engine.flow.allow_compaction(engine.at)
    used = engine.flow.counters - before
    return used.history + used.seeks


def test_what_is_gone_costs_no_walk() -> None:
    """Rates of one key come and go, one stays; copies of an order queue up and the oldest leave."""
    engine = Locked()
    engine.install()
    for k in range(6_000):
        work(engine, ([((0, 7), 1)], [((1, k), 1)]))
    for k in range(5_990):
        work(engine, ([((0, 7), -1)], [((1, k), -1)]))
    assert work(engine, ([((1, 1), 1)], [])) <= 2 * ROOM + 400
    assert work(engine, ([((0, 7), 1)], [])) <= 2 * ROOM + 400
    assert work(engine, ([((0, 7), -1)], [])) <= 2 * ROOM + 400
