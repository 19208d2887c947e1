"""Loads the Hypothesis profile before any test is collected, and compiles kernels before the first one runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings

from sql.session.warm import warm
from tests.support.profiles import NAME
from tests.support.scatter_frames import frames
from tests.support.spark_cluster import cluster
from tests.support.spark_local import hurry, local_spark
from tests.support.spread import by_file, order

__all__ = ["cluster", "frames", "local_spark"]

settings.load_profile(NAME)
hurry()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Compiles once, not in each process."""
    if not config.option.collectonly:
        asyncio.run(warm(print))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return by_file(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=order)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What a test may take has no room for compiling, which takes minutes on a slow machine."""
    if session.items and not session.config.option.collectonly:
        asyncio.run(warm(print))
