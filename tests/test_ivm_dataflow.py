"""Random dataflows against the recomputing oracle."""

from __future__ import annotations

import pytest

from ivm.spine import Spine
from tests.ivm_random import CONSTANT, Pair


def run(pair: Pair, steps: int, loops: int, negative: bool = False) -> None:
    pool = [pair.input(), pair.input(), pair.add(CONSTANT)]
    pair.grow(pool, pair.rng.randrange(1, 6))
    for _ in range(loops):
        pair.loop(pool)
    pair.grow(pool, 3)
    for node in pair.rng.sample(pool, min(4, len(pool))):
        pair.output(node)
    pair.engine.hydrate()
    pair.remember(0)
    pair.check([0])
    at = 1
    for _ in range(steps):
        ordinals = []
        for _ in range(pair.rng.choice([1, 1, 3])):
            pair.feed(at, 4, negative)
            pair.remember(at)
            ordinals.append(at)
            at += 1
        pair.engine.step()
        pair.check(ordinals)
        if pair.rng.random() < 0.4:
            pair.feed(at - 1, 3, negative)
            pair.remember(at - 1)
            pair.engine.step()
            pair.check([at - 1])
        if pair.rng.random() < 0.5:
            pair.engine.allow_compaction(at - pair.rng.randrange(1, 3))


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int) -> None:
    run(Pair(seed), 8, 0, negative=seed % 2 == 0)


@pytest.mark.parametrize("seed", range(40))
def test_random_loops(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spine, "FUEL", 1 + seed % 9)
    run(Pair(seed), 6, 1 + seed % 2)
