"""INSERT, ON CONFLICT and UPDATE of partitioned tables: each row goes to the partition that accepts it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ivm.errors import SqlError
from ivm.rows import RowSet, Vector, Words, pack, unpack
from planner.expr.scalar import Scalar
from planner.logical.levels import relevel
from sql.bind.generation import generated_columns
from sql.catalog.catalog import Relation
from sql.catalog.keys import Index
from sql.dml.constraints import fit
from sql.dml.family import BranchRows, chosen_rows, shares
from sql.dml.routing import Routed
from sql.dml.row_changes import RowChanger
from sql.statements.statements import Insert, OnConflict, Update


def routed(changer: RowChanger, table: Relation, rows: Words) -> list[Routed]:
    """A partitioned table's rows, grouped by partition. Raises 23514, 23502."""
    found = changer.router()
    if table.bound is not None:
        found.check(table, rows)
    return found.route(table, rows)


def insert_routed(changer: RowChanger, table: Relation, rows: Words) -> Words:
    """Add rows of a partitioned table's layout; the oid of each row's partition."""
    oids = np.zeros(len(rows), np.int64)
    parts = routed(changer, table, rows)
    for part in parts:
        changer.check_rows(part.leaf, part.rows[:0], part.rows)
        changer.note(part.leaf, part.rows[:0], part.rows)
        oids[part.places] = part.leaf.oid
    for part in parts:
        changer.keep_references(part.leaf, part.rows[:0], None, part.rows)
    return oids


def insert_unless_held(changer: RowChanger, statement: Insert, rows: Words) -> tuple[Words, Words]:
    """INSERT … ON CONFLICT: the rows added or changed, in the table's layout, and the oids of their partitions."""
    assert statement.conflict is not None
    found, oids = [rows[:0]], [np.zeros(0, np.int64)]
    for part in routed(changer, statement.table, rows):
        conflict = conflict_of(statement.conflict, statement.table, part.leaf)
        done = _conflicting(changer, part, conflict)
        found.append(changer.router().converted(part.leaf, statement.table, done))
        oids.append(np.full(len(done), part.leaf.oid, np.int64))
    return np.concatenate(found), np.concatenate(oids)


def _conflicting(changer: RowChanger, part: Routed, conflict: OnConflict) -> Words:
    """Insert into one partition. 0A000 if a changed row would have to move to another one."""
    try:
        return changer.insert_conflicting(part.leaf, conflict, part.rows)
    except SqlError as error:
        if not error.message.endswith("violates partition constraint"):
            raise
        detail = "The result tuple would appear in a different partition than the original tuple."
        raise SqlError("0A000", "invalid ON UPDATE specification", detail) from None


def conflict_of(conflict: OnConflict, table: Relation, leaf: Relation) -> OnConflict:
    """A partitioned table's ON CONFLICT clause, translated for one of its partitions."""
    own = [c.name for c in leaf.columns]
    arbiters = tuple(_matching(table, leaf, index) for index in conflict.arbiters)
    width = len(own)
    if conflict.changed is None:
        return replace(conflict, arbiters=arbiters)

    def place(i: int) -> int:
        return own.index(table.columns[i % width].name) + (i // width) * width

    def moved(expr: Scalar) -> Scalar:
        return relevel(expr, lambda level, i: (level, i if level else place(i)))

    changed = {table.columns[i].name: moved(expr) for i, expr in enumerate(conflict.changed)}
    where = None if conflict.where is None else moved(conflict.where)
    return replace(conflict, arbiters=arbiters, changed=tuple(changed[name] for name in own), where=where)


def _matching(table: Relation, leaf: Relation, index: Index) -> Index:
    """The partition's index that corresponds to one of the table's."""
    wanted = {table.columns[i].name for i in index.columns}
    for own in leaf.keys:
        if {leaf.columns[i].name for i in own.columns} == wanted:
            return own
    message = "there is no unique or exclusion constraint matching the ON CONFLICT specification"
    raise SqlError("42P10", message)


def update_routed(changer: RowChanger, statement: Update, source: RowSet) -> RowSet:
    """Change rows of a partitioned table, moving them between partitions as needed; the rows for RETURNING."""
    table = statement.table
    kept: list[tuple[BranchRows, Words]] = [
        (share, changer.once(share.branch.table, share.old)) for share in shares(statement, source)
    ]
    places = [share.places[once] for share, once in kept]
    found = chosen_rows(source, places)
    at = np.sort(np.concatenate(places)) if places else np.zeros(0, np.int64)
    columns = found.columns()[statement.width : statement.width + len(table.columns)]
    schema = found.schema[statement.width : statement.width + len(table.columns)]
    new = fit(table, RowSet(pack(columns, schema, len(found)), schema), changer.context)
    parts = {part.leaf.id: part for part in routed(changer, table, new)}
    olds = {s.branch.table.id: (s.branch.table, np.searchsorted(at, s.places[once]), s.old[once]) for s, once in kept}
    for id_ in dict.fromkeys((*olds, *parts)):
        _check(changer, id_, olds, parts)
    steps = [s for id_ in dict.fromkeys((*olds, *parts)) for s in _steps(changer, table, id_, olds, parts, new)]
    for step in steps:
        changer.note(step.leaf, step.old, step.new, None if step.moved else step.replaced)
    for step in steps:
        changer.keep_references(step.leaf, step.old, step.replaced, step.new, moved=step.moved)
    shown = list(found.columns()[statement.width :])
    oids = np.zeros(len(found), np.int64)
    for part in parts.values():
        oids[part.places] = part.leaf.oid
    shown[statement.width - 1] = Vector(oids)
    for i, _ in generated_columns(table):
        shown[i] = unpack(new, table.row_schema)[i]
    kinds = found.schema[statement.width :]
    return RowSet(pack(shown, kinds, len(found)), kinds)


Olds = dict[int, tuple[Relation, Words, Words]]
"""By partition: its relation, the positions of its rows among the changed ones, and the old rows."""


def _check(changer: RowChanger, id_: int, olds: Olds, parts: dict[int, Routed]) -> None:
    """Raises 23514 or 23505 if a partition rejects its new rows."""
    part = parts.get(id_)
    if part is None:
        return
    old = olds[id_][2] if id_ in olds else part.rows[:0]
    changer.check_rows(part.leaf, old, part.rows)


@dataclass(frozen=True, slots=True)
class _Step:
    """A change of one partition. ``moved``: its old rows go to other partitions, as ``replaced`` in its layout."""

    leaf: Relation
    old: Words
    new: Words
    replaced: Words | None
    moved: bool = False


def _steps(
    changer: RowChanger, table: Relation, id_: int, olds: Olds, parts: dict[int, Routed], new: Words
) -> Iterator[_Step]:
    """Rows that leave a partition, those that stay, those that arrive. ``new``: all new rows, in the table's layout."""
    part = parts.get(id_)
    if id_ not in olds:
        assert part is not None
        yield _Step(part.leaf, part.rows[:0], part.rows, None)
        return
    leaf, places, old = olds[id_]
    here = places[:0] if part is None else part.places
    leaving = ~np.isin(places, here)
    if leaving.any():
        gone = changer.router().converted(table, leaf, new[places[leaving]])
        yield _Step(leaf, old[leaving], old[:0], gone, moved=True)
    if part is None:
        return
    coming = ~np.isin(part.places, places)
    order = np.argsort(part.places[~coming], kind="stable")
    staying = np.argsort(places[~leaving], kind="stable")
    after = part.rows[~coming][order]
    yield _Step(leaf, old[~leaving][staying], after, after)
    yield _Step(leaf, old[:0], part.rows[coming], None)
