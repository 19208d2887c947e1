"""freshet.steps: windows over the latest steps, or over all of them if there are fewer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sql.engine.step_times import WINDOWS, StepTimes
from tests.support.sessions import Server


@pytest.mark.parametrize("steps", [0, 1, 99, 100, 1_234, 10_000, 25_001])
def test_windows_have_the_latest_steps(steps: int) -> None:
    times = StepTimes()
    took = np.random.default_rng(steps).integers(1_000, 9_000_000, steps)
    for nanoseconds in took.tolist():
        times.went_on(nanoseconds // 2, False)
        times.went_on(nanoseconds - nanoseconds // 2, True)
    expected = [w for w in WINDOWS if w <= steps] or ([steps] if steps else [])
    found = times.rows()
    assert [(row[0], row[1]) for row in found] == [(w, steps) for w in expected]
    for window, _, *figures in found:
        assert sorted(times.latest(window)) == sorted(took[steps - window :])
        assert figures == [round(float(p), 1) for p in np.percentile(took[steps - window :], (50, 99, 100)) / 1000]


def test_each_commit_is_a_step(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE t (n int)")
    before = int(client.rows("SELECT coalesce(max(of), 0) FROM freshet.steps")[0][0] or 0)
    for i in range(20):
        client.run(f"INSERT INTO t VALUES ({i})")
    (row,) = client.rows("SELECT of, p50_us > 0, longest_us >= p99_us FROM freshet.steps ORDER BY latest DESC LIMIT 1")
    assert int(row[0] or 0) - before == 20
    assert list(row[1:]) == ["t", "t"]
    server.close()
