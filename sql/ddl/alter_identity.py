"""ALTER COLUMN … ADD, SET and DROP IDENTITY, and ADD COLUMN with a sequence of its own."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError
from planner.expr.scalar import Scalar
from sql.bind.coerce import assign
from sql.bind.entry_points import empty_environment
from sql.bind.sequences import next_value
from sql.catalog.catalog import Generated, Relation, TableColumn
from sql.catalog.sequence_options import SequenceOptions, sequence_type
from sql.ddl.alter_draft import Draft
from sql.ddl.sequences import alter_sequence, create_column_sequence
from sql.engine.writer import Writer
from sql.statements import definitions
from sql.statements.results import Notice, Notify


def with_sequence(
    writer: Writer, table: Relation, column: TableColumn, kind: str, options: SequenceOptions
) -> tuple[TableColumn, Scalar]:
    """A new column with a new sequence, and its value in existing rows."""
    generated = create_column_sequence(writer, table, column, definitions.ColumnSequence(0, kind, options))
    value = assign(empty_environment(), next_value(generated), column.type, column.name, 0)
    return replace(column, nullable=False, generated=generated), value


def set_identity(writer: Writer, draft: Draft, change: definitions.SetIdentity) -> None:
    """Make a column an identity column, or change its kind and its sequence. Raises 55000, 22023."""
    i = draft.find(change.column)
    column, place = draft.columns[i], f'column "{change.column}" of relation "{draft.table.name}"'
    identity = column.generated is not None and column.generated.identity
    if change.adds:
        assert change.kind is not None, "the grammar sees to it"
        if column.nullable and column.name not in draft.key:
            raise SqlError("55000", f"{place} must be declared NOT NULL before identity can be added")
        if identity:
            raise SqlError("55000", f"{place} is already an identity column")
        if column.defaulted:
            raise SqlError("55000", f"{place} already has a default value")
        sequence_type(column.type, "identity column")
        made = definitions.ColumnSequence(i, change.kind, change.options)
        draft.columns[i] = replace(column, generated=create_column_sequence(writer, draft.table, column, made))
        return
    if column.generated is None or not identity:
        raise SqlError("55000", f"{place} is not an identity column")
    if change.options != SequenceOptions():
        alter_sequence(writer, None, writer.catalog.relations[column.generated.sequence], change.options)
    if change.kind is not None:
        draft.columns[i] = replace(column, generated=Generated(column.generated.sequence, change.kind))


def drop_identity(writer: Writer, draft: Draft, change: definitions.DropIdentity, notify: Notify) -> None:
    """Make an identity column a plain one, and drop its sequence. Raises 55000."""
    i = draft.find(change.column)
    generated = draft.columns[i].generated
    if generated is None or not generated.identity:
        message = f'column "{change.column}" of relation "{draft.table.name}" is not an identity column'
        if not change.if_exists:
            raise SqlError("55000", message)
        notify(Notice("NOTICE", "00000", f"{message}, skipping"))
        return
    draft.columns[i] = replace(draft.columns[i], generated=None)
    writer.drop([generated.sequence])
