"""Lookups of keys: PRIMARY KEY, UNIQUE and ON CONFLICT ask which keys exist before anything is fed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ivm.distinct import distinct_rows
from ivm.rows import Mask, Words
from ivm.trace.trace import LATEST, Version
from planner.expr.context import Context
from planner.expr.scalar import Scalar
from planner.physical.key_checks import KeyCheck, key_check
from sql.bind.constraints import check_conditions
from sql.bind.exclusion import Exclusion
from sql.bind.index_keys import exclusion_of, key_check_of
from sql.bind.partitions import conditions
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.keys import Index
from sql.catalog.links import Link, Links, links_of
from sql.catalog.partitioning import PartitionBound
from sql.engine.engine import Engine
from sql.engine.key_notes import KeyNotes, Place
from sql.engine.row_locks import Strength, Target
from sql.engine.writer import Writer

FEW: Final = 64
"""The most rows of one statement whose keys are noted one by one; for more, the engine steps first."""


@dataclass(frozen=True, slots=True)
class TableKey:
    """A unique index and the arrangement by which its keys are looked up."""

    index: Index
    key_check: KeyCheck

    def is_kept(self, old: Words, new: Words, context: Context) -> bool:
        """Whether each new row keeps the key of the old row at its position, as in most updates."""
        if len(old) != len(new):
            return False
        (before, dropped), (after, missing) = self.key_check.keys(old, context), self.key_check.keys(new, context)
        return dropped is None and missing is None and bool((before == after).all())


@dataclass(frozen=True, slots=True)
class Rules:
    """A table's constraints, ready to be checked. ``conditions``: its checks, over its columns."""

    table: Relation
    keys: tuple[TableKey, ...]
    tracked: tuple[KeyCheck, ...]
    """The arrangements for key lookups: those of its unique keys and of its own foreign keys."""
    conditions: tuple[Scalar, ...]
    exclusions: tuple[Exclusion, ...] = ()
    computed: tuple[KeyCheck, ...] = ()
    """The keys of its other indexes whose expressions may fail: they are computed for their errors."""


@dataclass(frozen=True, slots=True)
class Probed:
    """The result of looking up rows' keys. ``keys``: int64[m, k]; ``source``: int64[m], the row of each key (None: all
    rows in order); ``held``: int64[m], how many rows have the key, not counting those that the statement removes."""

    keys: Words
    source: Words | None
    held: Words

    def free(self, count: int) -> Mask:
        """For each of ``count`` rows, whether its key is free. Of several rows with one key, only the first gets it."""
        good = self.held <= 0
        if len(self.keys) > 1:
            good &= first_of_each(self.keys)
        return self.spread(good, count, True)

    def spread(self, found: Mask, count: int, otherwise: bool) -> Mask:
        """A mask of the keys as a mask of the rows; ``otherwise`` for rows without a key."""
        if self.source is None:
            return found
        result = np.full(count, otherwise)
        result[self.source] = found
        return result


