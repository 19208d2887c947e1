"""What foreign keys ask of a change at its statement's end, by lookups on both sides, and what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ivm.errors import SqlError, Subject
from ivm.rows import RowSet, Vector, Words, pack, unpack
from ivm.words import ColumnType
from planner.expr.evaluate.evaluator import evaluate
from sql.bind.entry_points import environment_of
from sql.bind.target import column_default
from sql.catalog.catalog import Relation
from sql.catalog.links import Link
from sql.catalog.search_path import Lookup
from sql.dml.constraints import fit, key_text
from sql.dml.key_index import first_of_each

if TYPE_CHECKING:
    from sql.dml.changes import Changer


def keep_references(changer: Changer, table: Relation, old: Words, replaced: Words | None, new: Words) -> None:
    """Checks and acts after a table's change, which is noted. Raises 23503.

    ``replaced``: what stands in the place of each of the ``old`` rows (None: they were deleted); ``new``: all rows that
    came. Cost: in the rows changed and those that refer to them.
    """
    links = changer.keys.links(changer.writer.catalog)
    for link in links.incoming.get(table.id, ()):
        if len(old):
            _let_go(changer, link, old, replaced)
    for link in links.outgoing.get(table.id, ()):
        check_present(changer, link, new)


def check_present(changer: Changer, link: Link, rows: Words) -> None:
    """23503 for the first row whose key names no row of the parent."""
    keys, source = link.child_guard.keys(rows, changer.context)
    if not len(keys):
        return
    settle = changer.writer.settle
    missing = changer.keys.counts(link.parent, link.parent_guard, keys, settle) <= 0
    if missing.any():
        place = int(np.flatnonzero(missing)[0])
        row = rows[place if source is None else int(source[place])]
        detail = key_text(link.child, link.key.columns, row, changer.context.dictionary)
        raise SqlError(
            "23503", f'insert or update on table "{link.child.name}" violates foreign key constraint "{link.key.name}"',
            f'{detail} is not present in table "{link.parent.name}".', subject=_subject(link),
        )  # fmt: skip


def _let_go(changer: Changer, link: Link, old: Words, replaced: Words | None) -> None:
    """What the rows that refer to keys that are gone make of it."""
    keys, source = link.parent_guard.keys(old, changer.context)
    rows = np.arange(len(old)) if source is None else source
    first = first_of_each(keys)
    keys, rows = np.ascontiguousarray(keys[first]), rows[first]
    settle = changer.writer.settle
    gone = changer.keys.counts(link.parent, link.parent_guard, keys, settle) <= 0
    if not gone.any():
        return
    keys, rows = np.ascontiguousarray(keys[gone]), rows[gone]
    children, place = changer.keys.holders(link.child, link.child_guard, keys, settle)
    if not len(children):
        return
    action = link.key.on_delete if replaced is None else link.key.on_update
    match action:
        case "no action" | "restrict":
            raise _still_referenced(changer, link, old[rows[int(place.min())]])
        case "cascade" if replaced is None:
            changer.delete_rows(link.child, children)
        case "cascade":
            assert replaced is not None, "an update"
            changer.update_rows(link.child, children, _following(link, children, replaced[rows[place]]))
        case _:
            columns = (link.key.changed if replaced is None else ()) or link.key.columns
            changed = _set(changer, link, children, columns, to_default=action == "set default")
            changer.update_rows(link.child, children, changed)


def _still_referenced(changer: Changer, link: Link, row: Words) -> SqlError:
    parent, child = link.parent.name, link.child.name
    detail = key_text(link.parent, link.places, row, changer.context.dictionary)
    return SqlError(
        "23503",
        f'update or delete on table "{parent}" violates foreign key constraint "{link.key.name}" on table "{child}"',
        f'{detail} is still referenced from table "{child}".',
        subject=_subject(link),
    )


def _subject(link: Link) -> Subject:
    """Postgres names the referring table, whichever side was changed."""
    return Subject(link.child.schema_name, link.child.name, constraint=link.key.name)


def _following(link: Link, children: Words, parents: Words) -> list[Vector]:
    """The children with the new keys of their parents."""
    vectors, given = unpack(children, link.child.schema), unpack(parents, link.parent.schema)
    for column, place in zip(link.key.columns, link.places, strict=True):
        vectors[column] = given[place]
    return vectors


def _set(changer: Changer, link: Link, children: Words, columns: tuple[int, ...], *, to_default: bool) -> list[Vector]:
    """The children with these columns NULL or at their defaults."""
    vectors, count = unpack(children, link.child.schema), len(children)
    env = environment_of(Lookup(changer.writer.catalog))
    for column in columns:
        vectors[column] = Vector(np.zeros(count, np.int64), np.ones(count, np.bool_))
        if to_default:
            (vectors[column],), failures = evaluate(
                (column_default(env, link.child.columns[column]),), [], count, changer.context
            )
            if failures is not None:
                raise failures.errors[0]
    return vectors


def rows_of(changer: Changer, table: Relation, vectors: list[Vector]) -> Words:
    """Columns as rows of a table. Raises 23502."""
    count = len(vectors[0].words)
    schema = tuple(ColumnType(c.type, v.nulls is not None) for c, v in zip(table.columns, vectors, strict=True))
    return fit(table, RowSet(pack(vectors, schema, count), schema), changer.context.dictionary)
