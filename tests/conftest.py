"""Loads the Hypothesis profile before any test is collected, and compiles kernels before the first test runs.

Heavy modules (numba, pyarrow, Spark, the server) are imported only when a collected test needs them, so that a test of
a parser or a plan begins at once.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings

from tests.support.bytecode import keep_bytecode
from tests.support.memory_folder import memory_folder
from tests.support.profiles import NAME
from tests.support.spark_cluster import cluster
from tests.support.spark_local import hurry, local_spark
from tests.support.spread import by_file, order

__all__ = ["cluster", "local_spark"]

ENGINE: Final = ("ivm.kernels.cache", "psycopg")
"""A collected test that runs kernels has imported them, or the client with which it talks to a server."""

keep_bytecode()
settings.load_profile(NAME)
hurry()
memory_folder()
gc.set_threshold(700, 10, 4_000)  # as by default, but a collection of all objects is as rare as in a server
gc.disable()  # until everything is imported: what modules hold is not garbage


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Compiles once, not in each process."""
    gc.enable()
    if not config.option.collectonly:
        _compile()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for a disk, a process or another thread."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return by_file(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=order)


def pytest_collection_finish(session: pytest.Session) -> None:
    """A test's timeout has no room for compiling, which takes minutes on a slow machine."""
    gc.freeze()  # a collection of garbage need not look at what was imported
    gc.enable()
    if session.items and not session.config.option.collectonly and any(name in sys.modules for name in ENGINE):
        _compile()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # extension modules look for leaks at the end


def _compile() -> None:
    """Compiles all kernels that no image has."""
    import asyncio

    from sql.session.warm import warm

    asyncio.run(warm(print))


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """pytest's own, which goes with the test: before that, servers in it end."""
    yield tmp_path
    _close_those_in(tmp_path)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    _close_those_in(Path("/"))


def _close_those_in(folder: Path) -> None:
    if "tests.support.sessions" in sys.modules:
        from tests.support.sessions import close_those_in

        close_those_in(folder)


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``tests.support.spark_fake.Frames``, which a server takes for Spark during the test."""
    from tests.support.spark_fake import install

    return install(monkeypatch)
