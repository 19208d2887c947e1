"""CREATE, ALTER and DROP SEQUENCE, and the sequences owned by columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ivm.errors import SqlError, unsupported
from ivm.words import INT8, SqlType
from sql.catalog.catalog import SEQUENCE_COLUMNS, Catalog, Generated, Relation, RelationKind, Sequence, TableColumn
from sql.catalog.column_types import type_from_name
from sql.catalog.keys import object_name
from sql.catalog.search_path import SearchPathReader
from sql.catalog.sequence_options import SequenceOptions, altered, sequence_of, sequence_type
from sql.ddl.dependents import dependents_error
from sql.engine.writer import Writer
from sql.statements.definitions import ColumnSequence, CreateTable


def new_sequence(
    writer: Writer,
    options: SequenceOptions,
    type_: SqlType,
    owner: tuple[int, str] | None = None,
    kind: str = "default",
) -> Sequence:
    """A sequence of these options. Raises 22023, and 42601 and the like for a wrong owner."""
    if options.restart is not None:
        raise SqlError("42601", 'sequence option "restart" not supported here')
    made = sequence_of(options, _type(options, type_), writer.engine.clock.advance())
    return replace(made, owner=owner, internal=kind != "default")


def _type(options: SequenceOptions, otherwise: SqlType) -> SqlType:
    if options.type is None:
        return otherwise
    return sequence_type(type_from_name(options.type), "sequence")


def owner_of(catalog: SearchPathReader, sequence: Relation, names: tuple[str, ...]) -> tuple[int, str] | None:
    """The column that OWNED BY names: (table's oid, column's name). Raises 42601, 42P01, 42809, 42703, 55000."""
    if not names:
        return None
    if len(names) == 1:
        hint = "Specify OWNED BY table.column or OWNED BY NONE."
        raise SqlError("42601", "invalid OWNED BY option", hint=hint)
    schema_name = names[-3] if len(names) > 2 else None
    table = catalog.resolve(schema_name, names[-2])
    if table is None:
        raise SqlError("42P01", f'relation "{".".join(names[:-1])}" does not exist')
    if table.kind is not RelationKind.TABLE:
        raise SqlError("42809", f'sequence cannot be owned by relation "{table.name}"')
    if table.schema_name != sequence.schema_name:
        raise SqlError("55000", "sequence must be in same schema as table it is linked to")
    columns = [c.name for c in table.columns]
    if names[-1] not in columns:
        raise SqlError("42703", f'column "{names[-1]}" of relation "{table.name}" does not exist')
    return table.oid, names[-1]


def create_column_sequences(writer: Writer, table: Relation, statement: CreateTable) -> Relation:
    """Create the sequences of SERIAL and identity columns; the table that uses them."""
    columns = list(table.columns)
    for wanted in statement.sequences:
        column = columns[wanted.column]
        generated = create_column_sequence(writer, table, column, wanted)
        columns[wanted.column] = replace(column, nullable=False, generated=generated)
    return replace(table, columns=tuple(columns))


def create_column_sequence(writer: Writer, table: Relation, column: TableColumn, wanted: ColumnSequence) -> Generated:
    """Create a column's own sequence."""
    id_ = writer.engine.next_id(writer.catalog)
    sequence = new_sequence(writer, wanted.options, column.type, (table.oid, column.name), wanted.kind)
    name = _free_name(writer.catalog, table, column.name, wanted)
    made = Relation(id_, table.schema_name, name, RelationKind.SEQUENCE, SEQUENCE_COLUMNS, created=table.created)
    writer.create(replace(made, sequence=sequence), None)
    return Generated(id_, wanted.kind)


def _free_name(catalog: Catalog, table: Relation, column: str, wanted: ColumnSequence) -> str:
    """``table_column_seq``, truncated as Postgres's makeObjectName does, with a number appended if that is taken."""
    if wanted.options.name is not None:
        name = wanted.options.name[-1]
        if (table.schema_name, name) in catalog.names:
            raise SqlError("42P07", f'relation "{name}" already exists')
        return name
    number = 0
    while True:
        name = object_name(table.name, column, f"seq{number or ''}")
        if (table.schema_name, name) not in catalog.names and name != table.name:
            return name
        number += 1


def alter_sequence(
    writer: Writer, names: SearchPathReader | None, relation: Relation, options: SequenceOptions
) -> None:
    """Change the definition. It gets a new storage, so that a rollback finds the old one."""
    assert relation.sequence is not None, "checked by the caller"
    sequence = relation.sequence
    owner = sequence.owner
    if options.owner is not None:
        if sequence.internal:
            assert owner is not None, "an identity column's"
            table = next(r.name for r in writer.catalog.relations.values() if r.oid == owner[0])
            detail = f'Sequence "{relation.name}" is linked to table "{table}".'
            raise SqlError("0A000", "cannot change ownership of identity sequence", detail)
        assert names is not None, "a statement's own names"
        owner = owner_of(names, relation, options.owner)
    if options.name is not None:
        raise unsupported("SEQUENCE NAME in ALTER SEQUENCE")
    value, _, called = writer.engine.sequences.peek(sequence)
    type_ = None if options.type is None else _type(options, INT8)
    made = altered(sequence, options, type_, (value, called), writer.engine.clock.advance())
    changed = replace(relation, sequence=replace(made, owner=owner))
    writer.catalog = writer.catalog.with_relation(changed, writer.engine.next_version())


def restart_sequences(writer: Writer, tables: Iterable[Relation]) -> None:
    """TRUNCATE … RESTART IDENTITY."""
    for relation in writer.catalog.owned(t.id for t in tables):
        alter_sequence(writer, None, relation, SequenceOptions(restart=(None,)))


def users(catalog: Catalog, sequence: int) -> list[tuple[Relation, int]]:
    """The columns whose DEFAULT or identity uses the sequence: tables and positions."""
    tables = sorted((r for r in catalog.relations.values() if r.kind is RelationKind.TABLE), key=lambda r: r.id)
    return [
        (table, i)
        for table in tables
        for i, column in enumerate(table.columns)
        if column.generated is not None and column.generated.sequence == sequence
    ]


def release(
    writer: Writer, names: SearchPathReader, sequences: list[Relation], gone: set[int], cascade: bool
) -> list[str]:
    """Remove dropped sequences from the defaults of tables that stay. Descriptions of what the drop cascades to. Raises
    2BP01."""
    found: list[str] = []
    needed: list[str] = []
    catalog = writer.catalog
    for sequence in sequences:
        for table, i in users(catalog, sequence.id):
            if table.id in gone:
                continue
            column = table.columns[i]
            assert column.generated is not None, "found by it"
            if column.generated.identity:
                place = f"column {column.name} of table {names.shown(table)}"
                message = f"cannot drop sequence {names.shown(sequence)} because {place} requires it"
                raise SqlError("2BP01", message, hint=f"You can drop {place} instead.")
            what = f"default value for column {column.name} of table {names.shown(table)}"
            found.append(what)
            needed.append(f"{what} depends on sequence {names.shown(sequence)}")
            columns = tuple(replace(c, generated=None) if n == i else c for n, c in enumerate(table.columns))
            catalog = catalog.with_relation(replace(table, columns=columns), writer.engine.next_version())
    if needed and not cascade:
        what = f"sequence {names.shown(sequences[0])}" if len(sequences) == 1 else "desired object(s)"
        raise dependents_error(what, needed)
    writer.catalog = catalog
    return found
