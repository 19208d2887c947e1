"""INSERT, UPDATE, DELETE and TRUNCATE: turns a statement's source rows into a writer's changes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from ivm.errors import SqlError
from ivm.rows import RowSet, Vector, Words, pack, unpack
from ivm.words import OID, ColumnType
from planner.expr.scalar import Column, Scalar
from sql.catalog.catalog import Relation
from sql.dml.constraints import fit
from sql.dml.family import chosen_rows, new_rows, part, shares, show_generated, stored_rows
from sql.dml.instead import deleted_instead, inserted_instead, is_view, updated_instead
from sql.dml.partitions import insert_routed, insert_unless_held, update_routed
from sql.dml.row_changes import RowChanger
from sql.dml.triggered import check_present, deletes, inserted, moved, row_by_row, updated
from sql.dml.triggers import firing
from sql.dml.view_layers import through
from sql.statements.statements import Branch, Delete, Insert, Truncate, Update, ViewLayer


@dataclass(frozen=True, slots=True)
class Changed:
    """``count``: the number of rows inserted, changed or deleted; ``returning``: RETURNING's rows."""

    count: int
    returning: RowSet | None = None


class Changer(RowChanger):
    """Runs statements that change rows, for one writer."""

    __slots__ = ()

    def insert(self, statement: Insert, source: RowSet) -> Changed:
        """Add the source's rows. Fires the table's triggers."""
        kinds: tuple[str, ...] = ("insert",)
        assigned = None
        if statement.conflict is not None and statement.conflict.changed is not None:
            kinds, assigned = ("insert", "update"), set_columns(statement.table, statement.conflict.changed)
        with firing(self, statement.table, kinds, assigned):
            if is_view(statement.table):
                rows = inserted_instead(self, statement, source)
                shown = self._through(statement, rows)
                return Changed(len(rows), self.returning(statement.returning, shown))
            if not row_by_row(self, statement.table, "insert"):
                return self._insert(statement, source)
            done = [self._insert(statement, source_of(source, 0, 0))]
            for i in range(len(source)):
                one = inserted(self, statement.table, source_of(source, i, i + 1))
                if one is not None:
                    done.append(self._insert(statement, one))
            return together(done)

    def _insert(self, statement: Insert, source: RowSet) -> Changed:
        table, conflict = statement.table, statement.conflict
        rows = fit(table, source, self.context)
        self._check_policies(table, statement.layers, rows)
        oids: Words | None = None
        if table.partitioning is not None:
            if conflict is None:
                oids = insert_routed(self, table, rows)
            else:
                rows, oids = insert_unless_held(self, statement, rows)
        elif conflict is None:
            self._insert_rows(table, rows)
        else:
            rows = self.insert_conflicting(table, conflict, rows)
        if statement.layers:  # what policies ask has been checked
            views = tuple(layer for layer in statement.layers if layer.refusal is None)
            statement = replace(statement, layers=views)
        shown = self._through(statement, _shown(statement, rows, oids))
        return Changed(len(rows), self.returning(statement.returning, shown))

    def insert_rows(self, table: Relation, rows: Words) -> None:
        """Check rows of the table's layout and add them; a partitioned table's rows go to its partitions. Fires the
        table's triggers."""
        with firing(self, table, ("insert",)):
            if not row_by_row(self, table, "insert"):
                self._insert_rows(table, rows)
                return
            for i in range(len(rows)):
                one = inserted(self, table, RowSet(rows[i : i + 1], table.row_schema))
                if one is not None:
                    self._insert_rows(table, fit(table, one, self.context))

    def _insert_rows(self, table: Relation, rows: Words) -> None:
        if table.partitioning is not None:
            insert_routed(self, table, rows)
            return
        self.insert_plain(table, rows)

    def update(self, statement: Update, source: RowSet) -> Changed:
        """Replace old rows by new ones. If a row matches several times, the first match counts. Fires the table's
        triggers."""
        with firing(self, statement.table, ("update",), statement.assigned):
            if is_view(statement.table):
                shown = self._seen(statement, updated_instead(self, statement, source))
                return Changed(len(shown), self.returning(statement.returning, shown))
            kinds = ("update", "insert", "delete") if statement.table.partitioning is not None else ("update",)
            if not any(row_by_row(self, statement.table, kind) for kind in kinds):
                return self._update(statement, source)
            source = self._each_once(statement, source)
            done = [self._update(statement, source_of(source, 0, 0))]
            for i in range(len(source)):
                one = self._updated(statement, source_of(source, i, i + 1))
                if one is not None:
                    done.append(self._update(statement, one))
            return together(done)

    def _each_once(self, statement: Update | Delete, source: RowSet) -> RowSet:
        """The source with each stored row once."""
        if statement.branches:
            kept = [s.places[self.once(s.branch.table, s.old)] for s in shares(statement, source)]
            return chosen_rows(source, kept)
        kept_ = self.once(statement.table, stored_rows(source, statement.table.schema))
        return RowSet(source.rows[kept_], source.schema)

    def _stored(self, statement: Update | Delete, source: RowSet) -> tuple[Relation, Words, tuple[int, ...]]:
        """The table that stores the source's one row, the row, and the places of its columns."""
        if not statement.branches:
            table = statement.table
            return table, stored_rows(source, table.schema), tuple(range(len(table.columns)))
        (share,) = shares(statement, source)
        return share.branch.table, share.old, share.branch.columns

    def _updated(self, statement: Update, source: RowSet) -> RowSet | None:
        table, old, places = self._stored(statement, source)
        first = statement.width or len(statement.table.columns)
        one = updated(self, table, old, source, lambda i: first + places[i])
        if one is not None:
            check_present(self, table, old, "updated")
        if one is None or statement.table.partitioning is None:
            return one
        return moved(self, statement.table, table, old, one, first)

    def _update(self, statement: Update, source: RowSet) -> Changed:
        if statement.branches and statement.table.partitioning is not None:
            shown = self._seen(statement, update_routed(self, statement, source))
            return Changed(len(shown), self.returning(statement.returning, shown))
        if statement.branches:
            return self._update_family(statement, source)
        table = statement.table
        width = len(table.columns)
        old = stored_rows(source, table.schema)
        kept = self.once(table, old)
        if len(kept) < len(old):
            source, old = RowSet(source.rows[kept], source.schema), old[kept]
        new = fit(table, source, self.context, first=width)
        self._check_policies(table, statement.layers, new)
        self.replace_rows(table, old, new, new)
        if statement.returning is None and not statement.layers:
            return Changed(len(new))
        columns = [*unpack(new, table.schema), *source.columns()[2 * width :]]
        schema = (*table.schema, *source.schema[2 * width :])
        shown = self._seen(statement, RowSet(pack(columns, schema, len(source)), schema))
        return Changed(len(new), self.returning(statement.returning, shown))

    def delete(self, statement: Delete, source: RowSet) -> Changed:
        """Delete the old rows, each once. Fires the table's triggers."""
        with firing(self, statement.table, ("delete",)):
            if is_view(statement.table):
                gone = deleted_instead(self, statement, source)
                return Changed(len(gone), self.returning(statement.returning, gone))
            if not row_by_row(self, statement.table, "delete"):
                return self._delete(statement, source)
            source = self._each_once(statement, source)
            done = [self._delete(statement, source_of(source, 0, 0))]
            for i in range(len(source)):
                one = source_of(source, i, i + 1)
                table, old, _ = self._stored(statement, one)
                if deletes(self, table, old):
                    check_present(self, table, old, "deleted")
                    done.append(self._delete(statement, one))
            return together(done)

    def _delete(self, statement: Delete, source: RowSet) -> Changed:
        if statement.branches:
            return self._delete_family(statement, source)
        old = stored_rows(source, statement.table.schema)
        kept = self.once(statement.table, old)
        self.apply(statement.table, old[kept], old[:0])
        shown = RowSet(source.rows[kept], source.schema)
        return Changed(len(kept), self.returning(statement.returning, shown))

    def _update_family(self, statement: Update, source: RowSet) -> Changed:
        kept: list[Words] = []
        changed: list[tuple[Branch, Words]] = []
        for share in shares(statement, source):
            table = share.branch.table
            once = self.once(table, share.old)
            kept.append(share.places[once])
            new = new_rows(statement, share, source, kept[-1], self.context)
            self.replace_rows(table, share.old[once], new, new)
            changed.append((share.branch, new))
        found = chosen_rows(source, kept)
        shown = found.columns()[statement.width :]
        schema = source.schema[statement.width :]
        show_generated(shown, changed, kept)
        seen = self._seen(statement, RowSet(pack(shown, schema, len(found)), schema))
        return Changed(len(found), self.returning(statement.returning, seen))

    def _delete_family(self, statement: Delete, source: RowSet) -> Changed:
        kept: list[Words] = []
        gone: list[tuple[Relation, Words]] = []
        for share in shares(statement, source):
            once = self.once(share.branch.table, share.old)
            kept.append(share.places[once])
            gone.append((share.branch.table, share.old[once]))
            self.note(share.branch.table, share.old[once], share.old[:0])
        for table, old in gone:
            self.keep_references(table, old, None, old[:0])
        found = chosen_rows(source, kept)
        return Changed(len(found), self.returning(statement.returning, found))

    def truncate(self, statement: Truncate) -> list[Relation]:
        """Delete all rows; the tables that were emptied."""
        tables = self._with_referring(statement)
        with ExitStack() as around:
            for table in tables:
                around.enter_context(firing(self, table, ("truncate",), follows=True))
            published = self.writer.snapshot()
            for table in tables:
                self.remove_all(table, published)
        return tables

    def _with_referring(self, statement: Truncate) -> list[Relation]:
        """The tables to empty; with CASCADE also the tables that refer to them. 0A000 if there are such tables without
        CASCADE."""
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

    def _check_policies(self, table: Relation, layers: Sequence[ViewLayer], rows: Words) -> None:
        """42501 for a row that a policy forbids, before constraints could tell what other rows are there."""
        policies = [layer for layer in layers if layer.refusal is not None]
        if policies:
            new = RowSet(rows, table.row_schema)
            through(table, policies, new, self.row_values(), self.context.dictionary, check=True)

    def _through(self, statement: Insert | Update, rows: RowSet) -> RowSet:
        """New (wide) rows with the columns of the views that they go through. 44000."""
        values, dictionary = self.row_values(), self.context.dictionary
        return through(statement.table, statement.layers, rows, values, dictionary, check=True)

    def _seen(self, statement: Update, shown: RowSet) -> RowSet:
        """The rows (new row, layers' columns, others) with the layers' columns of the new row. 44000."""
        if not statement.layers:
            return shown
        width = statement.width or len(statement.table.columns)
        own = part(shown, np.arange(len(shown)), tuple(range(width)))
        seen = self._through(statement, own)
        columns = [*seen.columns(), *shown.columns()[len(seen.schema) :]]
        schema = (*seen.schema, *shown.schema[len(seen.schema) :])
        return RowSet(pack(columns, schema, len(shown)), schema)

    def returning(self, exprs: tuple[Scalar, ...] | None, source: RowSet) -> RowSet | None:
        """RETURNING's rows over these."""
        if exprs is None:
            return None
        vectors = self.row_values()(exprs, source)
        schema = tuple(ColumnType(e.type, True) for e in exprs)
        return RowSet(pack(vectors, schema, len(source)), schema)


