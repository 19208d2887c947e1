"""Random histories against the oracle, the short form; ``make histories`` is the long one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.coverage import REQUIRED, measure
from tests.grammar import history
from tests.histories import Owned, play

SEEDS = {"batch": range(0, 40), "rows": range(100, 115), "churn": range(200, 225), "restart": range(300, 303)}
STEPS = {"batch": 8, "rows": 6, "churn": 8, "restart": 2}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owned]:
    owned = Owned(tmp_path_factory.mktemp("histories"))
    yield owned
    owned.end()


@pytest.mark.parametrize("shape", list(SEEDS))
def test_views_equal_the_oracle(database: Owned, shape: str) -> None:
    """At every epoch of every history."""
    checked = sum(play(seed, database, shape, STEPS[shape]) for seed in SEEDS[shape])
    assert checked > 3 * len(SEEDS[shape])


def test_the_grammar_covers_what_it_must() -> None:
    """At least 5 % of the views have each required feature, and most pairs of operators occur."""
    shares, pairs = measure(history(seed, steps=1) for seed in range(400))
    assert {name: share for name, share in shares.items() if share < REQUIRED[name]} == {}
    assert len(pairs) > 120
