"""INSERT, UPDATE, DELETE and TRUNCATE: from a statement's source rows to a writer's changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ivm.errors import SqlError
from ivm.rows import RowSet, Vector, Words, pack, unpack
from ivm.words import OID, ColumnType, Schema
from planner.expr.context import Context
from planner.expr.scalar import Scalar
from sql.catalog.catalog import Relation
from sql.catalog.keys import Check
from sql.dml.conflict import upsert
from sql.dml.constraints import CHECKED_ROWS, check_conditions, duplicate_key, fit
from sql.dml.family import chosen_rows, new_rows, shares
from sql.dml.foreign_keys import keep_references, rows_of
from sql.dml.key_index import LATEST, KeyIndex, TableKey, chosen
from sql.dml.partitions import insert_routed, insert_unless_held, router, update_routed
from sql.dml.row_values import RowValues, direct
from sql.engine.writer import Writer, ones
from sql.statements.statements import Delete, Insert, OnConflict, Truncate, Update
from storage.row_file import slices

RunSource = Callable[[], RowSet]


@dataclass(frozen=True, slots=True)
class Changed:
    """``count`` rows were inserted, changed or deleted; ``returning`` holds RETURNING's rows."""

    count: int
    returning: RowSet | None = None


@dataclass(slots=True)
class Changer:
    """Runs statements that change rows, for one writer."""

    writer: Writer
    keys: KeyIndex
    context: Context
    values: RowValues | None = None
    """For expressions with subqueries; None where there are none."""

    def insert(self, statement: Insert, source: RowSet) -> Changed:
        """Adds the source's rows."""
        table, conflict = statement.table, statement.conflict
        rows = fit(table, source, self.context.dictionary)
        oids: Words | None = None
        if table.partitioning is not None:
            if conflict is None:
                oids = insert_routed(self, table, rows)
            else:
                rows, oids = insert_unless_held(self, statement, rows)
        elif conflict is None:
            self.insert_rows(table, rows)
        else:
            rows = self.insert_conflicting(table, conflict, rows)
        return Changed(len(rows), self._returning(statement.returning, _shown(statement, rows, oids)))

    def insert_conflicting(self, table: Relation, conflict: OnConflict, rows: Words) -> Words:
        """Adds rows, or does what ON CONFLICT says; the rows that are new or changed."""
        self.check_conditions(table, rows)
        if conflict.changed is not None:
            return self._upsert(table, conflict, rows)
        rows = self._unheld(table, conflict, rows)
        self.insert_rows(table, rows)
        return rows

    def insert_rows(self, table: Relation, rows: Words) -> None:
        """Adds rows of the table's layout after checking them; a partitioned table's go to its partitions."""
        if table.partitioning is not None:
            insert_routed(self, table, rows)
            return
        self.check_conditions(table, rows)
        self._check_keys(table, rows[:0], rows)
        self.apply(table, rows[:0], rows)

    def insert_own(self, table: Relation, rows: Words) -> None:
        """Adds rows that have found their partition."""
        self.check_rows(table, rows[:0], rows)
        self.apply(table, rows[:0], rows)

    def check_rows(self, table: Relation, old: Words, new: Words) -> None:
        """23514, 23505 for rows that have found their partition, in the place of the old ones."""
        self.check_conditions(table, new, routed=True)
        self._check_keys(table, old, new)

    def _unheld(self, table: Relation, conflict: OnConflict, rows: Words) -> Words:
        """The rows that DO NOTHING adds."""
        asked = [k for k in self.keys.of(table) if k.index in conflict.arbiters]
        if not asked or not len(rows):
            return rows
        probed = [self.keys.probe(table, k, rows[:0], rows, self.context, self.writer.settle) for k in asked]
        free = chosen(probed, len(rows))
        return rows if free.all() else rows[free]

    def _upsert(self, table: Relation, conflict: OnConflict, rows: Words) -> Words:
        done = upsert(table, conflict, rows, self.keys, self.context, self.writer.settle, self._values())
        self.check_conditions(table, done.new)
        self._check_keys(table, done.old, done.new)
        self.apply(table, done.old, done.new, done.new[done.updates])
        return done.new

    def check_conditions(self, table: Relation, rows: Words, routed: bool = False, met: tuple[Check, ...] = ()) -> None:
        """23514 for the first row that fails a CHECK, or is not within its partition's bounds unless it is ``routed``;
        ``met``: the rows have met these."""
        conditions = self.keys.rules(table).conditions
        if conditions and met != table.checks:
            for part in slices(len(rows), CHECKED_ROWS):
                check_conditions(table, rows[part], conditions, self.context)
        if table.bound is not None and not routed:
            router(self).check(table, rows)

    def _check_keys(self, table: Relation, old: Words, new: Words) -> None:
        """23505 for the first new row whose key is taken once the old rows, stored ones all, are gone."""
        if not len(new):
            return
        failed: tuple[int, TableKey] | None = None
        for key in self.keys.of(table):
            if key.is_kept(old, new, self.context):
                continue
            free = self.keys.probe(table, key, old, new, self.context, self.writer.settle).free(len(new))
            if not free.all():
                row = int(np.flatnonzero(~free)[0])
                if failed is None or row < failed[0]:
                    failed = row, key
        if failed is not None:
            raise duplicate_key(table, failed[1].index, new[failed[0]], self.context.dictionary)

    def update(self, statement: Update, source: RowSet) -> Changed:
        """Replaces old rows by new ones; of several matches of one row the first counts."""
        if statement.branches and statement.table.partitioning is not None:
            shown = update_routed(self, statement, source)
            return Changed(len(shown), self._returning(statement.returning, shown))
        if statement.branches:
            return self._update_family(statement, source)
        table = statement.table
        width = len(table.columns)
        old = _stored_rows(source, table.schema)
        kept = self.once(table, old)
        if len(kept) < len(old):
            source, old = RowSet(source.rows[kept], source.schema), old[kept]
        new = fit(table, source, self.context.dictionary, first=width)
        self.check_conditions(table, new)
        self._check_keys(table, old, new)
        self.apply(table, old, new, new)
        if statement.returning is None:
            return Changed(len(new))
        columns = source.columns()[width:]
        shown = RowSet(pack(columns, source.schema[width:], len(source)), source.schema[width:])
        return Changed(len(new), self._returning(statement.returning, shown))

    def delete(self, statement: Delete, source: RowSet) -> Changed:
        """Takes the old rows away, each once."""
        if statement.branches:
            return self._delete_family(statement, source)
        old = _stored_rows(source, statement.table.schema)
        kept = self.once(statement.table, old)
        self.apply(statement.table, old[kept], old[:0])
        shown = RowSet(source.rows[kept], source.schema)
        return Changed(len(kept), self._returning(statement.returning, shown))

    def _update_family(self, statement: Update, source: RowSet) -> Changed:
        kept: list[Words] = []
        for share in shares(statement, source):
            table = share.branch.table
            once = self.once(table, share.old)
            kept.append(share.places[once])
            new = new_rows(statement, share, source, kept[-1], self.context.dictionary)
            self.check_conditions(table, new)
            self._check_keys(table, share.old[once], new)
            self.apply(table, share.old[once], new, new)
        found = chosen_rows(source, kept)
        shown = found.columns()[statement.width :]
        schema = source.schema[statement.width :]
        returned = self._returning(statement.returning, RowSet(pack(shown, schema, len(found)), schema))
        return Changed(len(found), returned)

    def _delete_family(self, statement: Delete, source: RowSet) -> Changed:
        kept: list[Words] = []
        for share in shares(statement, source):
            once = self.once(share.branch.table, share.old)
            kept.append(share.places[once])
            self.apply(share.branch.table, share.old[once], share.old[:0])
        found = chosen_rows(source, kept)
        return Changed(len(found), self._returning(statement.returning, found))

    def truncate(self, statement: Truncate) -> list[Relation]:
        """Takes every row away; of which tables."""
        published = self.writer.snapshot()
        tables = self._with_referring(statement)
        for table in tables:
            rows, diffs = published.rows(table.id, published.ordinal)
            self.keys.note(table, rows, -1, self.context)
            self.writer.add(table.id, rows, -diffs)
        return tables

    def _with_referring(self, statement: Truncate) -> list[Relation]:
        """The tables to empty: with CASCADE those that refer to one too. Raises 0A000 without."""
        links = self.keys.links(self.writer.catalog)
        tables = list(statement.tables)
        for table in tables:
            for link in links.incoming.get(table.id, ()):
                if link.child.id in (t.id for t in tables):
                    continue
                if not statement.cascade:
                    child = link.child.name
                    raise SqlError(
                        "0A000", "cannot truncate a table referenced in a foreign key constraint",
                        f'Table "{child}" references "{table.name}".',
                        f'Truncate table "{child}" at the same time, or use TRUNCATE ... CASCADE.',
                    )  # fmt: skip
                tables.append(link.child)
        return tables

    def delete_rows(self, table: Relation, rows: Words) -> None:
        """Takes away rows that are there, with what foreign keys make of that."""
        self.apply(table, rows, rows[:0])

    def update_rows(self, table: Relation, old: Words, columns: list[Vector]) -> None:
        """Puts other rows, given as columns, in the place of rows that are there."""
        new = rows_of(self, table, columns)
        self.check_conditions(table, new)
        self._check_keys(table, old, new)
        self.apply(table, old, new, new)

    def apply(self, table: Relation, old: Words, new: Words, replaced: Words | None = None) -> None:
        """Takes old rows away and adds new ones, checked before. ``replaced``: the new row in the place of each old
        one; None when the old ones are deleted."""
        for rows, diff in ((old, -1), (new, 1)):
            if len(rows):
                self.keys.note(table, rows, diff, self.context)
                self.writer.add(table.id, rows, ones(len(rows), diff))
        if self.keys.links(self.writer.catalog).touch(table.id):
            keep_references(self, table, old, replaced, new)

    def once(self, table: Relation, old: Words) -> Words:
        """Positions of the rows to act on: each stored row once, however often the source gives it."""
        if len(old) < 2:
            return np.arange(len(old))
        _, first, place, counts = np.unique(old, axis=0, return_index=True, return_inverse=True, return_counts=True)
        if len(first) == len(old):
            return np.arange(len(old))
        if table.primary_key:
            return np.sort(first)
        version = self.writer.arrangement(table)
        stored = np.zeros(len(first), np.int64)
        _, diffs, index = version.lookup(np.ascontiguousarray(old[first]), LATEST)
        np.add.at(stored, index, diffs)
        order = np.argsort(place.reshape(-1), kind="stable")
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        rank = np.arange(len(old)) - starts
        keep = rank < stored[place.reshape(-1)[order]]
        return np.sort(order[keep])

    def _returning(self, exprs: tuple[Scalar, ...] | None, source: RowSet) -> RowSet | None:
        if exprs is None:
            return None
        vectors = self._values()(exprs, source)
        schema = tuple(ColumnType(e.type, True) for e in exprs)
        return RowSet(pack(vectors, schema, len(source)), schema)

    def _values(self) -> RowValues:
        return direct(self.context) if self.values is None else self.values


def _shown(statement: Insert, rows: Words, given: Words | None) -> RowSet:
    """What RETURNING of INSERT sees."""
    table = statement.table
    if not statement.oid:
        return RowSet(rows, table.row_schema)
    oids = Vector(np.full(len(rows), table.oid, np.int64) if given is None else given)
    schema = (*table.row_schema, ColumnType(OID, False))
    return RowSet(pack([*unpack(rows, table.row_schema), oids], schema, len(rows)), schema)


def _stored_rows(source: RowSet, schema: Schema) -> Words:
    """The source's first columns as rows of ``schema``, which they are as stored."""
    if source.schema == schema:
        return source.rows
    columns = source.columns()[: len(schema)]
    for column, vector in zip(schema, columns, strict=True):
        if not column.nullable and vector.nulls is not None and vector.nulls.any():
            raise SqlError("XX000", "internal error: a stored row has NULL in a column that is NOT NULL")
    return pack(columns, schema, len(source))
