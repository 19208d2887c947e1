"""ALTER TABLE: the table's new columns, constraints and rows.

A change that keeps the rows' layout (a DEFAULT, a name) only changes the catalog. Any other change creates a new
relation with the converted rows; it replaces the old one, which is dropped at commit. The materialized views over the
table stay as they are if it still has all of its columns as they were, else they are rebuilt. Cost: the table, and the
state of the views that are rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, assert_never

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Words, pack, unpack
from ivm.stops import poll
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluated
from planner.expr.scalar import Call, Column, Literal, Scalar
from sql.bind.constraints import added_check
from sql.bind.constraints import check_conditions as bound_conditions
from sql.bind.exclusion import exclusion_index
from sql.bind.generation import generated_columns, generated_from
from sql.catalog.catalog import Generated, Relation
from sql.catalog.keys import Index
from sql.catalog.search_path import SearchPathReader
from sql.ddl.alter_draft import Draft
from sql.ddl.alter_identity import drop_identity, set_identity, with_sequence
from sql.ddl.alter_inherited import check_inherited
from sql.ddl.alter_views import Views, followed, remade
from sql.ddl.composite_types import reshape_users
from sql.ddl.dependents import dependents_error, tell_cascade
from sql.ddl.family_changes import family_changes
from sql.ddl.foreign_keys import check_keys_stay, with_foreign_key
from sql.ddl.indexes import check_duplicates, check_exclusion, named_check, named_checks, named_index
from sql.ddl.partitions import check_keys
from sql.ddl.policies import without_policies
from sql.ddl.triggers import without_users
from sql.dml.changes import Changer
from sql.dml.constraints import check_conditions
from sql.dml.key_index import KeyIndex
from sql.engine.writer import Writer
from sql.statements import definitions
from sql.statements.results import Notice, Notify

_PASSES: Final = (
    (definitions.DropConstraint, definitions.DropColumn, definitions.SetLocal), definitions.SetType,
    definitions.AddColumn,
    (
        definitions.SetDefault, definitions.DropExpression, definitions.SetNotNull, definitions.SetIdentity,
        definitions.DropIdentity, definitions.Unchanged,
    ),
    definitions.AddPrimaryKey, 
    (definitions.AddUnique, definitions.AddExclusion, definitions.AddCheck, definitions.NewForeignKey),
    (definitions.AlterConstraint, definitions.Validate),
)  # fmt: skip
"""The order in which Postgres applies the changes of one statement."""


@dataclass(frozen=True, slots=True)
class Alterer:
    """Runs ALTER TABLE for one writer. ``contexts`` makes a context that knows the writer's present catalog."""

    writer: Writer
    keys: KeyIndex
    contexts: Callable[[], Context]
    notify: Notify
    names: SearchPathReader

    @property
    def context(self) -> Context:
        return self.contexts()

    def alter(self, statement: definitions.AlterTable) -> None:
        """Apply all changes. After an error the caller rolls back."""
        if statement.table is None:
            self.notify(Notice("NOTICE", "00000", f'relation "{statement.name}" does not exist, skipping'))
            return
        self.writer.check_deferred()
        check_inherited(statement, self.writer.catalog)
        changes = named_checks(self.writer, statement.table, statement.changes)
        family = family_changes(statement.table, changes, self.writer.catalog, self.notify, only=statement.only)
        drafts = [self._drafted(table, own) for table, own in family]
        for draft in drafts:
            draft.seen = Views(self.writer, self.names, self.notify, draft.table).seen()
        for draft in drafts:
            self._reshape(draft)
        changed = [(draft, self._applied(draft)) for draft in drafts]
        rewritten = [(draft, table) for draft, table in changed if table.id != draft.table.id]
        for draft, table in rewritten:
            Views(self.writer, self.names, self.notify, draft.table).renew(table, draft.seen, draft.origins)
        if rewritten:
            self._follow(rewritten)

    def _follow(self, rewritten: Sequence[tuple[Draft, Relation]]) -> None:
        """Let the views over tables that have been rewritten read the new ones, or make them anew."""
        catalog = self.writer.catalog
        over = {r.id for _, table in rewritten for r in (table, *catalog.above(table))}
        kept = {d.table.id: (table, places) for d, table in rewritten if (places := d.kept_in(table)) is not None}
        if len(kept) < len(rewritten) or not followed(self.writer, kept, over):
            remade(self.writer, over)

    def _drafted(self, table: Relation, changes: tuple[definitions.Change, ...]) -> Draft:
        """The table with the changes made in Postgres's order; nothing has happened yet but drops of dependents."""
        draft = Draft.of(self.writer.catalog.relations[table.id])
        for kinds in _PASSES:
            for change in changes:
                if isinstance(change, kinds):
                    self._change(draft, change)
        Views(self.writer, self.names, self.notify, draft.table).check(draft.gone, draft.retyped)
        return draft

    def _applied(self, draft: Draft) -> Relation:
        """Make the changes; the table, which is another relation if its rows were rewritten."""
        old, new = draft.table, draft.result()
        check_keys_stay(self.keys.links(self.writer.catalog).incoming.get(old.id, ()), old, new)
        new = self._constrained(new, draft.added)
        check_keys(new)
        if new.schema != old.schema or new.primary_key != old.primary_key or draft.touched:
            return self._rewrite(new, draft)
        self._check_rows(old, new)
        if (new.indexes, new.foreign_keys) == (old.indexes, old.foreign_keys):
            self.writer.redefine(new)
        else:
            self.writer.alter(new)
            self._check_references(old, new)
        return new

    def _reshape(self, draft: Draft) -> None:
        """Give the table's rows that are values of other tables' columns their new form. Raises 0A000 where a column's
        values would have to be computed."""
        old, new = draft.table, draft.result()
        users = self.writer.catalog.using(old)
        if not users or old.own_type == new.own_type:
            return
        if not all(isinstance(v, Column) or v == Literal(None, v.type) or _is_reshaped(v) for v in draft.values):
            user, column = users[0]
            shown = f"{user.name}.{column.name}"
            message = f'cannot alter table "{old.name}" because column "{shown}" uses its row type'
            raise SqlError("0A000", message)
        reshape_users(self.writer, self.alter, old, new)

    def _change(self, draft: Draft, change: definitions.Change) -> None:
        match change:
            case definitions.AddPrimaryKey():
                self._add_key(draft, change)
            case (
                definitions.AddUnique() | definitions.AddExclusion() | definitions.AddCheck()
                | definitions.NewForeignKey()
            ):  # fmt: skip
                draft.added.append(change)
            case definitions.DropConstraint():
                self._drop_constraint(draft, change)
            case definitions.AddColumn():
                self._add_column(draft, change)
            case definitions.DropColumn():
                self._drop_column(draft, change)
            case definitions.SetDefault():
                i = draft.find(change.column)
                draft.check_identity(i, "Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.")
                draft.check_plain(i, dropping=change.default is None and change.sequence is None)
                generated = None if change.sequence is None else Generated(change.sequence)
                draft.columns[i] = replace(draft.columns[i], default=change.default, generated=generated)
            case definitions.DropExpression():
                self._drop_expression(draft, change)
            case definitions.SetIdentity():
                set_identity(self.writer, draft, change)
            case definitions.DropIdentity():
                drop_identity(self.writer, draft, change, self.notify)
            case definitions.SetLocal():
                draft.own.add(change.name)
            case definitions.AlterConstraint():
                draft.alter_constraint(change)
            case definitions.Validate():
                draft.validate(change.name)
            case definitions.Unchanged():
                if change.column is not None:
                    draft.find(change.column)
            case definitions.SetNotNull():
                self._set_not_null(draft, change)
            case definitions.SetType():
                i = draft.find(change.column)
                origin = draft.origins[i]
                assert origin is not None, "types change before columns are added"
                draft.retyped.append(origin)
                column = replace(draft.columns[i], type=change.type, default=change.default)
                draft.columns[i] = replace(column, domain=change.domain)
                draft.values[i] = change.value
                draft.touched = True
            case _:
                assert_never(change)

    def _add_key(self, draft: Draft, change: definitions.AddPrimaryKey) -> None:
        name = draft.table.name
        if draft.key:
            raise SqlError("42P16", f'multiple primary keys for table "{name}" are not allowed')
        for column in change.columns:
            i = draft.find(column)
            draft.columns[i] = replace(draft.columns[i], nullable=False)
        draft.key = list(change.columns)
        draft.key_name = change.constraint

    def _drop_constraint(self, draft: Draft, change: definitions.DropConstraint) -> None:
        table = draft.table
        found = next((i for i in table.all_indexes if i.constraint and i.name == change.name), None)
        if found is not None and found.primary and table.primary_key:
            draft.key.clear()
            draft.key_name = None
        elif found is None and change.name not in _other_constraints(table):
            message = f'constraint "{change.name}" of relation "{table.name}" does not exist'
            if not change.if_exists:
                raise SqlError("42704", message)
            self.notify(Notice("NOTICE", "00000", f"{message}, skipping"))
        draft.dropped.add(change.name)

    def _constrained(self, table: Relation, added: list[definitions.AddedConstraint]) -> Relation:
        """The table with more constraints. Raises 42703, 42701, 42P07, 42710, and the errors of binding a condition."""
        for change in added:
            match change:
                case definitions.AddUnique():
                    index = named_index(self.writer, table, _index_of(table, change))
                    table = replace(table, indexes=(*table.indexes, index))
                case definitions.AddExclusion():
                    index = named_index(self.writer, table, exclusion_index(table.name, table.columns, change))
                    table = replace(table, indexes=(*table.indexes, index))
                case definitions.AddCheck():
                    check = named_check(self.writer, table, added_check(table, change.name, change.text))
                    check = replace(
                        check, local=change.local, no_inherit=change.no_inherit, valid=change.valid
                    )  # fmt: skip
                    table = replace(table, checks=(*table.checks, check))
                case definitions.NewForeignKey():
                    table = with_foreign_key(self.writer, table, change)
        return table

    def _check_rows(self, old: Relation, new: Relation) -> None:
        """Check existing rows against the new constraints. Raises 23505, 23514."""
        for index in new.indexes:
            poll()
            if index not in old.indexes and index.operators:
                check_exclusion(self.writer, new, index)
            elif index not in old.indexes:
                check_duplicates(self.writer, new, index)
        known = {c.name for c in old.checks if c.valid}
        fresh = replace(new, checks=tuple(c for c in new.checks if c.valid and c.name not in known))
        if fresh.checks:
            published = self.writer.snapshot()
            rows, _ = published.rows(old.id, published.ordinal)
            poll()
            with _said_of_a_table(new):
                check_conditions(fresh, rows, bound_conditions(fresh), self.context)

    def _check_references(self, old: Relation, new: Relation) -> None:
        """Check existing rows against the new foreign keys. Raises 23503."""
        published = self.writer.snapshot()
        rows, _ = published.rows(new.id, published.ordinal)
        poll()
        changer = Changer(self.writer, self.keys, self.context)
        for link in self.keys.links(self.writer.catalog).outgoing.get(new.id, ()):
            if link.key.valid and link.key not in old.foreign_keys:
                changer.references().check_present(link, rows)

    def _add_column(self, draft: Draft, change: definitions.AddColumn) -> None:
        name, table = change.column.name, draft.table.name
        if draft.has(name):
            message = f'column "{name}" of relation "{table}" already exists'
            if not change.if_not_exists:
                raise SqlError("42701", message)
            self.notify(Notice("NOTICE", "42701", f"{message}, skipping"))
            return
        column, value = change.column, change.value
        if change.sequence is not None:
            column, value = with_sequence(self.writer, draft.table, column, *change.sequence)
        draft.columns.append(column)
        draft.values.append(value)
        draft.origins.append(None)
        draft.touched = True
        if change.key:
            self._add_key(draft, definitions.AddPrimaryKey((name,)))

    def _drop_column(self, draft: Draft, change: definitions.DropColumn) -> None:
        if change.if_exists and not draft.has(change.name):
            message = f'column "{change.name}" of relation "{draft.table.name}" does not exist, skipping'
            self.notify(Notice("NOTICE", "00000", message))
            return
        i = draft.find(change.name)
        self._drop_generated(draft, change)
        draft.table = without_users(draft.table, change, self.notify)
        names = SearchPathReader(self.writer.catalog)
        draft.table = without_policies(names, draft.table, change, self.notify)
        i = draft.find(change.name)
        owner = draft.table.oid, change.name
        owned = self.writer.catalog.owned([draft.table.id])
        self.writer.drop([r.id for r in owned if r.sequence is not None and r.sequence.owner == owner])
        origin = draft.origins[i]
        assert origin is not None, "columns go before others are added"
        draft.gone[origin] = change.cascade
        del draft.columns[i], draft.values[i], draft.origins[i]
        draft.touched = True
        if change.name in draft.key:
            draft.key.clear()

    def _drop_generated(self, draft: Draft, change: definitions.DropColumn) -> None:
        """With CASCADE drop the generated columns that use a dropped one. 2BP01 without."""
        told = f"column {change.name} of table {draft.table.name}"
        users = [n for n in generated_from(draft.table, change.name) if draft.has(n)]
        lines = [f"column {n} of table {draft.table.name} depends on {told}" for n in users]
        if lines and not change.cascade:
            raise dependents_error(told, lines)
        tell_cascade(self.notify, [f"column {n} of table {draft.table.name}" for n in users])
        for name in users:
            self._drop_column(draft, definitions.DropColumn(name, cascade=True))

    def _drop_expression(self, draft: Draft, change: definitions.DropExpression) -> None:
        i = draft.find(change.column)
        if draft.columns[i].expression is not None:
            draft.columns[i] = replace(draft.columns[i], expression=None)
            return
        message = f'column "{change.column}" of relation "{draft.table.name}" is not a stored generated column'
        if not change.if_exists:
            raise SqlError("55000", message)
        self.notify(Notice("NOTICE", "00000", f"{message}, skipping"))

    def _set_not_null(self, draft: Draft, change: definitions.SetNotNull) -> None:
        i = draft.find(change.column)
        if not change.not_null and change.column in draft.key:
            raise SqlError("42P16", f'column "{change.column}" is in a primary key')
        if not change.not_null:
            draft.check_identity(i)
        draft.columns[i] = replace(draft.columns[i], nullable=not change.not_null)

    def _rewrite(self, new: Relation, draft: Draft) -> Relation:
        """Create a new relation with the converted rows."""
        old = draft.table
        rows = self._converted(old, new, draft.values)
        table = self.writer.exchange(old.id, new, None)
        if len(rows):
            with _said_of_a_table(new):
                Changer(self.writer, self.keys, self.context).insert_own(table, rows)
        return self.writer.catalog.relations[table.id]

    def _converted(self, old: Relation, new: Relation, values: list[Scalar]) -> Words:
        """The table's rows in the new layout. Raises 23502, and the errors of the conversions."""
        published = self.writer.snapshot()
        rows, diffs = published.rows(old.id, published.ordinal)
        rows = np.repeat(rows, diffs, axis=0)
        context = self.context
        vectors = evaluated(tuple(values), unpack(rows, old.schema), len(rows), context)
        for i, expr in generated_columns(new):
            (vectors[i],) = evaluated((expr,), vectors, len(rows), context)
        for column, vector in zip(new.columns, vectors, strict=True):
            if not column.nullable and vector.nulls is not None and vector.nulls.any():
                message = f'column "{column.name}" of relation "{new.name}" contains null values'
                raise SqlError("23502", message)
        return pack(vectors, new.schema, len(rows))


