"""CREATE INDEX beside the engine: commits go on while the index's arrangement is made.

As for a view (``hydration.py``): the new nodes are in a small dataflow that catches up with the commits. Duplicate keys
are looked for on the same thread; the last job of the engine looks only at what has changed since.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ivm.graph import NodeId
from ivm.hydration.detached import Detached, NotDetachableError, detach
from ivm.trace.trace import LATEST, Version
from planner.physical.key_checks import KeyCheck
from planner.render.dataflow import Renderer
from sql.bind.index_keys import key_check_of
from sql.catalog.catalog import Relation
from sql.catalog.keys import Index
from sql.coordination.filling import Filling
from sql.coordination.prepared import Prepared, StaleError
from sql.ddl.indexes import check_changed, check_filled, with_name
from sql.engine.snapshot import Published
from sql.engine.writer import Writer
from sql.statements.definitions import CreateIndex
from sql.statements.results import Notify


@dataclass(slots=True, kw_only=True)
class IndexFilling(Filling):
    """One index. ``allowed``: raises the errors of rights."""

    statement: CreateIndex
    prepared: Prepared
    allowed: Callable[[Writer], object]
    notify: Notify
    _index: Index | None = None
    _nodes: tuple[NodeId, ...] = ()
    _checked: Published | None = None
    """The rows that have been looked at."""

    @property
    def table(self) -> Relation:
        return self.statement.table

    @property
    def _key_check(self) -> KeyCheck:
        assert self._index is not None
        return key_check_of(self.table, self._index)

    def describe(self) -> bool:
        """Check the definition. False: there is nothing to be filled, or only the engine itself can."""
        engine, table = self.engine, self.table
        engine.flush()
        writer = Writer.begin(engine)
        self.check_current()
        self.allowed(writer)
        index = self.statement.index
        if table.parts or table.partitioning is not None or not (index.unique or index.arranged):
            return False
        if table.id not in engine.renderer.stored or table.id in engine.failures:
            return False
        self._index = with_name(writer, self.statement, lambda _: None)
        return self._index is not None

    def check_current(self) -> None:
        self.prepared.check_current(self.engine.catalog)
        if self.engine.catalog.relations.get(self.table.id) is not self.table:
            raise StaleError

    def plan(self) -> None:
        self._check(self.engine.published)

    def _check(self, published: Published) -> None:
        """Look at all rows. Raises 23505, and the errors of the index's expressions."""
        assert self._index is not None
        check_filled(published, self.table, self._index, self.engine.context)
        self._checked = published

    def begin(self) -> bool:
        engine, table = self.engine, self.table
        engine.flush()
        engine.settle()
        self.check_current()
        if engine.renderer.has_key_check(table.id, self._key_check):
            return True  # another index has it: only the rows are to be looked at

        def make(flow: Detached) -> Renderer:
            renderer = engine.renderer.beside(flow)
            self._nodes = renderer.add_key_check_beside(table.id, self._key_check)
            return renderer

        try:
            self._flow, self._renderer = detach(engine.dataflow, make, self.cancel)
        except NotDetachableError:
            return False
        return True

    def _catch_up(self) -> None:
        if self._flow is not None:
            self._flow.run()

    def advance(self) -> int:
        return 0 if self._flow is None else super(IndexFilling, self).advance()

    def run(self) -> None:
        assert self._checked is not None
        self._catch_up()
        published = self.engine.published
        if self.engine.recent.rows_since(self.table.id, self._checked.ordinal) is None:
            self._check(published)

    def finish(self) -> None:
        """Raises BlockedError before anything has changed."""
        engine, table, index = self.engine, self.table, self._index
        assert index is not None
        assert self._checked is not None
        engine.flush()
        writer = Writer.begin(engine)
        writer.lock_whole(table)
        if engine.renderer.has_key_check(table.id, self._key_check) is not (self._flow is None):
            raise StaleError  # another index with the same arrangement has come or gone
        flow = None if self._flow is None else self._caught_up()
        if with_name(writer, self.statement, self.notify) is None:
            self.abandon()
            return
        changed = engine.recent.rows_since(table.id, self._checked.ordinal)
        if changed is None:
            self._check(engine.published)
        elif len(changed):
            check_changed(self._arrangement(flow), changed, table, index, engine.context)
        if flow is not None:
            flow.attach()
            assert self._renderer is not None
            engine.adopt_index(self._renderer, table.id, self._key_check, self._nodes)
        writer.alter(replace(table, indexes=(*table.indexes, index)))
        writer.commit()

    def _arrangement(self, flow: Detached | None) -> Version:
        if flow is None:
            self.engine.settle()
            return self.engine.key_arrangement(self.table.id, self._key_check)
        spine = flow.operator(self._nodes[-1]).spine
        assert spine is not None, "an arrangement"
        return Version(spine, LATEST)
