"""Intervals registered at nodes: those that meet an interval are found at the nodes in it and above its ends."""

from __future__ import annotations

import random

import numpy as np

from planner.expr.functions.internal.intervals import above, node_of

LEAST, MOST = -(1 << 63), (1 << 63) - 1


def test_the_node_is_the_topmost_in_the_interval() -> None:
    def height(n: int) -> int:
        offset = n - LEAST
        return (offset & -offset).bit_length()

    for first in range(-40, 40):
        for last in range(first, 40):
            best = max(range(first, last + 1), key=height)
            assert node_of(first, last) == best


def test_intervals_that_meet_are_found() -> None:
    rng = random.Random(5)
    ends = [LEAST + 1, LEAST + 2, -1, 0, 1, MOST - 1, MOST, *range(-20, 20), *(rng.getrandbits(63) for _ in range(10))]
    stored = [sorted(rng.choices(ends, k=2)) for _ in range(300)]
    for _ in range(100):
        low, high = sorted(rng.choices(ends, k=2))
        nodes = above(np.array([low, high]))
        outside = {n for n in nodes[0].tolist() if n < low} | {n for n in nodes[1].tolist() if n > high}
        for first, last in stored:
            node = node_of(first, last)
            if first <= high and low <= last:
                assert low <= node <= high or node in outside, (low, high, first, last)
