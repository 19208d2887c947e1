"""What views' joins with PROCTIME() have found, on its way to the store and back: relations of the store alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ivm.dataflow import Changes, Dataflow
from ivm.graph import NodeId
from ivm.rows import Words
from ivm.runtime.root import Root
from planner import gathers
from planner.render.dataflow import Renderer
from sql.catalog.catalog import Relation
from storage.stored import StoredRelation

Rows = Callable[[int], tuple[Words, Words]]
"""(rows, diffs) by name."""


class Locks:
    """The Outputs of what is kept, by the names that the views' relations give."""

    def __init__(self, dataflow: Dataflow, renderer: Renderer) -> None:
        self._dataflow = dataflow
        self._renderer = renderer
        self._outputs: dict[int, tuple[int, NodeId]] = {}
        self._held: dict[int, tuple[Words, Words]] = {}
        """What views that are down had found, until they are back."""

    def __contains__(self, name: int) -> bool:
        return name in self._outputs

    def add(self, view: int) -> None:
        """A view that was installed."""
        kept = self._renderer.stored[view].locks
        self._outputs.update((name, (view, lock.output)) for name, lock in kept.items())

    def forget(self, view: int) -> None:
        """A view that is to be dropped."""
        for name in self._renderer.stored[view].locks:
            del self._outputs[name]

    def changes(self) -> list[tuple[int, int, Changes]]:
        """(name, view, what has been found and taken back since the last call)."""
        drained = [(name, view, self._dataflow.changes(output)) for name, (view, output) in self._outputs.items()]
        return [found for found in drained if len(found[2].rows)]

    def created(self, before: Mapping[int, Relation], after: Mapping[int, Relation]) -> tuple[StoredRelation, ...]:
        """What is to be stored for the views that are new."""
        stored = self._renderer.stored
        fresh = [i for i, view in after.items() if view.locks and i not in before and i in stored]
        for i in fresh:
            self.back(after[i])
        kept = [item for i in fresh for item in self._renderer.stored[i].locks.items()]
        return tuple(StoredRelation(name, lock.schema, f"lock {name}") for name, lock in kept)

    def drain(self, view: Relation) -> None:
        """A view stands again, as the store has it."""
        self.back(view)
        for lock in self._renderer.stored[view.id].locks.values():
            self._dataflow.changes(lock.output)

    def hold(self, view: Relation, root: Root, at: int) -> None:
        """Remembers what a view's joins had found at an ordinal, before it is made anew."""
        stored = self._renderer.stored.get(view.id)
        for name, lock in ({} if stored is None else stored.locks).items():
            if name not in self._held and lock.output in root:
                self._held[name] = root[lock.output].rows_at(at)

    def hold_stored(self, view: Relation, rows: Rows) -> None:
        """Remembers what the store has of a view that is down from the start."""
        self._held.update((name, rows(name)) for name in view.locks)

    def load_held(self, view: Relation) -> bool:
        """Gives a view that was made anew what it had found; whether it has such joins. That is kept until ``back``:
        the view may fail again."""
        locks = self._renderer.stored[view.id].locks
        for name, lock in locks.items():
            none = np.zeros((0, gathers.width(lock.schema)), np.int64), np.zeros(0, np.int64)
            rows, diffs = self._held.get(name, none)
            self._dataflow.load(lock.node, gathers.apply(lock.back, rows)[0], diffs)
        return bool(locks)

    def back(self, view: Relation) -> None:
        """A view stands again."""
        for name in view.locks:
            self._held.pop(name, None)

    def load(self, view: Relation, rows: Rows) -> None:
        """What a view's joins have found, which was installed waiting for it; seen after the next step."""
        for name, lock in self._renderer.stored[view.id].locks.items():
            held, diffs = rows(name)
            self._dataflow.load(lock.node, gathers.apply(lock.back, held)[0], diffs)
