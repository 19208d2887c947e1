"""How far a load has come, for pg_stat_progress_copy."""

from __future__ import annotations

from collections.abc import Callable

from sql.engine.loads import Load
from sql.system.state import CopyInfo
from storage.load.paths import LocalFiles, Location


def load_progress(load: Load, location: Location) -> Callable[[], CopyInfo]:
    """Bytes are reckoned from rows, where the files tell how many they have; else they are not known, 0."""
    size = location.size if isinstance(location, LocalFiles) else 0

    def told() -> CopyInfo:
        done = size * min(load.rows, load.total) // load.total if load.total else 0
        return CopyInfo(load.backend, load.relation, False, "FILE", done, size, load.rows, load.rejected)

    return told
