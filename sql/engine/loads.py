"""Loads of files: running ones, and committed ones, which a client may retry by their id.

A committed load is recorded as a JSON text in its commit's log record and later in the store, so it is known exactly
when its rows are durable. A load's id is unique within its table. Loads with a LOAD_ID are remembered as long as their
table exists. The others cannot be retried; only the latest of them are kept, for display.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from ivm.errors import SqlError
from sql.engine.clock import timestamp_now
from storage.cancel import Cancel
from storage.load.rejects import Reject

KEPT: Final = (
    "id", "relation", "table", "source", "engine", "started", "rows", "total", "rejected", "finished", "named",
)  # fmt: skip
"""The fields recorded for a committed load."""
FORGOTTEN_AFTER: Final = 100
"""A load without a LOAD_ID is shown until its table has this many later ones; a failed load until there are this many
later failed ones."""
REJECTS_KEPT: Final = 10
"""A table's rejects are kept for the latest this many loads that had any."""


class LoadState(Enum):
    READING = "reading"
    COMMITTING = "committing"
    COMMITTED = "committed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(slots=True, eq=False)
class Load:
    """One load. ``relation``: the table's oid, 0 before the table exists; times are µs since 2000.

    ``rows``: read so far, in the end loaded; ``total``: the rows of the files, if known; ``rejected``: the number of
    rejects; ``named``: whether its statement has a LOAD_ID.
    """

    id: str
    relation: int
    table: str
    source: str
    engine: str
    backend: int
    started: int
    named: bool = True
    state: LoadState = LoadState.READING
    rows: int = 0
    total: int | None = None
    rejected: int = 0
    rejects: Sequence[Reject] = ()
    epoch: int | None = None
    finished: int | None = None
    error: str | None = None
    cancel: Cancel = field(default_factory=Cancel)

    def see(self, rows: int) -> None:
        """Report the number of rows read so far. Executors have read all rows before the server takes the first."""
        self.rows = max(self.rows, rows)

    def reject(self, rejects: Sequence[Reject]) -> None:
        """Set the rejects: the bad rows that the load leaves out."""
        self.rejects, self.rejected = sorted(rejects, key=lambda reject: reject.order), len(rejects)

    def join(self, loads: list[Load], rows: int) -> None:
        """The load's rows are now part of a transaction, whose loads are ``loads``."""
        self.rows, self.finished = rows, timestamp_now()
        loads.append(self)

    def to_json(self) -> dict[str, object]:
        """The record of a committed load."""
        kept = {name: getattr(self, name) for name in KEPT}
        return kept | {"rejects": [list(reject) for reject in self.rejects]} if self.rejects else kept

    @classmethod
    def from_json(cls, found: Mapping[str, Any], epoch: int) -> Load:
        """The inverse of ``to_json``, for a load committed at this epoch."""
        values: dict[str, Any] = {name: found[name] for name in KEPT if name in found}  # older records lack "rejected"
        rejects = [Reject(*reject) for reject in found.get("rejects", ())]
        return cls(**values, rejects=rejects, backend=0, state=LoadState.COMMITTED, epoch=epoch)


@dataclass(slots=True)
class _OfTable:
    """A table's committed loads. ``unnamed``: those without a LOAD_ID whose rejects are not kept; these and
    ``rejecting`` are oldest first."""

    known: dict[str, Load] = field(default_factory=dict)
    unnamed: deque[Load] = field(default_factory=deque)
    rejecting: deque[Load] = field(default_factory=deque)

    def add(self, load: Load) -> list[Load]:
        """Add a load; the loads whose record shrinks as a result."""
        self.known[load.id] = load
        less = []
        if load.rejects:
            self.rejecting.append(load)
            if len(self.rejecting) <= REJECTS_KEPT:
                return []
            load = self.rejecting.popleft()
            load.rejects = ()
            less.append(load)
        if not load.named:
            self.unnamed.append(load)
            if len(self.unnamed) > FORGOTTEN_AFTER:
                less.append(self.unnamed.popleft())
                del self.known[less[-1].id]
        return less


class Loads:
    """All loads known to the server. Committed ones change on the engine's thread, the others on the event loop."""

    def __init__(self) -> None:
        self._committed: dict[int, _OfTable] = {}
        self._commits: dict[int, list[Load]] = {}
        """The known committed loads, by the epoch of their commit."""
        self._changed: set[int] = set()
        self._running: dict[tuple[int | str, str], Load] = {}
        self._ended: deque[Load] = deque(maxlen=FORGOTTEN_AFTER)

    def restore(self, texts: Mapping[int, str], relations: Container[int]) -> None:
        """Restore the loads in the store and the log (texts by the epochs of their commits), for the existing
        tables."""
        for epoch in sorted(texts):
            found = [Load.from_json(load, epoch) for load in json.loads(texts[epoch])]
            if any(load.relation not in relations for load in found):
                self._changed.add(epoch)
            self._remember([load for load in found if load.relation in relations], epoch)

    def committed(self, relation: int, id_: str) -> Load | None:
        """A table's committed load of this id. If asked in a job of the engine's thread, it is durable when that job
        ends."""
        of_table = self._committed.get(relation)
        return None if of_table is None else of_table.known.get(id_)

    def commit(self, loads: Iterable[Load], epoch: int) -> None:
        """Record loads as part of the commit of this epoch."""
        for load in loads:
            load.epoch, load.state = epoch, LoadState.COMMITTED
        self._remember(list(loads), epoch)

    def _remember(self, loads: list[Load], epoch: int) -> None:
        if loads:
            self._commits[epoch] = loads
        for load in loads:
            for less in self._committed.setdefault(load.relation, _OfTable()).add(load):
                self._changed.add(less.epoch or 0)

    def keep(self, relations: Container[int]) -> None:
        """Forget the loads of tables other than these."""
        for relation in [relation for relation in self._committed if relation not in relations]:
            self._changed |= {load.epoch or 0 for load in self._committed.pop(relation).known.values()}

    def changed(self) -> dict[int, str | None]:
        """The records of earlier commits' loads that have shrunk since the last call, by epoch, for the store; None: no
        loads left."""
        found: dict[int, str | None] = {}
        for epoch in self._changed:
            known = [load for load in self._commits.get(epoch, ()) if self.committed(load.relation, load.id) is load]
            found[epoch] = loads_text(known)
            if not known:
                self._commits.pop(epoch, None)
        self._changed.clear()
        return found

    @contextmanager
    def run(self, load: Load) -> Iterator[None]:
        """Register a load while it runs. 55006: a load of this id runs already."""
        key = load.relation or load.table, load.id
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
                load.finished = timestamp_now()
                self._ended.append(load)

    def all(self) -> list[Load]:
        """Committed, failed and running loads, by start time."""
        committed = [load for of_table in list(self._committed.values()) for load in list(of_table.known.values())]
        found = {id(load): load for load in (*committed, *self._ended, *self._running.values())}
        return sorted(found.values(), key=lambda load: (load.started, load.id))


def loads_text(loads: Sequence[Load]) -> str | None:
    """The loads' text in a commit's record; None if there are none."""
    if not loads:
        return None
    found = [load.to_json() for load in loads]
    return json.dumps(found, ensure_ascii=False) if found else None
