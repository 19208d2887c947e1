"""Which databases are opened at a start, and not by their first client: those that do something by themselves."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from sql.catalog.catalog import Catalog, RelationKind
from sql.engine.engine import Engine
from sql.engine.group import Delta
from sql.engine.snapshot import Published

log = logging.getLogger("freshet.cluster")

FILE: Final = "wakes"
"""In the folder of a database that has sources or sinks."""
_AWAKE: Final = (RelationKind.SOURCE, RelationKind.SINK)


class Waking:
    """Keeps the file of an open database. Cost: nothing for a commit that leaves the catalog as it is."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self._file = folder / FILE
        self._seen: Catalog | None = None
        engine.listeners.append(self._published)
        self._look(engine.published.catalog)

    def _published(self, _: Delta, published: Published) -> None:
        if published.catalog is not self._seen:
            self._look(published.catalog)

    def _look(self, catalog: Catalog) -> None:
        self._seen = catalog
        wakes = any(relation.kind in _AWAKE for relation in catalog.relations.values())
        try:
            if wakes and not self._file.exists():
                self._file.touch(0o600)
            elif not wakes:
                self._file.unlink(missing_ok=True)
        except OSError as error:
            log.warning("%s: %s", self._file, error.strerror)


def wakes(folder: Path) -> bool:
    """Whether the database in a folder is to be opened."""
    return (folder / FILE).exists()
