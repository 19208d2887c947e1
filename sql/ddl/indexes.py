"""CREATE INDEX and DROP INDEX, and the names and ids of a new table's indexes and constraints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ivm.distinct import distinct_rows
from ivm.errors import SqlError, Subject, unsupported
from ivm.rows import Words
from ivm.stops import poll
from ivm.trace.trace import LATEST, Version
from planner.expr.context import Context
from sql.bind.constraints import added_check
from sql.bind.index_keys import exclusion_of, expression_name, key_check_of
from sql.catalog.catalog import LABELS, Catalog, Relation
from sql.catalog.keys import Check, Index, object_name
from sql.catalog.links import links_of
from sql.catalog.search_path import SearchPathReader
from sql.ddl.foreign_keys import check_keys_stay
from sql.ddl.names import constraint_name, free_name
from sql.dml.constraints import CHECKED_ROWS, index_text
from sql.dml.exclusions import among
from sql.engine.snapshot import Published
from sql.engine.writer import Writer
from sql.statements import definitions
from sql.statements.definitions import CreateIndex, CreateTable, DropIndex
from sql.statements.results import Notice, Notify
from storage.row_file import slices


def index_named(names: SearchPathReader, schema_name: str | None, name: str) -> tuple[Relation, Index] | None:
    """The index of that name, in the schema or along the search path, and its relation."""
    places = names.path.places if schema_name is None else (names.schema(schema_name),)
    for place in places:
        for relation in names.catalog.inside([place]):
            for index in relation.all_indexes:
                if index.name == name:
                    return relation, index
    return None


def taken_names(catalog: Catalog, schema_name: str) -> set[str]:
    """The names of the relations and indexes of a schema, which share one namespace."""
    found: set[str] = set()
    for relation in catalog.inside([schema_name]):
        found.add(relation.name)
        found.update(i.name for i in relation.all_indexes)
    return found


def with_constraints(table: Relation, statement: CreateTable, writer: Writer) -> Relation:
    """A new table with its keys, indexes and checks, named by Postgres's rules. 42P07, 42710."""
    taken = taken_names(writer.catalog, table.schema_name) | {table.name}
    engine, catalog = writer.engine, writer.catalog
    key_name = statement.key_name
    if statement.primary_key:
        if key_name is None:
            key_name = free_name(table, [], "pkey", taken)
        _take(key_name, taken)
    named = {i.name for i in statement.indexes if i.name}
    indexes = []
    for index in statement.indexes:
        label = "excl" if index.operators else "pkey" if index.primary else "key" if index.constraint else "idx"
        columns = replace(index, columns=()) if index.primary else index
        name = index.name or _index_name(table, columns, label, taken | named)
        _take(name, taken)
        indexes.append(replace(index, id=engine.next_id(catalog), name=name))
    constraints = {i.name for i in indexes} | ({key_name} if key_name is not None else set())
    checks: list[Check] = []
    for check in statement.checks:
        name = check.name or _check_name(table, check, constraints | {c.name for c in statement.checks})
        if any(c.name == name for c in checks):
            raise SqlError("42710", f'check constraint "{name}" already exists')
        if name in constraints:
            raise SqlError("42710", f'constraint "{name}" for relation "{table.name}" already exists')
        constraints.add(name)
        checks.append(replace(check, id=engine.next_id(catalog), name=name))
    usual = object_name(table.name, "", "pkey")
    return replace(
        table, primary_key=statement.primary_key, key_name=None if key_name == usual else key_name,
        indexes=tuple(indexes), checks=tuple(checks),
    )  # fmt: skip


def create_index(writer: Writer, statement: CreateIndex, notify: Notify) -> None:
    """Create an index; it is filled on return. 42P07; 23505 if existing rows have duplicate keys."""
    table = statement.table
    if table.parts:
        raise unsupported("an index on a materialized view that Spark maintains")
    if table.partitioning is not None and statement.index.unique:
        raise unsupported("CREATE UNIQUE INDEX on a partitioned table", hint="Make it a constraint of the new table.")
    index = with_name(writer, statement, notify)
    if index is not None:
        check_filled(writer.snapshot(), table, index, writer.engine.context)
        writer.alter(replace(table, indexes=(*table.indexes, index)))


def with_name(writer: Writer, statement: CreateIndex, notify: Notify) -> Index | None:
    """The index with its name and id; None: there is one of that name, which IF NOT EXISTS accepts. 42P07."""
    table, index = statement.table, statement.index
    taken = taken_names(writer.catalog, table.schema_name)
    if index.name in taken:
        if not statement.if_not_exists:
            raise SqlError("42P07", f'relation "{index.name}" already exists')
        notify(Notice("NOTICE", "42P07", f'relation "{index.name}" already exists, skipping'))
        return None
    name = index.name or _index_name(table, index, "idx", taken)
    return replace(index, id=writer.engine.next_id(writer.catalog), name=name)


def check_filled(published: Published, table: Relation, index: Index, context: Context) -> None:
    """Check a table's rows against a new index: 23505, and the errors of its expressions. On any thread."""
    if index.unique:
        _check_duplicates(published, table, index, context)
    elif index.computed:
        _check_computed(published, table, index, context)


def check_changed(version: Version, rows: Words, table: Relation, index: Index, context: Context) -> None:
    """23505 if two rows have the same key as one of these. ``version``: of the index's arrangement."""
    keys, source = key_check_of(table, index).keys(rows, context)
    if not index.unique or not len(keys):
        return
    _, diffs, place = version.lookup(keys, LATEST)
    counts = np.bincount(place, weights=diffs, minlength=len(keys))
    if (counts > 1).any():
        first = int(np.flatnonzero(counts > 1)[0])
        raise _duplicated(table, index, rows[first if source is None else int(source[first])], context)


