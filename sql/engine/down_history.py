"""What the store is told of views that are down, so that AS OF an epoch at which they were fails as reading them did.

Its own error row (``encode_failure``) stands in a view's error rows for as long as the view is down. The view's rows
stay as they were before; when it is back they are replaced by its contents of that moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ivm.errors import SqlError
from ivm.graph import NodeId
from ivm.rows import Words
from planner.expr.row_errors import encode_failure, failure_among
from sql.catalog.catalog import RelationKind
from sql.engine.lagging import Lagging
from sql.engine.state import EngineState
from storage.duck import Store
from storage.stored import History, StoredRelation, errors_of

_NO_ROW: Final = 0
"""In place of an error row's id."""


@dataclass(slots=True)
class DownHistory:
    """Part of the next batch for the store.

    ``down``: the views that the store takes to be down, each with the id of its error row and the epoch of that.
    Invariant: their changes do not enter the store until they are back.
    """

    engine: EngineState
    down: dict[int, tuple[int, int]] = field(default_factory=dict)
    changes: dict[int, History] = field(default_factory=dict)
    emptied: list[tuple[int, int]] = field(default_factory=list)
    created: tuple[StoredRelation, ...] = ()
    returned: dict[int, Mapping[int, History]] = field(default_factory=dict)
    """By view that is back: its contents, and those of its error rows, where they were made beside the engine."""
    lagging: Lagging = field(init=False)

    def __post_init__(self) -> None:
        self.lagging = Lagging(self.engine)

    def restore(self, store: Store) -> dict[int, SqlError]:
        """The views that were down at the store's high water, each with the error of reading it."""
        engine, found = self.engine, {}
        for view in engine.catalog.relations.values():
            if view.kind is not RelationKind.MATERIALIZED_VIEW or errors_of(view.id) not in store.relations():
                continue
            ids = store.errors(view.id, store.high_water())
            for word, text in zip(ids.tolist(), engine.dictionary.lookup(ids), strict=True):
                failure = failure_among([text])
                if failure is not None:
                    found[view.id], self.down[view.id] = failure, (word, 0)
        return found

    @property
    def differs(self) -> bool:
        """Whether a view went down or came back that the store does not know of. Cost: the number of views down."""
        return self._failed() != {view: word for view, (word, _) in self.down.items()}

    def went_down(self, epoch: int) -> None:
        """Note the views that are down, or down for another reason, at an epoch."""
        known = self.engine.catalog.relations
        for view, word in self._failed().items():
            before = self.down.get(view)
            if before is None or before[0] != word:
                at = max(epoch, known[view].created)
                self._replace(errors_of(view), at, np.array([[word]], np.int64))
                self.down[view] = word, at

    def give_up(self, view: int) -> None:
        """A view that lagged counts as one that has been down since the store had it."""
        upto = self.lagging.end(view)
        if upto is None:
            return
        epoch = max(upto + 1, self.engine.catalog.relations[view].created)
        word = self._failed()[view]
        self._replace(errors_of(view), epoch, np.array([[word]], np.int64))
        self.down[view] = word, epoch

    def came_back(self, epoch: int) -> None:
        """Note the views that are down no more, with their present contents."""
        engine = self.engine
        for view in self.down.keys() - engine.failures.keys():
            del self.down[view]
            contents = self.returned.pop(view, {})
            if view not in engine.outputs or view not in engine.catalog.relations:
                continue
            self._replace_by(view, epoch, engine.outputs[view], contents.get(view))
            self._replace_by(errors_of(view), epoch, engine.error_outputs.get(view), contents.get(errors_of(view)))
            known = engine.catalog.relations[view]
            self.created += engine.locks.created({}, {view: known})
            for name, lock in engine.renderer.stored[view].locks.items():
                self._replace_by(name, epoch, lock.output)

    def renew(self, view: int) -> None:
        """What the store has of a view is to be replaced by its contents after the next group, if it is up then."""
        self.down[view] = _NO_ROW, 0

    def filled(self, view: int, epoch: int) -> None:
        """A view that was down has been filled beside the engine; its contents come as those of a new view."""
        if self.down.pop(view, None) is not None:
            self.emptied.append((errors_of(view), epoch))

    def take(self) -> tuple[dict[int, History], tuple[tuple[int, int], ...], tuple[StoredRelation, ...]]:
        """What was noted since the last call: changes, ``WriteBatch.emptied`` and relations to create anew."""
        taken = self.changes, tuple(self.emptied), self.created
        self.changes, self.emptied, self.created = {}, [], ()
        return taken

    def _failed(self) -> dict[int, int]:
        """The ids of the error rows of the views that are down, as far as the store is to know that."""
        engine = self.engine
        lagging = self.lagging.upto
        failures = {i: e for i, e in engine.failures.items() if i in engine.catalog.relations and i not in lagging}
        if not failures:
            return {}
        ids = engine.dictionary.intern([encode_failure(error) for error in failures.values()])
        return dict(zip(failures, ids.tolist(), strict=True))

    def _replace_by(self, relation: int, epoch: int, output: NodeId | None, first: History | None = None) -> None:
        rows, diffs = np.zeros((0, 1), np.int64), np.zeros(0, np.int64)
        if output is not None:
            rows, _, diffs = self.engine.dataflow.changes(output)
        if first is not None:
            rows = np.concatenate([first.rows, rows]) if len(rows) else first.rows
            diffs = np.concatenate([first.diffs, diffs])
        self._replace(relation, epoch, rows, diffs)

    def _replace(self, relation: int, epoch: int, rows: Words, diffs: Words | None = None) -> None:
        """Replace what a relation has by these rows. Those that it got at the same epoch are not known to the store
        yet."""
        if (relation, epoch) not in self.emptied:  # once: what it had is retracted
            self.emptied.append((relation, epoch))
        earlier = self.changes.pop(relation, None)
        diffs = np.ones(len(rows), np.int64) if diffs is None else diffs
        found = History(rows, np.full(len(rows), epoch, np.int64), diffs)
        if earlier is not None and len(earlier.epochs) and earlier.epochs[-1] < epoch:
            found = History(*(np.concatenate(pair) for pair in zip(earlier, found, strict=True)))
        if len(found.diffs):
            self.changes[relation] = found
