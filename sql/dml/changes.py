"""INSERT, UPDATE, DELETE and TRUNCATE: turns a statement's source rows into a writer's changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ivm.errors import SqlError
from ivm.rows import RowSet, Vector, Words, pack, unpack
from ivm.words import OID, ColumnType
from planner.expr.scalar import Scalar
from sql.catalog.catalog import Relation
from sql.dml.constraints import fit
from sql.dml.family import chosen_rows, new_rows, part, shares, show_generated, stored_rows
from sql.dml.partitions import insert_routed, insert_unless_held, update_routed
from sql.dml.row_changes import RowChanger
from sql.dml.view_layers import through
from sql.statements.statements import Branch, Delete, Insert, Truncate, Update


@dataclass(frozen=True, slots=True)
class Changed:
    """``count``: the number of rows inserted, changed or deleted; ``returning``: RETURNING's rows."""

    count: int
    returning: RowSet | None = None


class Changer(RowChanger):
    """Runs statements that change rows, for one writer."""

    __slots__ = ()

    def insert(self, statement: Insert, source: RowSet) -> Changed:
        """Add the source's rows."""
        table, conflict = statement.table, statement.conflict
        rows = fit(table, source, self.context)
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
        shown = self._through(statement, _shown(statement, rows, oids))
        return Changed(len(rows), self.returning(statement.returning, shown))

    def insert_rows(self, table: Relation, rows: Words) -> None:
        """Check rows of the table's layout and add them; a partitioned table's rows go to its partitions."""
        if table.partitioning is not None:
            insert_routed(self, table, rows)
            return
        self.insert_plain(table, rows)

    def update(self, statement: Update, source: RowSet) -> Changed:
        """Replace old rows by new ones. If a row matches several times, the first match counts."""
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
        self.replace_rows(table, old, new, new)
        if statement.returning is None and not statement.layers:
            return Changed(len(new))
        columns = [*unpack(new, table.schema), *source.columns()[2 * width :]]
        schema = (*table.schema, *source.schema[2 * width :])
        shown = self._seen(statement, RowSet(pack(columns, schema, len(source)), schema))
        return Changed(len(new), self.returning(statement.returning, shown))

    def delete(self, statement: Delete, source: RowSet) -> Changed:
        """Delete the old rows, each once."""
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
        for share in shares(statement, source):
            once = self.once(share.branch.table, share.old)
            kept.append(share.places[once])
            self.apply(share.branch.table, share.old[once], share.old[:0])
        found = chosen_rows(source, kept)
        return Changed(len(found), self.returning(statement.returning, found))

    def truncate(self, statement: Truncate) -> list[Relation]:
        """Delete all rows; the tables that were emptied."""
        published = self.writer.snapshot()
        tables = self._with_referring(statement)
        for table in tables:
            rows, diffs = published.rows(table.id, published.ordinal)
            self.keys.record(table, rows, -1, self.context)
            self.writer.add(table.id, rows, -diffs)
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


def _shown(statement: Insert, rows: Words, given: Words | None) -> RowSet:
    """The rows that INSERT's RETURNING reads."""
    table = statement.table
    if not statement.oid:
        return RowSet(rows, table.row_schema)
    oids = Vector(np.full(len(rows), table.oid, np.int64) if given is None else given)
    schema = (*table.row_schema, ColumnType(OID, False))
    return RowSet(pack([*unpack(rows, table.row_schema), oids], schema, len(rows)), schema)