def _is_reshaped(value: Scalar) -> bool:
    return isinstance(value, Call) and value.function == "reshaped"


def _other_constraints(table: Relation) -> set[str]:
    return {c.name for c in table.checks} | {k.name for k in table.foreign_keys}


def _index_of(table: Relation, change: definitions.AddUnique) -> Index:
    names = [c.name for c in table.columns]
    for name in (*change.columns, *change.included):
        if name not in names:
            raise SqlError("42703", f'column "{name}" named in key does not exist')
        if change.columns.count(name) > 1:
            raise SqlError("42701", f'column "{name}" appears twice in unique constraint')
    return Index(
        0, change.name or "", tuple(map(names.index, change.columns)), unique=True, constraint=True,
        nulls_distinct=change.nulls_distinct, included=tuple(map(names.index, change.included)),
        deferrable=change.deferrable, deferred=change.deferred,
    )  # fmt: skip


@contextmanager
def _said_of_a_table(table: Relation) -> Iterator[None]:
    """Reword a violation by existing rows as Postgres words it in ALTER TABLE."""
    try:
        yield
    except SqlError as error:
        if error.sqlstate not in ("23505", "23514"):
            raise
        name = error.message.split('"')[-2]
        if error.sqlstate == "23514":
            message = f'check constraint "{name}" of relation "{table.name}" is violated by some row'
            raise SqlError("23514", message) from None
        detail = None if error.detail is None else error.detail.replace(" already exists.", " is duplicated.")
        raise SqlError("23505", f'could not create unique index "{name}"', detail) from None
