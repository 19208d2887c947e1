"""Foreign keys: the checks on both sides at the end of a statement, and the referential actions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ivm.errors import SqlError, Subject
from ivm.rows import Vector, Words, unpack
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluated
from sql.bind.entry_points import environment_of
from sql.bind.target import column_default
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.links import Link
from sql.catalog.search_path import SearchPathReader
from sql.dml.constraints import key_text
from sql.dml.deferring import defer_link
from sql.dml.key_index import KeyIndex, first_of_each
from sql.engine.writer import Writer


def check_emptied(child: Relation, parent: Relation) -> None:
    """0A000 if commits delete the rows that the child refers to, and not its own."""
    if parent.empties and not child.empties:
        detail = f'Table "{child.name}" references "{parent.name}", but they do not have the same ON COMMIT setting.'
        raise SqlError("0A000", "unsupported ON COMMIT and foreign key combination", detail)


@dataclass(frozen=True, slots=True)
class Follows:
    """Rows of a referring table that a referential action deletes, or (with ``columns``) replaces."""

    table: Relation
    rows: Words
    columns: list[Vector] | None = None


@dataclass(frozen=True, slots=True)
class References:
    """The foreign keys of a writer's catalog, checked against its state."""

    writer: Writer
    keys: KeyIndex
    context: Context

    def after(
        self, table: Relation, old: Words, replaced: Words | None, new: Words, *, moved: bool = False
    ) -> Iterator[Follows]:
        """Check a table's change, which is noted already, and yield the referential actions that follow from it.

        ``replaced``: the new row for each of the ``old`` rows (None: they were deleted). ``new``: all rows that were
        added. ``moved``: the old rows have gone to other partitions, as ``replaced``. Raises 23503. Invariant: the
        caller makes each yielded change before it asks for the next one, whose lookups must see it. Cost: in the rows
        changed and those that refer to them.
        """
        links = self.keys.links(self.writer.catalog)
        for link in links.incoming.get(table.id, ()):
            if len(old) and link.child.partitioning is None:
                yield from self._following(link, old, self._successors(link, replaced) if moved else replaced)
        for link in links.outgoing.get(table.id, ()):
            self.check_present(link, new)

    def _successors(self, link: Link, replaced: Words | None) -> Words | None:
        """What rows that moved to another partition are replaced by, for a foreign key. One to the partition itself has
        lost them. Raises 0A000 for one to a table between the partition and the topmost."""
        if link.declared.id == link.parent.id:
            return None
        if link.declared.bound is not None:
            above = self.writer.catalog.above(link.declared)
            root = next(r for r in above if r.bound is None)
            raise SqlError(
                "0A000", "cannot move tuple across partitions when a non-root ancestor of the source partition is "
                "directly referenced in a foreign key",
                f'A foreign key points to ancestor "{link.declared.name}" but not the root ancestor "{root.name}".',
                f'Consider defining the foreign key on table "{root.name}".',
            )  # fmt: skip
        return replaced

    def check_unreferenced(self, link: Link, rows: Words, name: str) -> None:
        """23503 if a row of a partition that is removed is referred to. ``name``: of what is removed."""
        keys, source = link.parent_check.keys(rows, self.context)
        held = self.keys.counts(link.child, link.child_check, keys, self.writer) > 0
        if held.any():
            place = int(np.flatnonzero(held)[0])
            row = rows[place if source is None else int(source[place])]
            detail = key_text(link.parent, link.places, row, self.context.dictionary)
            raise SqlError(
                "23503", f'removing partition "{name}" violates foreign key constraint "{link.key.name}"',
                f'{detail} is still referenced from table "{link.owner.name}".', subject=_subject(link),
            )  # fmt: skip

    def lock_referred(self, table: Relation, rows: Words) -> None:
        """Lock what new rows of a table refer to. Raises BlockedError."""
        for link in self.keys.links(self.writer.catalog).outgoing.get(table.id, ()):
            self.keys.lock_referred(link, link.child_check.keys(rows, self.context)[0], self.writer)

    def check_present(self, link: Link, rows: Words) -> None:
        """23503 for the first row whose key matches no row of the parent, or (MATCH FULL) is NULL in part."""
        if link.key.full and len(link.key.columns) > 1:
            _check_whole(link, rows)
        keys, source = link.child_check.keys(rows, self.context)
        if not len(keys):
            return
        if self.writer.is_deferred(link.key):
            defer_link(self.writer, self.keys, self.context, link, rows, partial(_absent, self.context), of_child=True)
            return
        writer = self.writer
        self.keys.lock_referred(link, keys, writer)
        missing = self.keys.referred(link, keys, writer) <= 0
        if missing.any():
            place = int(np.flatnonzero(missing)[0])
            row = rows[place if source is None else int(source[place])]
            raise _absent(self.context, link, row)

    def _following(self, link: Link, old: Words, replaced: Words | None) -> Iterator[Follows]:
        """The referential actions on rows that refer to removed keys."""
        keys, source = link.parent_check.keys(old, self.context)
        rows = np.arange(len(old)) if source is None else source
        first = first_of_each(keys)
        keys, rows = np.ascontiguousarray(keys[first]), rows[first]
        writer = self.writer
        gone = self.keys.referred(link, keys, writer) <= 0
        if not gone.any():
            return
        keys, rows = np.ascontiguousarray(keys[gone]), rows[gone]
        action = link.key.on_delete if replaced is None else link.key.on_update
        if action == "no action" and self.writer.is_deferred(link.key):
            refused = partial(_still_referenced, self.context)
            defer_link(self.writer, self.keys, self.context, link, old[rows], refused, of_child=False)
            return
        children, place = self.keys.holders(link.child, link.child_check, keys, writer)
        if not len(children):
            return
        match action:
            case "no action" | "restrict":
                raise _still_referenced(self.context, link, old[rows[int(place.min())]])
            case "cascade" if replaced is None:
                yield Follows(link.child, children)
            case "cascade":
                assert replaced is not None, "an update"
                yield Follows(link.child, children, _with_new_keys(link, children, replaced[rows[place]]))
            case _:
                columns = (link.key.changed if replaced is None else ()) or link.key.columns
                catalog = self.writer.catalog if action == "set default" else None
                yield Follows(link.child, children, _without(link, children, columns, self.context, catalog))


