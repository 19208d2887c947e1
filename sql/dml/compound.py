"""Data-modifying statements in WITH, and statements with subqueries in ON CONFLICT or RETURNING.

All parts read one snapshot, taken before the first part; each part runs once.

The parts run in the order in which they are written, the main statement last; RETURNING's rows are a relation for the
later parts. The changes of earlier parts are not visible, so a part skips a row that an earlier part has removed, as
Postgres does ("only one of the modifications takes place").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ivm.distinct import distinct_rows
from ivm.rows import RowSet, Words, pack
from ivm.trace.trace import LATEST
from planner import gathers
from planner.expr.context import Bounds, Context
from planner.logical.nodes import Rel
from planner.logical.traversal import gets
from planner.lower.plan import lower
from planner.peek.order_limit import finish
from planner.peek.run import run
from planner.physical.layouts import table_layout
from planner.transform.pipeline import optimize
from sql.dml.changes import Changed, Changer
from sql.dml.family import shares
from sql.dml.fast_insert import constant_source
from sql.dml.merging import changed_rows, merge, twice
from sql.dml.row_values import ROWS, over_snapshot
from sql.engine.snapshot import GivenSnapshot, MemorySnapshot, StoredIndexes, restore
from sql.statements.queries import Query
from sql.statements.statements import Compound, DataChange, Delete, Insert, Merge, Update


@dataclass(slots=True)
class CompoundRun:
    """One execution. ``base``: the snapshot. ``given``: RETURNING's rows and diffs, by the part's number. ``read``: is
    told what each query reads."""

    changer: Changer
    base: MemorySnapshot
    context: Context
    bounds: Bounds
    read: Callable[[frozenset[int]], None]
    given: dict[int, tuple[Words, Words]] = field(default_factory=dict)
    changed: bool = False
    """Whether an earlier part has run."""

    def run(self, statement: Compound) -> Changed:
        """Run all parts; the rows and count of the main statement."""
        for number, part in statement.parts:
            changed = self._change(part)
            self.changed = True
            if changed.returning is not None:
                found = changed.returning.rows
                once = distinct_rows(found)
                self.given[number] = once.rows, once.counts
        main = statement.main
        if isinstance(main, Query):
            rows_ = finish(self._rows(main.rel), main.finishing, self.context)
            return Changed(len(rows_), rows_)
        return self._change(main)

    def __post_init__(self) -> None:
        self.changer.values = over_snapshot(self.context, self._given_rows)

    def _given_rows(self, rel: Rel, rows: Words) -> RowSet:
        self.given[ROWS] = rows, np.ones(len(rows), np.int64)
        return self._rows(rel)

    def _rows(self, rel: Rel) -> RowSet:
        published = self.base.published
        self.read(frozenset(relation for relation in gets(rel) if relation >= 0))
        for relation in sorted(gets(rel)):
            if relation in published.failures:
                raise published.failures[relation]
        plan = lower(optimize(rel), StoredIndexes(published, one_shot=True))
        plan = replace(plan, limits=())  # all parts must see the same rows of a LIMIT that they share
        snapshot = GivenSnapshot(published, self.base.at, self.base.system, self.base.ignore_errors, self.given)
        return run(plan, snapshot, self.context, self.bounds)

    def _change(self, part: DataChange) -> Changed:
        source = constant_source(part.source, self.context) if isinstance(part, Insert) else None
        if source is None:
            source = self._rows(part.source)
        match part:
            case Insert():
                if part.finishing is not None:
                    source = finish(source, part.finishing, self.context)
                return self.changer.insert(part, source)
            case Update():
                return self.changer.update(part, self._left(part, source))
            case Delete():
                return self.changer.delete(part, self._left(part, source))
            case Merge():
                source = finish(source, part.finishing, self.context)
                delete, old = changed_rows(part, source)
                if len(self._left(delete, old)) < len(old):
                    raise twice()
                return merge(self.changer, part, source)

    def _left(self, part: Update | Delete, source: RowSet) -> RowSet:
        """The source without the rows that an earlier part or a foreign key has removed."""
        table = part.table
        if part.branches and self.changed and len(source):
            kept = np.zeros(len(source), np.bool_)
            for share in shares(part, source):
                there = self._present(share.branch.table.id, share.old)
                kept[share.places] = [row.tobytes() in there for row in share.old]
            return RowSet(source.rows[kept], source.schema)
        if self.changed and len(source):
            old = pack(source.columns()[: len(table.columns)], table.schema, len(source))
            present = self._present(table.id, old)
            kept = np.array([row.tobytes() in present for row in old], np.bool_)
            source = RowSet(source.rows[kept], source.schema)
        return source

    def _present(self, table: int, rows: Words) -> set[bytes]:
        """Those of the rows that the table has at present. Cost: O(rows · log state), and a step."""
        writer = self.changer.writer
        writer.settle()
        version, stored = writer.engine.arrangement(table), writer.engine.stored()[table]
        arranged, _ = gathers.apply(table_layout(stored.schema, stored.primary_key).gather, rows)
        keys = distinct_rows(arranged[:, : version.key_width]).rows
        found, diffs, _ = version.lookup(keys, LATEST)
        return {row.tobytes() for row in restore(stored, np.ascontiguousarray(found[diffs > 0]))}
