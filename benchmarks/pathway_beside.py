"""pathway beside, where `make rivals` has installed it: see ``pathway_views.py``, which runs in its environment."""

from __future__ import annotations

import json
import statistics
import subprocess
from pathlib import Path
from typing import Final

from benchmarks import recompute
from benchmarks.library import Case, Contents, Plan

ROOT: Final = Path(__file__).parents[1]
PYTHON: Final = ROOT / ".venv-rivals" / "bin" / "python"
PROGRAMS: Final = ("A_S", "B", "C_1k", "C_100k", "D_1k", "D_100k")
"""A_L takes two minutes to load and 5 GB; E's queries are not written."""
MOST: Final = 20
"""Batches of a size."""


def measure(name: str, case: Case, plan: Plan, shrink: int) -> dict[int, float] | None:
    """Median milliseconds by size of batch; None where pathway is not installed, or has no program for the workload.
    AssertionError if its result is not what DuckDB computes."""
    if name not in PROGRAMS or not PYTHON.exists():
        return None
    plan = tuple((size, min(count, MOST)) for size, count in plan)
    command = [PYTHON, "-m", "benchmarks.pathway_views", name, str(shrink), *(f"{s}:{c}" for s, c in plan)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    made = case.made()
    contents = Contents(made.base())
    for size, count in plan:
        for batch in made.batches(size, count):
            contents.changes(batch)
    assert {tuple(row) for row in found["rows"]} == recompute.expected(case, contents.tables), name
    return {int(size): statistics.median(times) for size, times in found["times"].items()}
