"""A reader's snapshot: one immutable root of the engine, with its catalog and failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ivm.errors import SqlError, unsupported
from ivm.graph import NodeId
from ivm.rows import Words
from ivm.runtime.root import Root
from ivm.trace.trace import Version
from ivm.words import Schema
from planner import gathers
from planner.expr.row_errors import first_error
from planner.logical.nodes import Rel
from planner.logical.traversal import gets
from planner.lower.plan import lower
from planner.lower.pruning import Bound
from planner.options import DEFAULT, Planning
from planner.physical.key_checks import KeyCheck
from planner.physical.layouts import StoredKey, table_layout
from planner.physical.nodes import Plan
from planner.render.dataflow import Stored
from planner.transform.pipeline import maintained
from sql.bind.index_keys import key_check_of
from sql.catalog.catalog import Catalog, Relation, RelationKind
from sql.engine.bounds import bound_of
from sql.engine.counts import Counts
from storage.dictionary import Dictionary
from storage.duck import Store

SystemRows = Callable[[int], Words]
"""The rows of a system relation by its id, as words of the query's own dictionary."""


@dataclass(frozen=True, slots=True)
class Published:
    """The state after one commit. ``failures``: views that are down, with the error that reading them raises.

    ``since``: the oldest ordinal that the root distinguishes from older ones. ``stored``: each relation's nodes in the
    dataflow, as a copy that does not change.
    """

    ordinal: int
    epoch: int
    since: int
    root: Root
    catalog: Catalog
    stored: Mapping[int, Stored]
    failures: Mapping[int, SqlError] = field(default_factory=dict)
    arranged: int = 0
    """Grows when a relation gets another arrangement."""
    counts: Counts | None = None
    """Row counts by relation at ``ordinal``; None in a transaction with writes of its own."""
    hold: object = None
    """Keeps the values of its words in the dictionary."""

    def version(self, relation: int) -> Version | None:
        """The arrangement that holds a whole relation: a table's own one, a view's Output."""
        stored = self.stored.get(relation)
        return None if stored is None else self._at(stored.arrangements.get(stored.primary_key))

    def arrangement(self, relation: int, key: StoredKey) -> Version | None:
        """The arrangement by this key."""
        stored = self.stored.get(relation)
        return None if stored is None else self._at(stored.node(key))

    def primary_key(self, relation: int) -> tuple[int, ...]:
        """The key columns of ``version``; () if it is by the whole row."""
        stored = self.stored.get(relation)
        return () if stored is None else stored.primary_key

    def keys(self, relation: int) -> tuple[tuple[int, ...], ...]:
        """The key columns of each arrangement by columns, those of ``version`` first; none for a relation that is not
        stored."""
        stored = self.stored.get(relation)
        if stored is None:
            return ()
        others = (key for key in stored.arrangements if key and key != stored.primary_key)
        return (stored.primary_key, *others)

    def errors(self, relation: int) -> Version | None:
        """The error rows of a view; None if it cannot fail."""
        stored = self.stored.get(relation)
        return None if stored is None or stored.installed is None else self._at(stored.installed.errors)

    def rows(self, relation: int, at: int) -> tuple[Words, Words]:
        """A relation's rows, in its schema's layout, and their diffs, accumulated up to ordinal ``at``."""
        stored, version = self.stored[relation], self.version(relation)
        assert version is not None, "a stored relation that is not hydrated"
        rows, diffs = version.rows_at(at)
        return restore(stored, rows), diffs

    def _at(self, node: NodeId | None) -> Version | None:
        return None if node is None else self.root.get(node)


def restore(stored: Stored, rows: Words) -> Words:
    """Rows as arranged by the primary key, converted back to the schema's layout."""
    if not stored.primary_key:
        return rows
    return gathers.apply(table_layout(stored.schema, stored.primary_key).restore(stored.schema), rows)[0]


