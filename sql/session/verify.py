"""VERIFY MATERIALIZED VIEW: recomputes a view from its inputs, at one epoch, beside the running server."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ivm.distinct import distinct_rows
from ivm.errors import SqlError
from ivm.kernels.codes import MARKER
from ivm.rows import RowSet, Vector, Words, pack, unpack
from ivm.words import INT8, ColumnType, Schema
from planner.expr.context import Bounds, Context
from planner.logical.locked_joins import kept_schema, locks_in, nullable, reading
from planner.logical.nodes import Locked, Rel, schema
from planner.lower.plan import lower
from planner.peek.run import run
from planner.transform.pipeline import optimize
from sql.catalog.catalog import Relation
from sql.engine.definition import definition_rel
from sql.engine.snapshot import GivenSnapshot, HistorySnapshot, MemorySnapshot, Published, StoredIndexes

AnySnapshot = MemorySnapshot | HistorySnapshot
Counted = tuple[Words, Words]
"""Rows and their diffs."""


@dataclass(frozen=True, slots=True)
class _Recompute:
    """Runs plans over a snapshot."""

    published: Published
    snapshot: AnySnapshot
    context: Context
    bounds: Bounds

    def rows(self, rel: Rel, row: Schema) -> Words:
        """An optimized plan's rows in a layout."""
        plan = lower(rel, StoredIndexes(self.published, one_shot=True))
        plan = replace(plan, limits=())  # a view's LIMIT takes the least rows of all, not the first ones found
        computed = run(plan, self.snapshot, self.context, self.bounds)
        return pack(computed.columns(), row, len(computed))


def verify(
    view: Relation, held: Counted, snapshot: AnySnapshot, published: Published, context: Context, bounds: Bounds
) -> RowSet:  # fmt: skip
    """The rows that differ, with ``diff``: how many more (or fewer) copies of a row the view has than a recompute over
    the snapshot. ``held``: the view's rows and their diffs at that moment.

    The matches that the view's joins with PROCTIME() have fixed are primary data: the recompute reads them, after a
    check that they belong to exactly the rows that these joins read (XX001).
    """
    rel = optimize(definition_rel(view, published.catalog))
    found = _found(view, published)
    recompute = _Recompute(published, _given(snapshot, found), context, bounds)
    if found:
        rel = reading(rel)
        for lock in locks_in(rel):
            _check_found(view, lock, found[lock.found], recompute)
    return differing(view, held, _once(recompute.rows(rel, view.schema)))


def differing(view: Relation, held: Counted, expected: Counted) -> RowSet:
    """The rows whose counts differ, with ``diff``: the view's count minus the expected one."""
    rows, diffs = _difference(held, expected)
    result = (*view.schema, ColumnType(INT8, False))
    return RowSet(pack([*unpack(rows, view.schema), Vector(diffs)], result, len(rows)), result)


def _found(view: Relation, published: Published) -> dict[int, Counted]:
    """The matches kept by the view's joins with PROCTIME(): (rows of ``kept_schema``, diffs) by the relation read."""
    stored = published.stored.get(view.id)
    kept = {} if stored is None else stored.locks
    return {-name: published.root[lock.output].rows_at(published.ordinal) for name, lock in kept.items()}


def _given(snapshot: AnySnapshot, rows: dict[int, Counted]) -> AnySnapshot:
    if not rows:
        return snapshot
    assert isinstance(snapshot, MemorySnapshot), "locked joins are read at the present"
    return GivenSnapshot(snapshot.published, snapshot.at, snapshot.system, given=rows)


def _check_found(view: Relation, lock: Locked, found: Counted, recompute: _Recompute) -> None:
    """Raises XX001 unless each row of the join's left side has its lock, with the same multiplicity, and no other row
    has one."""
    row, kept = nullable(schema(lock.left)), kept_schema(lock)
    columns = unpack(found[0], kept)
    markers = columns[len(row) + 1].words == MARKER
    held = pack(columns[: len(row)], row, len(found[0]))[markers]
    wrong, _ = _difference((held, found[1][markers]), _once(recompute.rows(lock.left, row)))
    if len(wrong):
        detail = f"{len(wrong)} different rows are locked more often, or less, than the join reads them."
        raise SqlError("XX001", f'materialized view "{view.name}" has locked other rows than it reads', detail)


def _once(rows: Words) -> Counted:
    return rows, np.ones(len(rows), np.int64)


def _difference(one: Counted, other: Counted) -> Counted:
    """One collection minus the other."""
    rows, diffs = np.concatenate([one[0], other[0]]), np.concatenate([one[1], -other[1]])
    if not len(rows):
        return rows, diffs
    found = distinct_rows(rows)
    sums = np.zeros(len(found.rows), np.int64)
    np.add.at(sums, found.place, diffs)
    wrong = sums != 0
    return found.rows[wrong], sums[wrong]
