"""Loads the Hypothesis profile before any test is collected, compiles kernels before the first one runs, and says which
tests stay together where a run has several processes (``make test``)."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings

from sql.session.warm import warm
from tests.profiles import NAME
from tests.spark_cluster import cluster
from tests.spark_local import hurry, local_spark

__all__ = ["cluster", "local_spark"]

LONG = ("test_vacuum", "test_histories", "test_asof", "test_docs", "test_crashes", "test_sinks", "test_ivm_dataflow",
        "test_formulas", "test_limits", "test_reduce", "test_sources")  # fmt: skip
"""Files that take longest: they begin first, so that no process is left with one in the end."""
SPARK = frozenset(("local_spark", "cluster"))

settings.load_profile(NAME)
hurry()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Once, not in each process."""
    if not config.option.collectonly:
        asyncio.run(warm(print))


def pytest_collection_finish(session: pytest.Session) -> None:
    """What a test may take has no room for compiling, which takes minutes on a slow machine."""
    if session.items and not session.config.option.collectonly:
        asyncio.run(warm(print))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A file's tests run in one process, in order; all files that want a Spark of the run, in the same one."""
    if not hasattr(config, "workerinput"):
        return
    spark = {item.path for item in items if SPARK & set(getattr(item, "fixturenames", ()))}
    for item in items:
        item.add_marker(pytest.mark.xdist_group("spark" if item.path in spark else item.path.stem))
    rank = {name: i for i, name in enumerate(LONG)}
    items.sort(key=lambda item: (item.path not in spark, rank.get(item.path.stem, len(LONG))))