@dataclass(frozen=True, slots=True)
class StoredIndexes:
    """``planner.lower.state.Indexes`` over a published state."""

    published: Published
    one_shot: bool
    planning: Planning = DEFAULT

    def keys(self, relation: int) -> tuple[tuple[int, ...], ...]:
        stored = self.published.stored.get(relation)
        if stored is None:
            return ()
        return tuple(sorted((k for k in stored.arrangements if k), key=lambda k: k != stored.primary_key))

    def key_checks(self, relation: int) -> tuple[KeyCheck, ...]:
        known, stored = self.published.catalog.relations.get(relation), self.published.stored.get(relation)
        if known is None or stored is None or not stored.made:
            return ()
        return tuple(c for _, c in self._indexes(known) if not c.plain and c.arranging in stored.made)

    def bound(self, relation: int) -> Bound | None:
        known = self.published.catalog.relations.get(relation)
        return None if known is None or known.bound is None else bound_of(self.published.catalog, known)

    def index_name(self, relation: int, key: StoredKey) -> str | None:
        known = self.published.catalog.relations.get(relation)
        found = () if known is None else self._indexes(known)
        return next((n for n, c in found if key == (c.columns if c.plain else c.arranging)), None)

    def _indexes(self, relation: Relation) -> tuple[tuple[str, KeyCheck], ...]:
        """The name of each index and its key check."""
        return tuple((i.name, key_check_of(relation, i)) for i in relation.all_indexes if i.unique or i.arranged)

    def primary_key(self, relation: int) -> tuple[int, ...]:
        return self.published.primary_key(relation)

    def size(self, relation: int) -> int | None:
        version = self.published.version(relation)
        return None if version is None else version.count


def first_of(errors: Version | None, ordinal: int, dictionary: Dictionary) -> SqlError | None:
    """The first of some error rows as of an ordinal."""
    if errors is None or not errors.count:
        return None
    rows, _ = errors.rows_at(ordinal)
    return first_error(rows, dictionary) if len(rows) else None


def plan_maintained(rel: Rel, published: Published, planning: Planning, row: Schema | None = None) -> Plan:
    """The physical plan of a maintained view, over existing arrangements. ``row``: as in ``lower``. Raises the error of
    a view that it reads and that is down."""
    for relation in gets(rel):
        if relation in published.failures:
            raise published.failures[relation]
    indexes = StoredIndexes(published, one_shot=False, planning=planning)
    return lower(maintained(rel, planning.demanding), indexes, row)


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """``planner.peek.run.Snapshot`` over a root, as of ordinal ``at``."""

    published: Published
    at: int
    system: SystemRows
    ignore_errors: bool = False

    def version(self, relation: int) -> Version | None:
        return self.published.version(relation)

    def arrangement(self, relation: int, key: StoredKey) -> Version | None:
        return self.published.arrangement(relation, key)

    def primary_key(self, relation: int) -> tuple[int, ...]:
        return self.published.primary_key(relation)

    def keys(self, relation: int) -> tuple[tuple[int, ...], ...]:
        return self.published.keys(relation)

    def errors(self, relation: int) -> tuple[Words, Words] | None:
        version = None if self.ignore_errors else self.published.errors(relation)
        return None if version is None or not version.count else version.rows_at(self.at)

    def rows(self, relation: int) -> tuple[Words, Words] | None:
        return _system_rows(self.published.catalog, self.system, relation)


@dataclass(frozen=True, slots=True)
class GivenSnapshot(MemorySnapshot):
    """A snapshot with relations that exist for one statement only: their rows and diffs, by ids below 0."""

    given: Mapping[int, tuple[Words, Words]] = field(default_factory=dict)

    def rows(self, relation: int) -> tuple[Words, Words] | None:
        return self.given.get(relation) or MemorySnapshot.rows(self, relation)


@dataclass(frozen=True, slots=True)
class HistorySnapshot:
    """``planner.peek.run.Snapshot`` over the store: the rows at an epoch that memory no longer distinguishes."""

    store: Store
    epoch: int
    catalog: Catalog
    system: SystemRows
    at: int = 0
    ignore_errors: bool = False

    def version(self, relation: int) -> Version | None:
        return None

    def arrangement(self, relation: int, key: StoredKey) -> Version | None:
        return None

    def primary_key(self, relation: int) -> tuple[int, ...]:
        return ()

    def keys(self, relation: int) -> tuple[tuple[int, ...], ...]:
        return ()

    def errors(self, relation: int) -> tuple[Words, Words] | None:
        if self.ignore_errors:
            return None
        ids = self.store.errors(relation, self.epoch)
        return (ids.reshape(-1, 1), np.ones(len(ids), np.int64)) if len(ids) else None

    def rows(self, relation: int) -> tuple[Words, Words] | None:
        return _system_rows(self.catalog, self.system, relation) or self.store.rows(relation, self.epoch)


def _system_rows(catalog: Catalog, system: SystemRows, relation: int) -> tuple[Words, Words] | None:
    found = catalog.by_id(relation)
    if found is not None and found.parts:
        raise unsupported(
            f"reading the materialized view {found.name}, which Spark maintains, in a statement that writes",
            hint="Its rows come some time after the commits that change them. Read it in a statement of its own.",
        )
    if found is None or found.kind not in (RelationKind.SYSTEM, RelationKind.SEQUENCE):
        return None
    rows = system(relation)
    return rows, np.ones(len(rows), np.int64)