class KeyIndex:
    """The arrangements as of the last step, the commits made since, and what a writer has changed and not fed.

    Invariant: ``engine.notes`` holds the changes of commits since ``engine.head``, a writer's notes those of its
    updates that are not fed.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[int, Rules] = {}
        self._partitions: dict[int, tuple[Relation, tuple[PartitionBound, ...], tuple[Scalar, ...]]] = {}
        self._links = Links(-1, {}, {}, {})

    def links(self, catalog: Catalog) -> Links:
        """The foreign keys between a catalog's tables. May be called on any thread."""
        known = self._links
        if known.version != catalog.version:
            self._links = known = links_of(catalog)
        return known

    def of(self, table: Relation) -> tuple[TableKey, ...]:
        """A table's unique keys, the primary key first."""
        return self.rules(table).keys

    def rules(self, table: Relation) -> Rules:
        """A table's constraints."""
        known = self._known.get(table.id)
        if known is None or known.table is not table:
            keys = tuple(TableKey(i, key_check_of(table, i)) for i in table.unique)
            foreign = (key_check(table.schema, k.columns) for k in table.foreign_keys)
            tracked = tuple(dict.fromkeys((*(k.key_check for k in keys), *foreign)))
            other = (key_check_of(table, i) for i in table.indexes if i.computed and not i.unique and not i.operators)
            computed = tuple(c for c in other if c.program is not None and c.program.can_fail)
            excluded = tuple(exclusion_of(table, i) for i in table.indexes if i.operators)
            known = Rules(table, keys, tracked, check_conditions(table) if table.checks else (), excluded, computed)
            self._known[table.id] = known
        return known

    def partitions(self, table: Relation, bounds: tuple[PartitionBound, ...]) -> tuple[Scalar, ...]:
        """For each bound except a default's, the condition that its rows meet, over a partitioned table's columns."""
        known = self._partitions.get(table.id)
        if known is None or known[0] is not table or known[1] != bounds:
            self._partitions[table.id] = known = (table, bounds, conditions(table, bounds))
        return known[2]

    def probe(
        self, table: Relation, key: TableKey, removed: Words, rows: Words, context: Context, writer: Writer
    ) -> Probed:
        """Look up the rows' keys as if the ``removed`` rows were deleted. Cost: O(rows · log state)."""
        if len(rows) > FEW or self._bulky(table, writer):
            writer.settle()
        keys, source = key.key_check.keys(rows, context)
        held = self._stored(table, key.key_check, keys)
        if len(keys) > FEW:
            return Probed(keys, source, held - _gone(keys, key.key_check.keys(removed, context)[0]))
        gone = _counted(key.key_check.keys(removed, context)[0]) if len(removed) else {}
        for since in self._since(table, key.key_check, writer):
            held += np.array([since.get(row.tobytes(), 0) for row in keys], np.int64)
        if gone:
            held -= np.array([gone.get(row.tobytes(), 0) for row in keys], np.int64)
        return Probed(keys, source, held)

    def counts(self, table: Relation, key_check: KeyCheck, keys: Words, writer: Writer) -> Words:
        """The number of the table's rows with each key, int64[n], pending changes included."""
        if len(keys) > FEW or self._bulky(table, writer):
            writer.settle()
        held = self._stored(table, key_check, keys)
        for since in self._since(table, key_check, writer):
            held += np.array([since.get(row.tobytes(), 0) for row in keys], np.int64)
        return held

    def referred(self, link: Link, keys: Words, writer: Writer) -> Words:
        """The number of rows with each key among those that a foreign key may refer to."""
        found = np.zeros(len(keys), np.int64)
        for held in link.holders:
            own = np.ascontiguousarray(keys[:, list(held.order)])
            found += self.counts(held.table, held.key_check, own, writer)
        return found

    def holders(self, table: Relation, key_check: KeyCheck, keys: Words, writer: Writer) -> tuple[Words, Words]:
        """(the table's rows with these keys, each one's position in ``keys``), pending changes included."""
        found, diffs, place = self.stepped(table, key_check, writer).lookup(keys, LATEST)
        times = np.maximum(diffs, 0)
        return np.repeat(key_check.restore(found), times, axis=0), np.repeat(place, times)

    def stepped(self, table: Relation, key_check: KeyCheck, writer: Writer) -> Version:
        """An arrangement of a table's keys, pending changes included; also of rows that keep their keys, which are not
        noted."""
        own = writer.updates[writer.fed :]
        unstepped = table.id in self._engine.touched or any(u.relation == table.id for u in own)
        if unstepped or self._bulky(table, writer) or self._since(table, key_check, writer):
            writer.settle()
        return self._engine.key_arrangement(table.id, key_check)

    def record(self, table: Relation, rows: Words, diff: int, context: Context, writer: Writer) -> None:
        """Record rows that a statement adds or removes, which are the writer's next update."""
        rules = self.rules(table)
        tracked = rules.tracked
        if not tracked and not rules.exclusions:
            return
        position = len(writer.updates)
        if len(rows) > FEW or rules.exclusions:
            writer.notes.note_large(position, table.id)
            return
        for kept in tracked:
            for row in kept.keys(rows, context)[0]:
                writer.notes.note(position, _place(table, kept), row.tobytes(), diff)

    def lock_keys(self, table: Relation, old: Words, new: Words, context: Context, writer: Writer) -> None:
        """Lock the unique keys that new rows take, but for those that they keep of the old ones. Raises
        BlockedError."""
        rules = self.rules(table)
        if rules.exclusions:
            writer.lock_whole(table)
        if not writer.locks_in(table):
            return
        for key in rules.keys:
            if not key.is_kept(old, new, context):
                writer.lock(table, _targets(table, key.key_check, new, context), Strength.UPDATE)

    def lock_rows(self, table: Relation, old: Words, replaced: Words | None, context: Context, writer: Writer) -> None:
        """Lock old rows, which are deleted or ``replaced``, each by the row at its position. Raises BlockedError.

        A row is locked by its primary key, or as a whole; if its unique keys change, by these too.
        """
        if not len(old) or not writer.locks_in(table):
            return
        rules = self.rules(table)
        kept = replaced is not None and all(key.is_kept(old, replaced, context) for key in rules.keys)
        strength = Strength.NO_KEY_UPDATE if kept else Strength.UPDATE
        writer.lock(table, self.identities(table, old, context), strength)
        for key in () if kept else rules.keys:
            writer.lock(table, _targets(table, key.key_check, old, context), strength)

    def identities(self, table: Relation, rows: Words, context: Context) -> list[Target]:
        """What stands for each of a table's rows as a whole."""
        primary = next((key for key in self.rules(table).keys if key.index.columns == table.primary_key), None)
        if table.primary_key and primary is not None:
            return _targets(table, primary.key_check, rows, context)
        return [(table.id, None, row.tobytes()) for row in rows]

    def lock_referred(self, link: Link, keys: Words, writer: Writer) -> None:
        """Lock the keys that rows of a foreign key refer to, so that they stay. Raises BlockedError."""
        for held in link.holders:
            if writer.locks_in(held.table):
                own = np.ascontiguousarray(keys[:, list(held.order)])
                targets: list[Target] = [(held.table.id, held.key_check.key, row.tobytes()) for row in own]
                writer.lock(held.table, targets, Strength.KEY_SHARE)

    def _notes(self, writer: Writer) -> tuple[KeyNotes, KeyNotes]:
        return self._engine.key_notes(), writer.notes.unfed

    def _bulky(self, table: Relation, writer: Writer) -> bool:
        return any(table.id in notes.bulk for notes in self._notes(writer))

    def _since(self, table: Relation, key_check: KeyCheck, writer: Writer) -> list[dict[bytes, int]]:
        """The noted changes of the counts of a table's keys."""
        place = _place(table, key_check)
        return [found for notes in self._notes(writer) if (found := notes.since.get(place))]

    def _stored(self, table: Relation, key_check: KeyCheck, keys: Words) -> Words:
        """The number of stepped rows with each key, int64[n]."""
        counts = np.zeros(len(keys), np.int64)
        arrangement = self._engine.key_arrangement(table.id, key_check)
        if len(keys) <= FEW:
            _, diffs, index = arrangement.lookup(keys, LATEST)
            np.add.at(counts, index, diffs)
            return counts
        order = np.lexsort(keys.T[::-1])  # neighbours are found in memory that is at hand
        _, diffs, index = arrangement.lookup(keys[order], LATEST)
        np.add.at(counts, order[index], diffs)
        return counts


