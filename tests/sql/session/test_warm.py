"""The marker of the first start, and which imports load no kernels."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sql.session.warm import sources
from tests.support.paths import ROOT


def test_every_kernel_counts() -> None:
    """A changed kernel is compiled at the next start, not in the middle of a statement."""
    packages = [path for name in ("ivm", "planner", "storage", "sql") for path in (ROOT / name).rglob("*.py")]
    compiled = {path for path in packages if "import numba" in (text := path.read_text()) or "from numba" in text}
    assert compiled
    assert set(sources()) >= compiled | set((ROOT / "ivm" / "kernels").glob("*.py"))


@pytest.mark.parametrize(
    "module", ["sql.parse", "sql.bind.statement", "planner.transform.pipeline", "planner.lower.plan"]
)
def test_what_makes_plans_is_imported_quickly(module: str) -> None:
    """A unit test of a parser or a plan starts at once."""
    heavy = {"numba", "llvmlite", "pyarrow", "duckdb", "pyspark", "pandas"}
    program = f"import sys, {module}; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
