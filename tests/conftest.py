"""Loads the Hypothesis profile before any test is collected, and compiles kernels before the first one runs."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings

from sql.session.warm import warm
from tests.profiles import NAME
from tests.spark_cluster import cluster
from tests.spark_local import hurry, local_spark

__all__ = ["cluster", "local_spark"]

settings.load_profile(NAME)
hurry()


def pytest_collection_finish(session: pytest.Session) -> None:
    """What a test may take has no room for compiling, which takes minutes on a slow machine."""
    if session.items and not session.config.option.collectonly:
        asyncio.run(warm(print))
