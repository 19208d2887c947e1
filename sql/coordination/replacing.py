"""CREATE OR REPLACE MATERIALIZED VIEW beside the engine: what reads the view stays, and gets only the difference.

The new definition is hydrated as that of a new view is, together with the difference between its rows and the old
one's, which another thread computes and keeps up to date. In one job of the engine thread, at one epoch, the view's
readers then get that difference and read the new definition from there on (``planner.render.switching``). The view
keeps its id, so its history and its readers' go on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ivm.graph import NodeId
from ivm.hydration.detached import NotDetachableError
from ivm.rows import Words
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from planner.distributed.hydration_choice import Choice, Hydrate
from planner.physical.nodes import Plan
from planner.render.dataflow import Renderer
from planner.render.switching import Definition, Difference, define, read_by_views, switchable
from sql.catalog.catalog import Relation, RelationKind
from sql.coordination.hydration import Creation
from sql.coordination.prepared import StaleError
from sql.engine.writer import Writer
from storage.stored import History, errors_of


@dataclass(slots=True)
class Replacement(Creation):
    """One view whose definition is being exchanged. ``before``: the view as it was when this began."""

    _before: Relation | None = None
    _made: Definition | None = None

    def _fits(self, view: Relation) -> bool:
        engine = self.engine
        before = self._before = engine.catalog.relations.get(view.id)
        if before is None:
            return True
        same = before.kind is RelationKind.MATERIALIZED_VIEW and before.schema == view.schema
        if not same or view.locks or before.parts or self.statement.hydrate is Hydrate.SPARK:
            return False
        return self._is_switchable(view)

    def _is_switchable(self, view: Relation) -> bool:
        engine = self.engine
        over = engine.catalog.dependents([view.id])
        if any(r.id in engine.failures or r.locks for r in (view, *over)):
            return False
        return switchable(engine.renderer, view.id)

    @property
    def replaces(self) -> bool:
        return self._before is not None

    def plan(self) -> None:
        Creation.plan(self)
        if self._before is not None:
            self.choice = Choice(Hydrate.LOCAL, "the engine compares it with what the view has")

    def _make(self, renderer: Renderer, plan: Plan, view: int) -> None:
        if self._before is None:
            Creation._make(self, renderer, plan, view)
            return
        self._made = define(renderer, self.engine.renderer, plan, view)
        if self._made is None or not self._may_fail(self._made):
            raise NotDetachableError

    def _may_fail(self, made: Definition) -> bool:
        """Whether the readers can be told of errors, if the new definition may have some."""
        assert self._before is not None
        renderer, view = self.engine.renderer, self._before.id
        return made.failing is None or renderer.errors(view) is not None or not read_by_views(renderer, view)

    def _outputs(self) -> list[tuple[int, NodeId]]:
        if self._made is None:
            return Creation._outputs(self)
        assert self._before is not None
        view, errors = self._before.id, self._made.error_difference
        return [(view, self._made.difference), *([] if errors is None else [(errors_of(view), errors)])]

    def check_current(self) -> None:
        Creation.check_current(self)
        if self._before is not None and self.engine.catalog.relations.get(self._before.id) is not self._before:
            raise StaleError

    def finish(self) -> None:
        if self._made is None or self._before is None:
            Creation.finish(self)
            return
        engine, flow, view = self.engine, self._caught_up(), self._view
        assert view is not None
        assert self._renderer is not None
        if not self._is_switchable(view) or not self._may_fail(self._made):
            raise StaleError
        flow.attach()
        writer = Writer.begin(engine)
        engine.switch(self._renderer, view.id, self._made, self._difference(view), writer.ordinal)
        writer.redefine(replace(view, indexes=self._before.indexes, first_id=self._before.first_id))
        writer.commit()
        engine.failing.let_go()

    def _difference(self, view: Relation) -> Difference:
        found = self._histories(0)
        return Difference(*_added_up(found.get(view.id)), *_added_up(found.get(errors_of(view.id))))


def _added_up(changes: History | None) -> tuple[Words, Words]:
    """The sum of changes, as rows and their diffs."""
    if changes is None:
        return np.zeros((0, 0), np.int64), np.zeros(0, np.int64)
    rows, times, diffs = changes
    rows, _, summed = sorted_block(Block.of(rows, times, diffs.reshape(-1, 1))).arrays()
    return rows, summed[:, 0]
