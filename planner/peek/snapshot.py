"""What a one-shot query reads: published versions of arrangements, all at one time."""

from __future__ import annotations

from typing import Protocol

from ivm.graph import DeltaJoin, Join, NodeId, Path
from ivm.rows import Words
from ivm.stops import poll
from ivm.trace.trace import Version
from planner import gathers
from planner.physical.layouts import StoredKey, table_layout
from planner.physical.nodes import Plan, Table


class Snapshot(Protocol):
    """The protocol of what a one-shot query reads, all as of ``at``."""

    @property
    def at(self) -> int:
        """The ordinal at which versions are read."""
        ...

    def version(self, relation: int) -> Version | None:
        """A relation's arrangement by primary key, or by whole row; None: use ``rows``."""
        ...

    def primary_key(self, relation: int) -> tuple[int, ...]:
        """The key columns of ``version``; () for the whole row."""
        ...

    def keys(self, relation: int) -> tuple[tuple[int, ...], ...]:
        """The key columns of each arrangement by columns, those of ``version`` first."""
        ...

    def arrangement(self, relation: int, key: StoredKey) -> Version | None:
        """The arrangement by this key, if there is one; the primary key's counts."""
        ...

    def rows(self, relation: int) -> tuple[Words, Words] | None:
        """(rows, diffs) of a relation without a version: a system relation, or history."""
        ...

    def errors(self, relation: int) -> tuple[Words, Words] | None:
        """(error rows, diffs) of a materialized view that has any."""
        ...


def table_rows(table: Table, snapshot: Snapshot) -> tuple[Words, Words]:
    """A stored relation's whole rows and their diffs."""
    version = snapshot.version(table.relation)
    if version is None:
        found = snapshot.rows(table.relation)
        assert found is not None, f"relation {table.relation} is not in the snapshot"
        return found
    rows, diffs = version.rows_at(snapshot.at)
    poll()
    return _restored(table, snapshot, rows), diffs


def rows_to_read(table: Table, snapshot: Snapshot) -> tuple[Words, Words]:
    """The same for one who changes nothing in them: they may be the relation's own."""
    version = snapshot.version(table.relation)
    found = None if version is None else version.rows_in_place(snapshot.at)
    return table_rows(table, snapshot) if found is None else (_restored(table, snapshot, found[0]), found[1])


def _restored(table: Table, snapshot: Snapshot, rows: Words) -> Words:
    key = snapshot.primary_key(table.relation)
    if not key:
        return rows  # arranged by the whole row: unchanged
    return gathers.apply(table_layout(table.schema, key).restore(table.schema), rows)[0]


def stored_version(plan: Plan, number: NodeId, snapshot: Snapshot) -> Version | None:
    """The published arrangement that a node is, if it is one and the snapshot has it."""
    stored = plan.stored[number]
    return None if stored is None else snapshot.arrangement(*stored)


def static_side(plan: Plan, join: Join, snapshot: Snapshot) -> str | None:
    """The looked-up side of a join: the one with a published arrangement, the larger one if both have one."""
    left, right = stored_version(plan, join.left, snapshot), stored_version(plan, join.right, snapshot)
    if left is None or right is None:
        return "left" if left is not None else "right" if right is not None else None
    if join.left == join.right:
        return "right"
    return "left" if left.count > right.count else "right"


def static_path(plan: Plan, join: DeltaJoin, snapshot: Snapshot) -> Path | None:
    """The path of a join on inequalities that suffices, since it looks up a published arrangement, the larger one if
    both do; None: there is none."""
    if not join.spans:
        return None
    found = [(stored_version(plan, path.lookups[0].node, snapshot), path) for path in join.paths]
    stored = [(version.count, path) for version, path in found if version is not None]
    return max(stored, key=lambda one: one[0])[1] if stored else None
