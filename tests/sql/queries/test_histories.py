"""Random histories against the oracle, the short form; ``make histories`` is the long one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs.histories import InProcess, Owned, play
from tests.support.coverage import REQUIRED, measure
from tests.support.grammar import history
from tests.support.replay import Database

SEEDS = {"batch": range(20), "rows": range(100, 108), "churn": range(200, 212), "restart": range(300, 307)}
BLOCKS = {"batch": range(12), "rows": range(100, 105), "churn": range(200, 205), "restart": range(300, 303)}
STEPS = {"batch": 8, "rows": 6, "churn": 8, "restart": 5}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owned]:
    owned = Owned(tmp_path_factory.mktemp("histories"))
    yield owned
    owned.end()


@pytest.mark.parametrize("shape", list(SEEDS))
def test_views_equal_the_oracle(database: Owned, shape: str, tmp_path: Path) -> None:
    """At every epoch of every history, over the wire; in process where there are restarts, since those cost less."""
    if shape == "restart":
        inside = InProcess(tmp_path)
        assert sum(play(seed, inside, shape, STEPS[shape]) for seed in SEEDS[shape]) > 3 * len(SEEDS[shape])
        inside.end()
        database.restart()
        return
    checked = sum(play(seed, database, shape, STEPS[shape]) for seed in SEEDS[shape])
    assert checked > 3 * len(SEEDS[shape])


@pytest.mark.parametrize("shape", list(BLOCKS))
def test_blocks_equal_the_oracle(database: Owned, shape: str, tmp_path: Path) -> None:
    """WITH MUTUALLY RECURSIVE, nested up to three deep, the errors of those that do not end in time included."""
    played: Database = InProcess(tmp_path) if shape == "restart" else database
    checked = sum(play(seed, played, shape, 4, blocks=True) for seed in BLOCKS[shape])
    assert checked > 3 * len(BLOCKS[shape])
    if isinstance(played, InProcess):
        played.end()


def test_the_grammar_covers_what_it_must() -> None:
    """At least 5 % of the views have each required feature, and most pairs of operators occur."""
    shares, pairs = measure(history(seed, steps=1) for seed in range(400))
    assert {name: share for name, share in shares.items() if share < REQUIRED[name]} == {}
    assert len(pairs) > 120
