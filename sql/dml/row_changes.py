"""Changes of one table's rows: checks constraints, keys, ON CONFLICT and foreign keys, and adds the updates to the
writer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ivm.distinct import distinct, distinct_rows
from ivm.errors import SqlError
from ivm.rows import RowSet, Vector, Words, pack
from ivm.stops import poll
from ivm.trace.trace import LATEST
from ivm.words import ColumnType
from planner.expr.context import Context
from sql.bind.exclusion import Exclusion
from sql.catalog.catalog import Relation
from sql.catalog.keys import Check
from sql.dml.conflict import Upserted, upsert
from sql.dml.constraints import CHECKED_ROWS, check_conditions, conflicting_key, duplicate_key, fit
from sql.dml.deferring import defer_exclusion, defer_key
from sql.dml.exclusions import Conflicts, chosen, conflicts, is_kept
from sql.dml.foreign_keys import References, check_emptied
from sql.dml.key_index import KeyIndex, TableKey
from sql.dml.routing import Router
from sql.dml.row_values import RowValues, direct
from sql.dml.triggered import deletes, row_by_row, updated
from sql.dml.triggers import Events, TriggerCaller, firing
from sql.engine.snapshot import Published
from sql.engine.state import TooLongHereError
from sql.engine.writer import Writer, ones
from sql.statements.statements import OnConflict, deferrable_arbiter
from storage.row_file import slices


@dataclass(slots=True)
class RowChanger:
    """Changes rows of tables and partitions for one writer. Rows are words in the table's layout."""

    writer: Writer
    keys: KeyIndex
    context: Context
    values: RowValues | None = None
    """Evaluates expressions that contain subqueries; None if there are none."""
    caller: TriggerCaller | None = None
    """Runs trigger functions; None: no triggers fire."""
    events: Events | None = None
    quiet: bool = False

    def router(self) -> Router:
        """Routes rows to partitions."""
        return Router(self.writer.catalog, self.keys, self.context)

    def references(self) -> References:
        """The foreign keys, checked against the writer's state."""
        return References(self.writer, self.keys, self.context)

    def check_conditions(self, table: Relation, rows: Words, routed: bool = False, met: tuple[Check, ...] = ()) -> None:
        """23514 for the first row that fails a CHECK, or that is outside its partition's bounds unless it is
        ``routed``. ``met``: the checks that the rows have already passed."""
        conditions = self.keys.rules(table).conditions
        if conditions and met != table.checks:
            for part in slices(len(rows), CHECKED_ROWS):
                check_conditions(table, rows[part], conditions, self.context)
        if table.bound is not None and not routed:
            self.router().check(table, rows)

    def check_keys(self, table: Relation, old: Words, new: Words) -> None:
        """23505 or 23P01 for the first new row whose key is taken, not counting the old rows, which are all stored."""
        if not len(new):
            return
        poll()
        for check in self.keys.rules(table).computed:
            check.keys(new, self.context)
        self.keys.lock_keys(table, old, new, self.context, self.writer)
        failed: tuple[int, TableKey] | None = None
        for key in self.keys.of(table):
            if key.is_kept(old, new, self.context):
                continue
            if self.writer.is_deferred(key.index):
                defer_key(self.writer, self.keys, self.context, table, key, new)
                continue
            free = self.keys.probe(table, key, old, new, self.context, self.writer).free(len(new))
            if not free.all():
                row = int(np.flatnonzero(~free)[0])
                if failed is None or row < failed[0]:
                    failed = row, key
        conflict = self._first_conflict(table, old, new) if self.keys.rules(table).exclusions else None
        if conflict is not None and (failed is None or conflict[0] < failed[0]):
            raise conflict[1]
        if failed is not None:
            raise duplicate_key(table, failed[1].index, new[failed[0]], self.context)

    def _first_conflict(self, table: Relation, old: Words, new: Words) -> tuple[int, SqlError] | None:
        """The position of the first new row that an EXCLUDE constraint rejects, and the error."""
        found: list[tuple[int, SqlError]] = []
        for exclusion in self.keys.rules(table).exclusions:
            if is_kept(exclusion, old, new, self.context):
                continue
            if self.writer.is_deferred(exclusion.index):
                defer_exclusion(self.writer, self.keys, self.context, table, exclusion, new)
                continue
            first = self._conflicts(table, exclusion, old, new).first(new)
            if first is not None:
                row, other = first
                found.append((row, conflicting_key(table, exclusion.index, new[row], other, self.context)))
        return min(found, key=lambda f: f[0], default=None)

    def _conflicts(self, table: Relation, exclusion: Exclusion, old: Words, new: Words) -> Conflicts:
        version = self.keys.stepped(table, exclusion.key_check, self.writer)
        return conflicts(exclusion, version, old, new, self.context)

    def check_rows(self, table: Relation, old: Words, new: Words) -> None:
        """23514 or 23505 for routed rows that replace the old ones."""
        self.check_conditions(table, new, routed=True)
        self.check_keys(table, old, new)

    def insert_own(self, table: Relation, rows: Words) -> None:
        """Add routed rows."""
        self.check_rows(table, rows[:0], rows)
        self.apply(table, rows[:0], rows)

    def insert_plain(self, table: Relation, rows: Words) -> None:
        """Check rows of a table that is not partitioned, and add them."""
        self.replace_rows(table, rows[:0], rows)

    def insert_conflicting(self, table: Relation, conflict: OnConflict, rows: Words) -> Words:
        """Add rows, or apply ON CONFLICT; the rows that were added or changed."""
        self.check_conditions(table, rows)
        if conflict.changed is not None:
            return self._upsert(table, conflict, rows)
        rows = self._unheld(table, conflict, rows)
        self.insert_plain(table, rows)
        return rows

    def _unheld(self, table: Relation, conflict: OnConflict, rows: Words) -> Words:
        """The rows that DO NOTHING adds."""
        asked = [k for k in self.keys.of(table) if k.index in conflict.arbiters]
        excluding = [e for e in self.keys.rules(table).exclusions if e.index in conflict.arbiters]
        if not (asked or excluding) or not len(rows):
            return rows
        self.keys.lock_keys(table, rows[:0], rows, self.context, self.writer)
        if any(index.deferrable for index in conflict.arbiters):
            raise deferrable_arbiter()
        probed = [self.keys.probe(table, k, rows[:0], rows, self.context, self.writer) for k in asked]
        free = chosen(probed, len(rows), [self._conflicts(table, e, rows[:0], rows) for e in excluding])
        return rows if free.all() else rows[free]

    def _upsert(self, table: Relation, conflict: OnConflict, rows: Words) -> Words:
        self.keys.lock_keys(table, rows[:0], rows, self.context, self.writer)
        done = upsert(table, conflict, rows, self.keys, self.context, self.writer, self.row_values())
        if row_by_row(self, table, "update"):
            done = self._upserted(table, done)
        self.replace_rows(table, done.old, done.new, done.new[done.updates])
        return done.new

    def _upserted(self, table: Relation, done: Upserted) -> Upserted:
        """The rows as BEFORE UPDATE triggers give them."""
        new, kept = done.new.copy(), np.ones(len(done.new), np.bool_)
        for i, place in enumerate(np.flatnonzero(done.updates)):
            source = RowSet(new[place : place + 1], table.row_schema)
            one = updated(self, table, done.old[i : i + 1], source, lambda column: column)
            kept[place] = one is not None
            if one is not None:
                new[place] = fit(table, one, self.context)[0]
        return Upserted(done.old[kept[done.updates]], new[kept], done.updates[kept])

    def delete_rows(self, table: Relation, rows: Words) -> None:
        """Delete stored rows and apply the referential actions, as a statement of its own."""
        with firing(self, table, ("delete",), follows=True):
            if row_by_row(self, table, "delete"):
                for i in range(len(rows)):
                    if deletes(self, table, rows[i : i + 1]):
                        self.apply(table, rows[i : i + 1], rows[:0])
            else:
                self.apply(table, rows, rows[:0])

    def update_rows(self, table: Relation, old: Words, columns: list[Vector]) -> None:
        """Replace stored rows by others, given as columns, as a statement of its own. Raises 23502, 23505, 23514."""
        count = len(columns[0].words)
        schema = tuple(ColumnType(c.type, v.nulls is not None) for c, v in zip(table.columns, columns, strict=True))
        given = RowSet(pack(columns, schema, count), schema)
        with firing(self, table, ("update",), follows=True):
            if not row_by_row(self, table, "update"):
                self._replace_anywhere(table, old, fit(table, given, self.context))
                return
            for i in range(count):
                one = updated(self, table, old[i : i + 1], RowSet(given.rows[i : i + 1], schema), lambda c: c)
                if one is not None:
                    self._replace_anywhere(table, old[i : i + 1], fit(table, one, self.context))

    def _replace_anywhere(self, table: Relation, old: Words, new: Words) -> None:
        """``replace_rows``, of which rows may leave their partition."""
        router = self.router()
        staying = router.taken(table, new) if table.bound is not None else np.ones(len(new), np.bool_)
        self.replace_rows(table, old[staying], new[staying], new[staying])
        if staying.all():
            return
        moving = old[~staying]
        root = next(r for r in self.writer.catalog.above(table) if r.bound is None)
        parts = router.route(root, router.converted(table, root, new[~staying]))
        for part in parts:
            self.check_rows(part.leaf, part.rows[:0], part.rows)
        self.note(table, moving, moving[:0])
        for part in parts:
            self.note(part.leaf, part.rows[:0], part.rows)
        self.keep_references(table, moving, new[~staying], moving[:0], moved=True)
        for part in parts:
            self.keep_references(part.leaf, part.rows[:0], None, part.rows)

    def replace_rows(self, table: Relation, old: Words, new: Words, replaced: Words | None = None) -> None:
        """``apply`` after the checks of the new rows. Raises 23505, 23514."""
        self.check_conditions(table, new)
        self.check_keys(table, old, new)
        self.apply(table, old, new, replaced)

    def apply(self, table: Relation, old: Words, new: Words, replaced: Words | None = None) -> None:
        """Delete old rows and add new ones, which have been checked. ``replaced``: the new row for each old one; None
        if the old ones are deleted."""
        self.note(table, old, new, replaced)
        self.keep_references(table, old, replaced, new)

    def note(self, table: Relation, old: Words, new: Words, replaced: Words | None = None) -> None:
        """``apply`` without foreign keys: of a change of several partitions they are kept when all is noted."""
        poll()
        if table.empties:
            self.empty_at_commit(table)
        if self.events is not None:
            self.events.note(table, old, new, replaced)
        self.writer.use(table)
        self.keys.lock_rows(table, old, replaced, self.context, self.writer)
        for rows, diff in ((old, -1), (new, 1)):
            if len(rows):
                self.keys.record(table, rows, diff, self.context, self.writer)
                self.writer.add(table.id, rows, ones(len(rows), diff))

    def empty_at_commit(self, table: Relation) -> None:
        """Have the commit delete all rows of the table (ON COMMIT DELETE ROWS): those of its transaction, since there
        were none before."""
        if self.writer.engine.rests and not self.writer.updates:
            raise TooLongHereError
        self.writer.finishing[table.id] = lambda: self._empty(table)

    def _empty(self, table: Relation) -> None:
        """Delete the rows, unless the table is dropped. Raises 0A000 if a table that keeps its rows refers to it."""
        if self.writer.catalog.by_id(table.id) is None:
            return
        for link in self.keys.links(self.writer.catalog).incoming.get(table.id, ()):
            check_emptied(link.child, table)
        self.remove_all(table, self.writer.snapshot())

    def remove_all(self, table: Relation, published: Published) -> None:
        """Delete the table's rows, without triggers or checks."""
        self.writer.lock_whole(table)
        rows, diffs = published.rows(table.id, published.ordinal)
        self.keys.record(table, rows, -1, self.context, self.writer)
        self.writer.add(table.id, rows, -diffs)

    def keep_references(
        self, table: Relation, old: Words, replaced: Words | None, new: Words, *, moved: bool = False
    ) -> None:
        """Check the foreign keys of a noted change and apply the referential actions; parameters as for
        ``References.after``."""
        if not self.keys.links(self.writer.catalog).touch(table.id):
            return
        for change in self.references().after(table, old, replaced, new, moved=moved):
            if change.columns is None:
                self.delete_rows(change.table, change.rows)
            else:
                self.update_rows(change.table, change.rows, change.columns)

    def once(self, table: Relation, old: Words) -> Words:
        """Positions of the rows to change: each stored row once, however often the source has it."""
        if len(old) < 2:
            return np.arange(len(old))
        poll()
        if len(table.primary_key) == 1 and len(distinct(old[:, table.primary_key[0]])) == len(old):
            return np.arange(len(old))
        _, first, place, counts = distinct_rows(old)
        poll()
        if len(first) == len(old):
            return np.arange(len(old))
        if table.primary_key:
            return np.sort(first)
        version = self.writer.arrangement(table)
        stored = np.zeros(len(first), np.int64)
        _, diffs, index = version.lookup(np.ascontiguousarray(old[first]), LATEST)
        np.add.at(stored, index, diffs)
        order = np.argsort(place, kind="stable")
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        rank = np.arange(len(old)) - starts
        keep = rank < stored[place[order]]
        return np.sort(order[keep])

    def row_values(self) -> RowValues:
        return direct(self.context) if self.values is None else self.values
