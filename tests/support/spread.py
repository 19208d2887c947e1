"""How a run with several processes (``make test``) distributes the tests, and in which order they start."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

LONG: Final = (
    "test_histories", "test_source_kills", "test_sinks", "test_crashes", "test_vacuum", "test_docs", "test_asof",
    "test_past_errors", "test_restarts", "test_rights_matrix", "test_cancels", "test_secured_views", "test_views",
    "test_switching", "test_escapes", "test_formulas", "test_function_extremes", "test_limits", "test_changing",
    "test_large_loads", "test_python_clients", "test_databases", "test_reduce",
)  # fmt: skip
"""The slowest files: they start first, so that no process is left with one at the end."""
_SHARED: Final = ("local_spark", "tests.support.spark_cluster")


@cache
def wants_spark(file: Path) -> bool:
    """Whether its tests use what a process starts only once: Spark, or a cluster."""
    text = file.read_text()
    return any(name in text for name in _SHARED)


def order(item: pytest.Item) -> tuple[bool, int]:
    """The sort key of tests: those that need Spark, about half of the total time, come first."""
    name = item.path.stem
    return not wants_spark(item.path), LONG.index(name) if name in LONG else len(LONG)


def by_file(config: pytest.Config, log: Any) -> Any:
    """Assign tests to processes file by file, and all that need Spark to one process."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "spark" if wants_spark(config.rootpath / file) else file

    config.option.loadscopereorder = False
    return ByFile(config, log)
