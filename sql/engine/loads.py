"""Loads of files: those that run, and those that were committed, which are the same load when they are tried again.

What is known of a committed load is a JSON text of its commit's log record and, later, of the store: it stands exactly
when the rows do. Loads are told apart by their id within their table, for as long as the table is there.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from ivm.errors import SqlError
from sql.engine.clock import POSTGRES_EPOCH, wall_clock
from storage.cancel import Cancel
from storage.load.rejects import Reject

KEPT: Final = ("id", "relation", "table", "source", "engine", "started", "rows", "total", "rejected", "finished")
"""What stays of a committed load."""
FORGOTTEN_AFTER: Final = 100
"""Loads that failed are shown until so many later ones have."""
REJECTS_KEPT: Final = 10
"""A table's rejects are those of its last so many loads that had any."""


class LoadState(Enum):
    READING = "reading"
    COMMITTING = "committing"
    COMMITTED = "committed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(slots=True, eq=False)
class Load:
    """One load. ``relation``: the table's oid; times are µs since 2000.

    ``rows``: read so far, then loaded; ``total``: of the files, where they tell; ``rejected``: how many rejects it had.
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
    rejected: int = 0
    rejects: Sequence[Reject] = ()
    epoch: int | None = None
    finished: int | None = None
    error: str | None = None
    cancel: Cancel = field(default_factory=Cancel)

    def reject(self, rejects: Sequence[Reject]) -> None:
        """They are what it leaves out."""
        self.rejects, self.rejected = sorted(rejects, key=lambda reject: reject.order), len(rejects)

    def to_json(self) -> dict[str, object]:
        """What stays of a committed load."""
        kept = {name: getattr(self, name) for name in KEPT}
        return kept | {"rejects": [list(reject) for reject in self.rejects]} if self.rejects else kept

    @classmethod
    def from_json(cls, found: Mapping[str, Any], epoch: int) -> Load:
        """The inverse, as of the epoch that it was committed at."""
        values: dict[str, Any] = {name: found[name] for name in KEPT if name in found}  # before rejects: not that
        rejects = [Reject(*reject) for reject in found.get("rejects", ())]
        return cls(**values, rejects=rejects, backend=0, state=LoadState.COMMITTED, epoch=epoch)


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
        for relation in known:
            self._forget_rejects(relation)

    def committed(self, relation: int, id_: str) -> Load | None:
        """A table's committed load of this id. Asked in a job of the engine's thread, it is durable when that ends."""
        return self._committed.get((relation, id_))

    def commit(self, loads: Iterable[Load], epoch: int) -> None:
        """They are part of the commit of this epoch."""
        for load in loads:
            load.epoch, load.state = epoch, LoadState.COMMITTED
            self._committed[load.relation, load.id] = load
            if load.rejects:
                self._forget_rejects(load.relation)

    def _forget_rejects(self, relation: int) -> None:
        having = [load for load in self._committed.values() if load.relation == relation and load.rejects]
        for load in sorted(having, key=lambda load: load.epoch or 0)[:-REJECTS_KEPT]:
            load.rejects = ()

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