def _check_whole(link: Link, rows: Words) -> None:
    """23503 for a row in which some columns of the key are NULL and others are not."""
    vectors = unpack(rows, link.child.schema)
    nulls = [np.zeros(len(rows), np.bool_) if (n := vectors[i].nulls) is None else n for i in link.key.columns]
    if (np.logical_or.reduce(nulls) & ~np.logical_and.reduce(nulls)).any():
        raise SqlError(
            "23503", f'insert or update on table "{link.child.name}" violates foreign key constraint "{link.key.name}"',
            "MATCH FULL does not allow mixing of null and nonnull key values.", subject=_subject(link),
        )  # fmt: skip


def _absent(context: Context, link: Link, row: Words) -> SqlError:
    detail = key_text(link.child, link.key.columns, row, context.dictionary)
    return SqlError(
        "23503", f'insert or update on table "{link.child.name}" violates foreign key constraint "{link.key.name}"',
        f'{detail} is not present in table "{link.declared.name}".', subject=_subject(link),
    )  # fmt: skip


def _still_referenced(context: Context, link: Link, row: Words) -> SqlError:
    parent, child = link.parent.name, link.owner.name
    detail = key_text(link.parent, link.places, row, context.dictionary)
    return SqlError(
        "23503",
        f'update or delete on table "{parent}" violates foreign key constraint "{link.key.name}" on table "{child}"',
        f'{detail} is still referenced from table "{child}".',
        subject=_subject(link),
    )


def _subject(link: Link) -> Subject:
    """Postgres's errors name the referring table, whichever side was changed."""
    return Subject(link.child.schema_name, link.child.name, constraint=link.key.name)


def _with_new_keys(link: Link, children: Words, parents: Words) -> list[Vector]:
    """The child rows with their parents' new keys (ON UPDATE CASCADE)."""
    vectors, given = unpack(children, link.child.schema), unpack(parents, link.parent.schema)
    for column, place in zip(link.key.columns, link.places, strict=True):
        vectors[column] = given[place]
    return vectors


def _without(
    link: Link, children: Words, columns: tuple[int, ...], context: Context, defaults: Catalog | None
) -> list[Vector]:
    """The child rows with these columns set to NULL, or to the catalog's ``defaults``."""
    vectors, count = unpack(children, link.child.schema), len(children)
    for column in columns:
        vectors[column] = Vector(np.zeros(count, np.int64), np.ones(count, np.bool_))
        if defaults is not None:
            expr = column_default(environment_of(SearchPathReader(defaults)), link.child.columns[column])
            (vectors[column],) = evaluated((expr,), [], count, context)
    return vectors
