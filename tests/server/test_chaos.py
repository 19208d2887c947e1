"""The short form of ``tests.programs.chaos``."""

from __future__ import annotations

from pathlib import Path

from tests.programs.chaos import run


def test_clients_that_know_nothing_of_each_other(tmp_path: Path) -> None:
    assert run(60, 4, 11, tmp_path / "data") == []
