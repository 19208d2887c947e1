"""Delta joins: random histories against the oracle, and what a change costs.

``python -m tests.ivm.test_delta_join 1000`` runs that many random graphs of them.
"""

from __future__ import annotations

import sys

import pytest

from ivm.trace.spine import Spine
from tests.ivm.test_dataflow import run
from tests.support.ivm_random import Pair

KINDS = ("delta", "delta", "delta", "distinct", "join", "project", "negate", "least")


def history(seed: int) -> None:
    """A random graph of delta joins, outside of loops, in one, or in one inside another."""
    run(Pair(seed, kinds=KINDS), 5, seed % 3, negative=seed % 2 == 0, pausing=seed % 7 == 0)


@pytest.mark.parametrize("seed", range(3000, 3030))
def test_random_delta_joins(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spine, "FUEL", 1 + seed % 9)
    history(seed)


BANDS = ("band", "band", "band", "distinct", "join", "project", "negate", "least")


@pytest.mark.parametrize("seed", range(4000, 4040))
def test_random_joins_by_inequalities(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans, outside of loops and in them."""
    monkeypatch.setattr(Spine, "FUEL", 1 + seed % 9)
    run(Pair(seed, kinds=BANDS), 5, seed % 3, negative=seed % 2 == 0, pausing=seed % 7 == 0)


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        history(number)
        if number % 100 == 99:
            print(number + 1, "right", flush=True)
