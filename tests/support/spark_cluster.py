"""A two-worker cluster shared by all tests of a run that need one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from storage.spark.cluster import LocalCluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """A master and two workers of one core each (``storage.spark.cluster``)."""
    pytest.importorskip("pyspark")
    from storage.spark.cluster import LocalCluster

    with LocalCluster(memory="600m") as started:
        yield started


@pytest.fixture(scope="module")
def connect(cluster: LocalCluster) -> Iterator[str]:
    """The URL of a Spark Connect server that occupies all cores of the cluster. For the last tests of a module."""
    with cluster.connected() as url:
        yield url


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A folder for ``--spark-shared``, which must be empty at the end."""
    folder = tmp_path / "shared"
    folder.mkdir()
    yield folder
    left = [str(path.relative_to(folder)) for path in folder.rglob("*")]
    assert not left, f"left behind: {left}"
