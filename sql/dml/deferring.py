"""DEFERRABLE constraints: checks that wait for COMMIT or SET CONSTRAINTS … IMMEDIATE.

A statement notes the keys that it may have spoilt. The check looks up what the writer's state holds for these keys
then, so that it costs as much as the changes, and a savepoint that is rolled back needs nothing undone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Words
from ivm.trace.trace import LATEST
from planner.expr.context import Context
from sql.bind.exclusion import Exclusion
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.links import Link
from sql.catalog.search_path import SearchPathReader
from sql.dml.constraints import conflicting_key, duplicate_key
from sql.dml.exclusions import stored_conflicts
from sql.dml.key_index import KeyIndex, TableKey
from sql.engine.writer import Writer
from sql.statements.statements import SetConstraints

Refused = Callable[[Link, Words], SqlError]
"""The error for a row that refers to nothing, or that is referred to and gone."""


def defer_key(writer: Writer, keys: KeyIndex, context: Context, table: Relation, key: TableKey, rows: Words) -> None:
    """Check at the end that no two rows have one of these rows' keys."""

    def check() -> None:
        now = writer.catalog.relations.get(table.id)
        if now is None or key.index.id not in {i.id for i in now.indexes}:
            return
        sought, source = key.key_check.keys(rows, context)
        held = keys.counts(now, key.key_check, sought, writer)
        if len(sought) and (held > 1).any():
            place = int(np.flatnonzero(held > 1)[0])
            row = rows[place if source is None else int(source[place])]
            raise duplicate_key(now, key.index, row, context)

    writer.deferred.append((key.index.id, check))


def defer_exclusion(
    writer: Writer, keys: KeyIndex, context: Context, table: Relation, exclusion: Exclusion, rows: Words
) -> None:
    """Check at the end that none of these rows that is still there conflicts with another one."""

    def check() -> None:
        now = writer.catalog.relations.get(table.id)
        if now is None or exclusion.index.id not in {i.id for i in now.indexes}:
            return
        version = keys.stepped(now, exclusion.key_check, writer)
        sought, _ = exclusion.key_check.keys(rows, context)
        stored, diffs, _ = version.lookup(sought, LATEST)
        there = {row.tobytes() for row in exclusion.key_check.restore(stored[diffs > 0])}
        found = stored_conflicts(exclusion, version, rows, context)
        for place, other, count in zip(found.rows.tolist(), found.others, found.counts.tolist(), strict=True):
            own = rows[place].tobytes()
            if own in there and (count > 1 or other.tobytes() != own):
                raise conflicting_key(now, exclusion.index, rows[place], other, context)

    writer.deferred.append((exclusion.index.id, check))


def defer_link(
    writer: Writer, keys: KeyIndex, context: Context, link: Link, rows: Words, refused: Refused, *, of_child: bool
) -> None:
    """Check at the end that no row refers to nothing by the keys of these rows, of the child or of the parent."""
    writer.deferred.append((link.key.id, partial(_recheck, writer, keys, context, link, rows, refused, of_child)))


def _recheck(
    writer: Writer, keys: KeyIndex, context: Context, link: Link, rows: Words, refused: Refused, of_child: bool
) -> None:
    known = writer.catalog.relations
    child = known.get(link.child.id)
    if child is None or link.parent.id not in known or link.key.id not in {k.id for k in child.foreign_keys}:
        return
    sought, source = (link.child_check if of_child else link.parent_check).keys(rows, context)
    if not len(sought):
        return
    lost = keys.referred(link, sought, writer) <= 0
    lost &= keys.counts(link.child, link.child_check, sought, writer) > 0
    if lost.any():
        place = int(np.flatnonzero(lost)[0])
        raise refused(link, rows[place if source is None else int(source[place])])


def set_constraints(writer: Writer, statement: SetConstraints, names: SearchPathReader) -> None:
    """SET CONSTRAINTS; those that become immediate are checked at once. Raises 42704, 42809, and what the checks
    raise."""
    if statement.names is None:
        writer.deferring.clear()
        writer.all_deferred = statement.deferred
        chosen = None
    else:
        chosen = {id_ for name in statement.names for id_ in _named(writer.catalog, names, *name)}
        writer.deferring.update(dict.fromkeys(chosen, statement.deferred))
    if not statement.deferred:
        writer.check_deferred(chosen)


def _named(catalog: Catalog, names: SearchPathReader, schema_name: str | None, name: str) -> list[int]:
    """The constraints of that name in the first schema that has one."""
    places = names.path.places if schema_name is None else (names.schema(schema_name),)
    for place in places:
        inside = catalog.inside([place])
        found: list[tuple[int, bool]] = [(k.id, k.deferrable) for r in inside for k in r.foreign_keys if k.name == name]
        found += [(i.id, i.deferrable) for r in inside for i in r.all_indexes if i.constraint and i.name == name]
        found += [(c.id, False) for r in inside for c in r.checks if c.name == name]
        found += [(t.id, t.deferrable) for r in inside for t in r.triggers if t.constraint and t.name == name]
        if found and not all(deferrable for _, deferrable in found):
            raise SqlError("42809", f'constraint "{name}" is not deferrable')
        if found:
            return _with_copies(catalog, [id_ for id_, _ in found])
    raise SqlError("42704", f'constraint "{name}" does not exist')


def _with_copies(catalog: Catalog, ids: list[int]) -> list[int]:
    """The constraints, and their copies in partitions."""
    keys = sorted((k for r in catalog.relations.values() for k in r.foreign_keys if k.origin), key=lambda k: k.id)
    for key in keys:
        if key.origin in ids and key.id not in ids:
            ids.append(key.id)
    return ids
