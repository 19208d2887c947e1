"""Where Spark's executors leave what the server fetches: a folder that a server which was killed finds again."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from sql.engine.engine import Engine
from storage.spark.session import SparkSettings


def scratch_folder(engine: Engine, settings: SparkSettings) -> Path | None:
    """Inside the shared folder, named after the data folder's secret; inside the data folder where Spark is local.

    None: the server has no data folder.
    """
    if engine.persistence is None:
        return None
    if settings.shared is None:
        return engine.persistence.folder / "spark"
    return settings.shared / f"freshet-{hashlib.sha256(engine.dictionary.secret).hexdigest()[:16]}"


def remove_scratch(engine: Engine, settings: SparkSettings | None) -> None:
    """Takes away what a load of this server has left there, when none runs."""
    folder = scratch_folder(engine, settings or SparkSettings())
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
