"""Nodes hydrated beside a running dataflow hold the same as nodes that were there from the start."""

from __future__ import annotations

import numpy as np
import pytest

from ivm.graph import (
    NodeId,
)
from ivm.hydration.detached import Detached, NotDetachableError, detach
from tests.support.ivm_random import CONSTANT, Pair, step


def take_back(pair: Pair, at: int) -> None:
    """Steps a transaction at an ordinal and rolls it back."""
    rows = np.array([[pair.rng.randrange(6), pair.rng.randrange(6)] for _ in range(3)])
    for diff in (1, -1):
        for node in pair.inputs:
            pair.engine.feed(node, rows, np.full(3, at), np.full(3, diff))
        pair.engine.step()


def grown(pair: Pair, pool: list[NodeId], loop: bool) -> tuple[Detached, list[NodeId]] | None:
    """New random nodes beside the engine, and the Outputs among them; None if they can only be made inside it."""
    before, outputs, state = list(pool), list(pair.outputs), pair.rng.getstate()
    main = pair.engine

    def make(flow: Detached) -> list[NodeId]:
        pool[:], pair.outputs[:] = before, outputs
        pair.rng.setstate(state)
        pair.engine = flow
        pair.grow(pool, 4)
        if loop:
            pair.loop(pool)
        made = [pair.output(node) for node in pair.rng.sample(pool, 3)]
        pair.outputs[:] = outputs
        return made

    try:
        return detach(main, make)
    except NotDetachableError:
        pool[:], pair.outputs[:] = before, outputs
        return None
    finally:
        pair.engine = main


def settle(pair: Pair, flow: Detached, outputs: list[NodeId], newest: int) -> None:
    """Catches up for the last time; gives the contents afterwards."""
    flow.advance()
    flow.run()
    flow.attach()
    root = pair.engine.publish()
    for out in outputs:
        changes = pair.engine.changes(out)
        assert (changes.times <= newest).all()
        for row, diff in zip(map(tuple, changes.rows.tolist()), changes.diffs.tolist(), strict=True):
            pair.emitted[out][row] += diff
        expected = pair.model.value(out)
        assert {row: diff for row, diff in pair.emitted[out].items() if diff} == expected
        rows, diffs = root[out].rows_at(newest)
        assert dict(zip(map(tuple, rows.tolist()), diffs.tolist(), strict=True)) == expected
    pair.outputs += outputs


@pytest.mark.parametrize("seed", range(40))
def test_nodes_from_beside_hold_what_early_ones_do(seed: int) -> None:
    pair = Pair(900 + seed)
    rng = pair.rng
    pool = [pair.input(), pair.input(), pair.add(CONSTANT)]
    pair.grow(pool, 4)
    if seed % 3 == 0:
        pair.loop(pool)
        for node in pool[-2:]:
            pair.output(node)
    pair.output(rng.choice(pool))
    pair.engine.hydrate()
    pair.remember(0)
    pair.check([0])
    at = 1
    for wave in range(4):
        at = step(pair, at, rng.choice([1, 2]))
        pair.engine.allow_compaction(at - rng.randrange(1, 3))
        made = grown(pair, pool, wave % 2 == seed % 2)
        if made is None:
            continue
        flow, outputs = made
        for _ in range(rng.randrange(3)):
            at = step(pair, at, rng.choice([1, 2]))
        flow.run()
        for _ in range(rng.randrange(4)):
            if rng.random() < 0.3:
                take_back(pair, at)
            at = step(pair, at, rng.choice([1, 2, 3]))
            pair.engine.allow_compaction(at - 1)
            if rng.random() < 0.5:
                flow.advance()
                flow.run()
        settle(pair, flow, outputs, at - 1)
        at = step(pair, at, 2)