def named_index(writer: Writer, table: Relation, index: Index) -> Index:
    """The index of a UNIQUE or EXCLUDE constraint with its id and name. 42P07, 42710."""
    taken = taken_names(writer.catalog, table.schema_name)
    taken |= {i.name for i in table.all_indexes}
    name = index.name or _index_name(table, index, "excl" if index.operators else "key", taken)
    if name in taken:
        raise SqlError("42P07", f'relation "{name}" already exists')
    if any(c.name == name for c in table.checks):
        raise SqlError("42710", f'constraint "{name}" for relation "{table.name}" already exists')
    return replace(index, id=writer.engine.next_id(writer.catalog), name=name)


def named_check(writer: Writer, table: Relation, check: Check) -> Check:
    """A check with its id and name. 42710."""
    columns = check.columns if len(check.columns) == 1 else ()
    name = constraint_name(table, check.name or None, columns, "check")
    return replace(check, id=writer.engine.next_id(writer.catalog), name=name)


def named_checks(
    writer: Writer, table: Relation, changes: tuple[definitions.Change, ...]
) -> tuple[definitions.Change, ...]:
    """The changes, in which each new CHECK has the name that it shall have in all tables of the family."""
    found: list[definitions.Change] = []
    columns = {c.column.name: c.column for c in changes if isinstance(c, definitions.AddColumn)}
    wide = replace(table, columns=(*table.columns, *columns.values()))
    taken: tuple[Check, ...] = ()
    for change in changes:
        if not isinstance(change, definitions.AddCheck) or change.name is not None:
            found.append(change)
            continue
        known = replace(wide, checks=(*table.checks, *taken))
        own = named_check(writer, known, added_check(wide, None, change.text))
        taken = (*taken, own)
        found.append(replace(change, name=own.name))
    return tuple(found)


def check_duplicates(writer: Writer, table: Relation, index: Index) -> None:
    """23505 if two rows have the same key."""
    _check_duplicates(writer.snapshot(), table, index, writer.engine.context)


def _check_duplicates(published: Published, table: Relation, index: Index, context: Context) -> None:
    rows, diffs = published.rows(table.id, published.ordinal)
    keys, source = key_check_of(table, index).keys(rows, context)
    own = diffs if source is None else diffs[source]
    if not len(keys):
        return
    poll()
    found = distinct_rows(keys)
    counts = np.bincount(found.place, weights=own)
    if (counts > 1).any():
        place = int(found.first[int(np.flatnonzero(counts > 1)[0])])
        raise _duplicated(table, index, rows[place if source is None else int(source[place])], context)


def _duplicated(table: Relation, index: Index, row: Words, context: Context) -> SqlError:
    detail = f"{index_text(table, index, row, context)} is duplicated."
    return SqlError("23505", f'could not create unique index "{index.name}"', detail)


def check_exclusion(writer: Writer, table: Relation, index: Index) -> None:
    """23P01 if two rows conflict."""
    published, context = writer.snapshot(), writer.engine.context
    rows, diffs = published.rows(table.id, published.ordinal)
    rows = np.repeat(rows, diffs, axis=0)
    one, other = among(exclusion_of(table, index), rows, context)
    if len(one):
        first = int(np.argmin(one))
        texts = [index_text(table, index, rows[i[first]], context) for i in (one, other)]
        raise SqlError(
            "23P01", f'could not create exclusion constraint "{index.name}"',
            f"{texts[0]} conflicts with {texts[1].replace('Key', 'key', 1)}.",
            subject=Subject(table.schema_name, table.name, constraint=index.name),
        )  # fmt: skip


def _check_computed(published: Published, table: Relation, index: Index, context: Context) -> None:
    """Raise the error of an existing row's expression or predicate."""
    for part in slices(len(rows := published.rows(table.id, published.ordinal)[0]), CHECKED_ROWS):
        key_check_of(table, index).keys(rows[part], context)


def drop_indexes(writer: Writer, statement: DropIndex, notify: Notify, names: SearchPathReader) -> None:
    """Drop indexes, at commit. 42704, 42809; 2BP01 for a constraint's index."""
    for schema_name, name in statement.names:
        found = index_named(replace(names, catalog=writer.catalog), schema_name, name)
        if found is None:
            other = names.resolve(schema_name, name)
            if other is not None:
                label = LABELS[other.kind]
                hint = f"Use DROP {label.upper()} to remove a {label}."
                raise SqlError("42809", f'"{name}" is not an index', hint=hint)
            if not statement.if_exists:
                raise SqlError("42704", f'index "{name}" does not exist')
            notify(Notice("NOTICE", "00000", f'index "{name}" does not exist, skipping'))
            continue
        table, index = found
        if index.constraint:
            what = f"constraint {index.name} on table {table.name}"
            message = f"cannot drop index {index.name} because {what} requires it"
            raise SqlError("2BP01", message, hint=f"You can drop {what} instead.")
        changed = replace(table, indexes=tuple(i for i in table.indexes if i.id != index.id))
        check_keys_stay(links_of(writer.catalog).incoming.get(table.id, ()), table, changed)
        writer.alter(changed)


def _take(name: str, taken: set[str]) -> None:
    if name in taken:
        raise SqlError("42P07", f'relation "{name}" already exists')
    taken.add(name)


def _index_name(table: Relation, index: Index, label: str, taken: set[str]) -> str:
    names = [table.columns[p].name if isinstance(p, int) else expression_name(p) for p in index.parts]
    return free_name(table, [*names, *(table.columns[i].name for i in index.included)], label, taken)


def _check_name(table: Relation, check: Check, taken: set[str]) -> str:
    names = [table.columns[i].name for i in check.columns]
    return free_name(table, names if len(names) == 1 else [], "check", taken)
