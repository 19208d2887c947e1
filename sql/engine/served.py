"""The server's copy of a view that Spark maintains: its rows at the commits that caused them, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ivm import contents
from ivm.dataflow import Dataflow
from ivm.graph import Input, NodeId, Output
from ivm.rows import Words
from ivm.trace.batch import Block
from ivm.trace.trace import Version
from planner.physical.layouts import StoredKey
from sql.engine.snapshot import HistorySnapshot, MemorySnapshot
from sql.engine.timeline import Timeline
from storage.dictionary import Dictionary


@dataclass(frozen=True, slots=True)
class Served:
    """A view's rows and error rows (None: no row can fail), at every commit up to ordinal ``upper``."""

    rows: Version
    errors: Version | None
    upper: int

    @property
    def since(self) -> int:
        """The oldest ordinal that it distinguishes from older ones."""
        return self.rows.since


class ServedContents:
    """A small dataflow that only keeps what it is fed, at the engine's own ordinals. Not thread-safe."""

    def __init__(self, dictionary: Dictionary, width: int, fails: bool) -> None:
        self._flow = Dataflow(dictionary.arena)
        self._dictionary = dictionary
        self._inputs: list[NodeId] = []
        self._outputs: list[NodeId] = []
        self._upper = 0
        for size in (width, *((1,) if fails else ())):
            self._inputs.append(self._flow.add(Input(size)))
            self._outputs.append(self._flow.add(Output(self._inputs[-1])))
        self._flow.hydrate()

    def add(self, blocks: list[Block], ordinals: Words, upper: int, keep: int) -> Served:
        """Add a job's blocks. ``ordinals`` maps their times to ordinals; the contents are then complete up to
        ``upper``. Ordinals up to ``keep`` are no longer distinguished."""
        self._flow.allow_compaction(min(keep, self._upper))
        self._upper = max(upper, self._upper)
        for node, block in zip(self._inputs, blocks, strict=True):
            rows, times, diffs = block.arrays()
            if self._dictionary.guarded:
                self._dictionary.see(rows)
            order = np.argsort(times, kind="stable")
            self._flow.feed(node, rows[order], ordinals[times[order]], diffs[order, 0])
        self._flow.step()
        for node in self._outputs:
            self._flow.changes(node)
        root = self._flow.publish()
        found = [root[node] for node in self._outputs]
        return Served(found[0], found[1] if len(found) > 1 else None, self._upper)

    def words(self) -> list[Words]:
        """The words that a sweep of the dictionary must keep."""
        return contents.words(self._flow)

    @property
    def upper(self) -> int:
        """The ordinal up to which the contents are complete."""
        return self._upper

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self._flow.nbytes

    def dispose(self) -> None:
        """Free everything."""
        contents.dispose(self._flow)


def ordinals_of(timeline: Timeline, epochs: Words, least: int) -> Words:
    """The ordinals of times 0, 1, …: ``least`` for 0 and for epochs that are older than the engine distinguishes,
    otherwise that of ``epochs[time - 1]``."""
    found = [timeline.ordinal(epoch) for epoch in epochs.tolist()]
    return np.maximum(np.array([least, *(least if o is None else o for o in found)], np.int64), least)


@dataclass(frozen=True, slots=True)
class ServedSnapshot(MemorySnapshot):
    """A snapshot that includes views maintained by Spark."""

    served: Mapping[int, Served] = field(default_factory=dict)

    def version(self, relation: int) -> Version | None:
        found = self.served.get(relation)
        return MemorySnapshot.version(self, relation) if found is None else found.rows

    def arrangement(self, relation: int, key: StoredKey) -> Version | None:
        found = self.served.get(relation)
        if found is None:
            return MemorySnapshot.arrangement(self, relation, key)
        return None if key else found.rows

    def keys(self, relation: int) -> tuple[tuple[int, ...], ...]:
        return ((),) if relation in self.served else MemorySnapshot.keys(self, relation)

    def errors(self, relation: int) -> tuple[Words, Words] | None:
        found = self.served.get(relation)
        if found is None:
            return MemorySnapshot.errors(self, relation)
        return None if found.errors is None or self.ignore_errors else found.errors.rows_at(self.at)


@dataclass(frozen=True, slots=True)
class ServedHistory(HistorySnapshot):
    """The store's history, with views maintained by Spark as of the ordinal ``by``, which memory still
    distinguishes."""

    served: Mapping[int, Served] = field(default_factory=dict)
    by: int = 0

    def rows(self, relation: int) -> tuple[Words, Words] | None:
        found = self.served.get(relation)
        return HistorySnapshot.rows(self, relation) if found is None else found.rows.rows_at(self.by)
