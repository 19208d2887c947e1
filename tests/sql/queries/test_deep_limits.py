"""Recursion four deep at its limits of rounds: RETURN AT and ERROR AT at every depth, and views that heal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.programs.histories import InProcess, clean
from tests.support.grammar_blocks import DEEPEST, deep_history
from tests.support.model import Bag
from tests.support.replay import Replay

SEEDS = {"batch": range(14), "rows": range(100, 103), "churn": range(200, 205), "restart": range(300, 303)}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    inside = InProcess(tmp_path_factory.mktemp("deep"))
    yield inside
    inside.end()


@dataclass(slots=True)
class Watched(Replay):
    """A history that records how the view changes from right to failed and back."""

    turns: Counter[str] = field(default_factory=Counter)
    deepest: int = 0
    _failed: bool = False

    def _read(self, name: str, diverged: bool) -> Bag | None:
        assert isinstance(self.database, InProcess)
        flow = self.database.server.coordinator.engine.dataflow
        self.deepest = max(self.deepest, *(operator.scope.depth for operator in flow._operators.values()))
        if diverged != self._failed:
            self.turns["fails" if diverged else "heals"] += 1
        self._failed = diverged
        self.turns["failed" if diverged else "right"] += 1
        return super(Watched, self)._read(name, diverged)


def play(database: InProcess, seeds: range, shape: str, steps: int = 5) -> Counter[str]:
    """Plays all histories; each view's innermost loop is as deep as its blocks."""
    turns: Counter[str] = Counter()
    for seed in seeds:
        made = deep_history(seed, steps)
        watched = Watched(made, database, shape)
        try:
            watched.run()
        finally:
            clean(database, made)
        assert watched.deepest >= DEEPEST, seed
        turns += watched.turns
    return turns


@pytest.mark.parametrize("shape", list(SEEDS))
def test_blocks_nested_four_deep_equal_the_oracle(database: InProcess, shape: str) -> None:
    turns = play(database, SEEDS[shape], shape)
    assert min(turns["failed"], turns["right"]) >= 3, turns
    if shape == "batch":
        assert min(turns["fails"], turns["heals"]) >= 2, turns


@pytest.mark.parametrize("at", range(DEEPEST))
def test_a_limit_at_any_depth_is_an_error_that_heals(database: InProcess, at: int) -> None:
    """The loop at one depth follows a path, one edge per round; those around and inside it take one round."""

    def nest(depth: int) -> str:
        name = f"b{depth}"
        parts = [nest(depth + 1) if depth < DEEPEST - 1 else "SELECT 1", f"SELECT y FROM {name} JOIN path ON x = n"]
        parts += [f"SELECT n FROM b{depth - 1}"] if depth else []
        value = " UNION ".join(f"SELECT * FROM ({part}) q" for part in parts)
        limit = "ERROR AT RECURSION LIMIT 5" if depth == at else "RETURN AT RECURSION LIMIT 1"
        return f"WITH MUTUALLY RECURSIVE ({limit}) {name}(n int) AS ({value}) SELECT n FROM {name}"

    client = database.server.client()
    client.run("CREATE TABLE path (x int, y int)")
    client.run(f"CREATE MATERIALIZED VIEW m AS {nest(0)}")
    client.run("INSERT INTO path VALUES (1, 2), (2, 3), (3, 4)")
    assert client.sorted("SELECT * FROM m") == [("1",), ("2",), ("3",), ("4",)]
    client.run("INSERT INTO path VALUES (4, 5)")
    error = client.error("SELECT * FROM m")
    assert error.sqlstate == "54001"
    assert error.message == "recursion did not end within 5 rounds (in materialized view m)"
    assert error.detail == f'Rows of "b{at}" still changing: +(5).'
    client.run("DELETE FROM path WHERE x = 3")
    assert client.sorted("SELECT * FROM m") == [("1",), ("2",), ("3",)]
    assert client.rows("SELECT * FROM freshet.view_errors") == []
    assert client.rows("VERIFY MATERIALIZED VIEW m") == []
    client.run("DROP TABLE path CASCADE")
    client.close()