def first_of_each(keys: Words) -> Mask:
    """For each key, whether it is the first of its kind."""
    if len(keys) <= FEW:
        seen: set[bytes] = set()
        good = np.ones(len(keys), np.bool_)
        for i, row in enumerate(keys):
            name = row.tobytes()
            good[i] = name not in seen
            seen.add(name)
        return good
    good = np.zeros(len(keys), np.bool_)
    good[distinct_rows(keys).first] = True
    return good


def _gone(keys: Words, removed: Words) -> Words:
    """The number of removed rows with each key."""
    if not len(removed):
        return np.zeros(len(keys), np.int64)
    place = distinct_rows(np.concatenate([keys, removed])).place
    return np.asarray(np.bincount(place[len(keys) :], minlength=int(place.max()) + 1)[place[: len(keys)]])


def _targets(table: Relation, key_check: KeyCheck, rows: Words, context: Context) -> list[Target]:
    """The locks of the rows' keys."""
    return [(table.id, key_check.key, key.tobytes()) for key in key_check.keys(rows, context)[0]]


def _place(table: Relation, key_check: KeyCheck) -> Place:
    return table.id, key_check.key


def _counted(keys: Words) -> dict[bytes, int]:
    counts: dict[bytes, int] = {}
    for row in keys:
        name = row.tobytes()
        counts[name] = counts.get(name, 0) + 1
    return counts
