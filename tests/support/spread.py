"""Which tests stay together, and in what order they begin, where a run has several processes (``make test``)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

LONG: Final = (
    "test_vacuum", "test_histories", "test_crashes", "test_asof", "test_docs", "test_sinks", "test_ivm_dataflow",
    "test_formulas", "test_limits", "test_reduce", "test_source_kills",
)  # fmt: skip
"""Files that take longest: they begin first, so that no process is left with one in the end."""
_SHARED: Final = ("local_spark", "tests.support.spark_cluster")


@cache
def wants_spark(file: Path) -> bool:
    """Whether its tests use what a process starts once: a Spark, a cluster."""
    text = file.read_text()
    return any(name in text for name in _SHARED)


def order(item: pytest.Item) -> tuple[bool, int]:
    """What begins first comes first: all that wants a Spark takes about half of the time."""
    name = item.path.stem
    return not wants_spark(item.path), LONG.index(name) if name in LONG else len(LONG)


def by_file(config: pytest.Config, log: Any) -> Any:
    """Gives each process a file at a time, and all that want a Spark to one of them."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "spark" if wants_spark(config.rootpath / file) else file

    config.option.loadscopereorder = False
    return ByFile(config, log)
