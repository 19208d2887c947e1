"""The folder through which Spark's executors pass files to the server. A restarted server finds it again after a
kill."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from sql.engine.engine import Engine
from storage.spark.session import SparkSettings


def scratch_folder(engine: Engine, settings: SparkSettings) -> Path | None:
    """A folder inside the shared folder, named after the data folder's secret; if Spark is local, inside the data
    folder.

    None: the server has no data folder.
    """
    if engine.persistence is None:
        return None
    if settings.shared is None:
        return engine.persistence.folder / "spark"
    return settings.shared / f"freshet-{hashlib.sha256(engine.dictionary.secret).hexdigest()[:16]}"


def remove_scratch(engine: Engine, settings: SparkSettings | None) -> None:
    """Remove what a load of this server has left there. Call it when no load runs."""
    folder = scratch_folder(engine, settings or SparkSettings())
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
