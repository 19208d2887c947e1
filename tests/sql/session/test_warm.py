"""What the marker of the first start stands for."""

from __future__ import annotations

from sql.session.warm import sources
from tests.support.paths import ROOT


def test_every_kernel_counts() -> None:
    """A changed kernel is compiled at the next start, not in the middle of a statement."""
    packages = [path for name in ("ivm", "planner", "storage", "sql") for path in (ROOT / name).rglob("*.py")]
    compiled = {path for path in packages if "import numba" in (text := path.read_text()) or "from numba" in text}
    assert compiled
    assert set(sources()) >= compiled | set((ROOT / "ivm" / "kernels").glob("*.py"))
