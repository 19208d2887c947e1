"""The delay before a failed task is retried."""

from __future__ import annotations

from sql.engine.retries import pause_after


def test_pauses_double_up_to_a_minute_however_often_it_fails() -> None:
    assert [pause_after(failures, 1.0) for failures in (1, 2, 3, 6, 7, 5000)] == [1, 2, 4, 32, 60, 60]
    assert pause_after(1, 0.5) == 0.5
