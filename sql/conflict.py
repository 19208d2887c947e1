"""INSERT … ON CONFLICT DO UPDATE: which proposed rows are added and which change the row that is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Mask, RowSet, Vector, Words, pack, unpack
from ivm.words import ColumnType
from planner.context import Context
from planner.evaluate import evaluate
from planner.scalar import Scalar
from sql.catalog import Relation
from sql.constraints import fit
from sql.key_index import KeyIndex, Probed, Settle, TableKey, first_of_each
from sql.statements import OnConflict


@dataclass(frozen=True, slots=True)
class Upserted:
    """Rows of the table's layout: ``old`` are replaced by ``new[updates]``, the other ``new`` are added.

    ``new`` is in the order of the rows proposed.
    """

    old: Words
    new: Words
    updates: Mask


def upsert(
    table: Relation, conflict: OnConflict, rows: Words, keys: KeyIndex, context: Context, settle: Settle
) -> Upserted:
    """What becomes of proposed ``rows``. 21000 when a row would be changed twice; constraints are not checked yet."""
    held, holder = np.zeros(len(rows), np.bool_), np.zeros_like(rows)
    for key in keys.of(table):
        if key.index not in conflict.arbiters:
            continue
        probed = keys.probe(table, key, rows[:0], rows, context, settle)
        taken = probed.spread(probed.held > 0, len(rows), False)
        if not probed.spread((probed.held > 0) | first_of_each(probed.keys), len(rows), True).all():
            raise _second_time()
        fresh = taken & ~held
        if fresh.any():
            holder[fresh] = _holders(table, key, keys, probed, fresh, settle)
            held |= fresh
    assert conflict.changed is not None, "DO NOTHING has no rows to change"
    places = np.flatnonzero(held)
    old = np.ascontiguousarray(holder[places])
    columns = [*unpack(old, table.schema), *unpack(np.ascontiguousarray(rows[places]), table.schema)]
    wanted = _wanted(conflict, columns, len(places), context)
    _check_once(old, wanted)
    kept = np.flatnonzero(wanted)
    changed = _changed(table, conflict, [_taken(v, kept) for v in columns], len(kept), context)
    out = rows.copy()
    out[places[kept]] = changed
    present = np.ones(len(rows), np.bool_)
    present[places[~wanted]] = False
    return Upserted(old[kept], out[present], held[present])


def _holders(table: Relation, key: TableKey, keys: KeyIndex, probed: Probed, fresh: Mask, settle: Settle) -> Words:
    """The row that is there for each of the ``fresh`` rows."""
    wanted = fresh if probed.source is None else fresh[probed.source]
    sought = np.ascontiguousarray(probed.keys[wanted])
    found, place = keys.holders(table, key.guard, sought, settle)
    result = np.zeros((len(sought), found.shape[1]), np.int64)
    result[place] = found
    return result


def _wanted(conflict: OnConflict, columns: list[Vector], count: int, context: Context) -> Mask:
    if conflict.where is None:
        return np.ones(count, np.bool_)
    (result,) = _values((conflict.where,), columns, count, context)
    mask = np.asarray(result.words != 0)
    return mask if result.nulls is None else mask & ~result.nulls


def _check_once(old: Words, wanted: Mask) -> None:
    """21000 when a row that is changed is met again after that."""
    if len(old) < 2:
        return
    _, group = np.unique(old, axis=0, return_inverse=True)
    done: set[int] = set()
    for place, changes in zip(group.reshape(-1).tolist(), wanted.tolist(), strict=True):
        if place in done:
            raise _second_time()
        if changes:
            done.add(place)


def _changed(table: Relation, conflict: OnConflict, columns: list[Vector], count: int, context: Context) -> Words:
    assert conflict.changed is not None
    vectors = _values(conflict.changed, columns, count, context)
    schema = tuple(ColumnType(c.type, v.nulls is not None) for c, v in zip(table.columns, vectors, strict=True))
    return fit(table, RowSet(pack(vectors, schema, count), schema), context.dictionary)


def _values(exprs: Sequence[Scalar], columns: list[Vector], count: int, context: Context) -> list[Vector]:
    vectors, failures = evaluate(exprs, columns, count, context)
    if failures is not None:
        raise failures.errors[0]
    return vectors


def _taken(vector: Vector, places: Words) -> Vector:
    return Vector(vector.words[places], None if vector.nulls is None else vector.nulls[places])


def _second_time() -> SqlError:
    return SqlError(
        "21000", "ON CONFLICT DO UPDATE command cannot affect row a second time",
        hint="Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
    )  # fmt: skip