def together(done: Sequence[Changed]) -> Changed:
    """What parts of one statement have changed."""
    returned = [c.returning for c in done if c.returning is not None]
    if not returned:
        return Changed(sum(c.count for c in done))
    rows = RowSet(np.concatenate([r.rows for r in returned]), returned[0].schema)
    return Changed(sum(c.count for c in done), rows)


def source_of(source: RowSet, start: int, end: int) -> RowSet:
    """Some rows of a statement's source."""
    return RowSet(source.rows[start:end], source.schema)


def set_columns(table: Relation, changed: tuple[Scalar, ...]) -> frozenset[str]:
    """The columns that ON CONFLICT DO UPDATE sets, by name."""
    pairs = enumerate(zip(table.columns, changed, strict=True))
    return frozenset(c.name for i, (c, e) in pairs if not (isinstance(e, Column) and e.index == i))


def _shown(statement: Insert, rows: Words, given: Words | None) -> RowSet:
    """The rows that INSERT's RETURNING reads."""
    table = statement.table
    if not statement.oid:
        return RowSet(rows, table.row_schema)
    oids = Vector(np.full(len(rows), table.oid, np.int64) if given is None else given)
    schema = (*table.row_schema, ColumnType(OID, False))
    return RowSet(pack([*unpack(rows, table.row_schema), oids], schema, len(rows)), schema)
