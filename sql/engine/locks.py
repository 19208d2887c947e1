"""The matches that views' joins with PROCTIME() have fixed, written to the store as relations of its own and read
back."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

import numpy as np

from ivm.dataflow import Changes, Dataflow
from ivm.graph import NodeId
from ivm.rows import Words
from ivm.runtime.root import Root
from planner import gathers
from planner.render.dataflow import Renderer
from sql.catalog.catalog import Relation
from storage.stored import StoredRelation

LockedRows = Callable[[int], tuple[Words, Words]]
"""(rows, diffs) by name."""


class Locks:
    """The Outputs of these matches, by the names (relation ids) that the views' relations list."""

    def __init__(self, dataflow: Dataflow, renderer: Renderer) -> None:
        self._dataflow = dataflow
        self._renderer = renderer
        self._outputs: dict[int, tuple[int, NodeId]] = {}
        self._held: dict[int, tuple[Words, Words]] = {}
        """The matches of views that are down, until they are rebuilt."""

    def __contains__(self, name: int) -> bool:
        return name in self._outputs

    def add(self, view: int) -> None:
        """Add an installed view."""
        kept = self._renderer.stored[view].locks
        self._outputs.update((name, (view, lock.output)) for name, lock in kept.items())

    def forget(self, view: int) -> None:
        """Forget a view that is about to be dropped."""
        for name in self._renderer.stored[view].locks:
            del self._outputs[name]

    def changes(self, without: Container[int] = ()) -> list[tuple[int, int, Changes]]:
        """(name, view, the matches added and retracted since the last call), except those of some views."""
        if not self._outputs:
            return []
        wanted = ((name, view, output) for name, (view, output) in self._outputs.items() if view not in without)
        drained = [(name, view, self._dataflow.changes(output)) for name, view, output in wanted]
        return [found for found in drained if len(found[2].rows)]

    def created(self, before: Mapping[int, Relation], after: Mapping[int, Relation]) -> tuple[StoredRelation, ...]:
        """The store's relations for new views."""
        stored = self._renderer.stored
        fresh = [i for i, view in after.items() if view.locks and i not in before and i in stored]
        for i in fresh:
            self.back(after[i])
        kept = [item for i in fresh for item in self._renderer.stored[i].locks.items()]
        return tuple(StoredRelation(name, lock.schema, f"lock {name}") for name, lock in kept)

    def drain(self, view: Relation) -> None:
        """Drop the changes of a rebuilt view, whose matches the store has."""
        self.back(view)
        for lock in self._renderer.stored[view.id].locks.values():
            self._dataflow.changes(lock.output)

    def hold(self, view: Relation, root: Root, at: int) -> None:
        """Remember the matches of a view's joins at an ordinal, before the view is rebuilt."""
        stored = self._renderer.stored.get(view.id)
        for name, lock in ({} if stored is None else stored.locks).items():
            if name not in self._held and lock.output in root:
                self._held[name] = root[lock.output].rows_at(at)

    def hold_stored(self, view: Relation, rows: LockedRows) -> None:
        """Remember the store's matches for a view that has been down since the start."""
        self._held.update((name, rows(name)) for name in view.locks)

    def load_held(self, view: Relation) -> bool:
        """Load a rebuilt view's matches; whether it has such joins. They are kept until ``back``, because the view may
        fail again."""
        locks = self._renderer.stored[view.id].locks
        for name, lock in locks.items():
            none = np.zeros((0, gathers.width(lock.schema)), np.int64), np.zeros(0, np.int64)
            rows, diffs = self._held.get(name, none)
            self._dataflow.load(lock.node, gathers.apply(lock.back, rows)[0], diffs)
        return bool(locks)

    def back(self, view: Relation) -> None:
        """A view has been rebuilt."""
        for name in view.locks:
            self._held.pop(name, None)

    def load(self, view: Relation, rows: LockedRows) -> None:
        """Load the matches of a view that was installed waiting for them; visible after the next step."""
        for name, lock in self._renderer.stored[view.id].locks.items():
            held, diffs = rows(name)
            self._dataflow.load(lock.node, gathers.apply(lock.back, held)[0], diffs)
