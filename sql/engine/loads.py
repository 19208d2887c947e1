"""Loads of files: those that run, and those that were committed, which are the same load when they are tried again.

What is known of a committed load is a JSON text of its commit's log record and, later, of the store: it stands exactly
when the rows do. Loads are told apart by their id within their table, for as long as the table is there.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from ivm.errors import SqlError
from sql.engine.clock import POSTGRES_EPOCH, wall_clock
from storage.cancel import Cancel

KEPT: Final = ("id", "relation", "table", "source", "engine", "started", "rows", "total", "finished")
"""What stays of a committed load."""
FORGOTTEN_AFTER: Final = 100
"""Loads that failed are shown until so many later ones have."""


class LoadState(Enum):
    READING = "reading"
    COMMITTING = "committing"
    COMMITTED = "committed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(slots=True, eq=False)
class Load:
    """One load. ``relation``: the table's oid; times are µs since 2000.

    ``rows``: read so far, then loaded; ``total``: of the files, where they tell.
    """

    id: str
    relation: int
    table: str
    source: str
    engine: str
    backend: int
    started: int
    state: LoadState = LoadState.READING
    rows: int = 0
    total: int | None = None
    epoch: int | None = None
    finished: int | None = None
    error: str | None = None
    cancel: Cancel = field(default_factory=Cancel)

    def to_json(self) -> dict[str, object]:
        """What stays of a committed load."""
        return {name: getattr(self, name) for name in KEPT}

    @classmethod
    def from_json(cls, found: Mapping[str, object], epoch: int) -> Load:
        """The inverse, as of the epoch that it was committed at."""
        values = {name: found[name] for name in KEPT}
        return cls(**values, backend=0, state=LoadState.COMMITTED, epoch=epoch)  # type: ignore[arg-type]


class Loads:
    """All loads that the server knows. Committed ones change on the engine's thread, the others on the event loop's."""

    def __init__(self) -> None:
        self._committed: dict[tuple[int, str], Load] = {}
        self._running: dict[tuple[int, str], Load] = {}
        self._ended: deque[Load] = deque(maxlen=FORGOTTEN_AFTER)

    def restore(self, texts: Mapping[str, int], relations: Iterable[int]) -> None:
        """Those that the store and the log know, by their texts with their epochs, for the tables that are there."""
        known = set(relations)
        for text, epoch in texts.items():
            for found in json.loads(text):
                load = Load.from_json(found, epoch)
                if load.relation in known:
                    self._committed[load.relation, load.id] = load

    def committed(self, relation: int, id_: str) -> Load | None:
        """A table's committed load of this id. Asked in a job of the engine's thread, it is durable when that ends."""
        return self._committed.get((relation, id_))

    def commit(self, loads: Iterable[Load], epoch: int) -> None:
        """They are part of the commit of this epoch."""
        for load in loads:
            load.epoch, load.state = epoch, LoadState.COMMITTED
            self._committed[load.relation, load.id] = load

    @contextmanager
    def run(self, load: Load) -> Iterator[None]:
        """For as long as the load runs. 55006: it does already."""
        key = load.relation, load.id
        if key in self._running:
            raise SqlError("55006", f'load "{load.id}" of table {load.table} is running already')
        self._running[key] = load
        try:
            yield
        except SqlError as error:
            cancelled = error.sqlstate == "57014"
            load.state = LoadState.CANCELLED if cancelled else LoadState.FAILED
            load.error = error.message
            raise
        except BaseException:
            load.state, load.error = LoadState.CANCELLED, "canceling statement due to user request"
            raise
        finally:
            del self._running[key]
            if load.state in (LoadState.FAILED, LoadState.CANCELLED):
                load.finished = wall_clock() - POSTGRES_EPOCH
                self._ended.append(load)

    def all(self) -> list[Load]:
        """Committed, failed and running ones, by when they started."""
        found = {id(load): load for load in (*list(self._committed.values()), *self._ended, *self._running.values())}
        return sorted(found.values(), key=lambda load: (load.started, load.id))


def loads_text(loads: Iterable[Load]) -> str | None:
    """For a commit's record; None: there are none."""
    found = [load.to_json() for load in loads]
    return json.dumps(found, ensure_ascii=False) if found else None
