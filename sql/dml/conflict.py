"""INSERT … ON CONFLICT DO UPDATE: which proposed rows are added, and which change an existing row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ivm.distinct import distinct_rows
from ivm.errors import SqlError
from ivm.rows import Mask, RowSet, Vector, Words, pack, unpack
from ivm.words import OID, ColumnType
from planner.expr.context import Context
from sql.catalog.catalog import Relation
from sql.dml.constraints import fit
from sql.dml.key_index import KeyIndex, Probed, TableKey, first_of_each
from sql.dml.row_values import RowValues
from sql.dml.view_layers import joined, through
from sql.engine.writer import Writer
from sql.statements.statements import OnConflict


@dataclass(frozen=True, slots=True)
class Upserted:
    """Rows of the table's layout: ``old`` are replaced by ``new[updates]``, the other ``new`` rows are added.

    ``new`` is in the order of the proposed rows.
    """

    old: Words
    new: Words
    updates: Mask


def upsert(
    table: Relation,
    conflict: OnConflict,
    rows: Words,
    keys: KeyIndex,
    context: Context,
    writer: Writer,
    values: RowValues,
) -> Upserted:
    """Resolve the conflicts of the proposed ``rows``. 21000 if a row would be changed twice; constraints are not
    checked yet."""
    held, holder = np.zeros(len(rows), np.bool_), np.zeros_like(rows)
    for key in keys.of(table):
        if key.index not in conflict.arbiters:
            continue
        probed = keys.probe(table, key, rows[:0], rows, context, writer)
        taken = probed.spread(probed.held > 0, len(rows), False)
        if not probed.spread((probed.held > 0) | first_of_each(probed.keys), len(rows), True).all():
            raise _second_time()
        fresh = taken & ~held
        if fresh.any():
            holder[fresh] = _holders(table, key, keys, probed, fresh, writer)
            held |= fresh
    assert conflict.changed is not None, "DO NOTHING has no rows to change"
    places = np.flatnonzero(held)
    old = np.ascontiguousarray(holder[places])
    both = _both(table, conflict, old, np.ascontiguousarray(rows[places]), context, values)
    wanted = _wanted(conflict, both, values)
    _check_once(old, wanted)
    kept = np.flatnonzero(wanted)
    through(table, conflict.present, RowSet(old[kept], table.schema), values, context.dictionary, check=True)
    changed = _changed(table, conflict, RowSet(both.rows[kept], both.schema), context, values)
    through(table, conflict.updated, RowSet(changed, table.row_schema), values, context.dictionary, check=True)
    out = rows.copy()
    out[places[kept]] = changed
    present = np.ones(len(rows), np.bool_)
    present[places[~wanted]] = False
    return Upserted(old[kept], out[present], held[present])


def _both(
    table: Relation, conflict: OnConflict, old: Words, proposed: Words, context: Context, values: RowValues
) -> RowSet:
    """The present rows beside the proposed ones, and the layers' columns of both."""
    columns = [*unpack(old, table.schema), *unpack(proposed, table.schema)]
    schema = table.schema * 2
    for rows in (old, proposed) if conflict.layers else ():
        own = RowSet(rows, table.schema)
        if conflict.oid:
            oids = Vector(np.full(len(rows), table.oid, np.int64))
            own = joined([*own.columns(), oids], (*own.schema, ColumnType(OID, False)))
        seen = through(table, conflict.layers, own, values, context.dictionary, check=False)
        columns += seen.columns()[len(own.schema) :]
        schema = (*schema, *seen.schema[len(own.schema) :])
    return RowSet(pack(columns, schema, len(old)), schema)


def _holders(table: Relation, key: TableKey, keys: KeyIndex, probed: Probed, fresh: Mask, writer: Writer) -> Words:
    """The existing row in conflict with each of the ``fresh`` rows."""
    wanted = fresh if probed.source is None else fresh[probed.source]
    sought = np.ascontiguousarray(probed.keys[wanted])
    found, place = keys.holders(table, key.key_check, sought, writer)
    result = np.zeros((len(sought), found.shape[1]), np.int64)
    result[place] = found
    return result


def _wanted(conflict: OnConflict, both: RowSet, values: RowValues) -> Mask:
    if conflict.where is None:
        return np.ones(len(both), np.bool_)
    (result,) = values((conflict.where,), both)
    mask = np.asarray(result.words != 0)
    return mask if result.nulls is None else mask & ~result.nulls


def _check_once(old: Words, wanted: Mask) -> None:
    """21000 if a changed row conflicts with another proposed row."""
    if len(old) < 2:
        return
    group = distinct_rows(old).place
    done: set[int] = set()
    for place, changes in zip(group.tolist(), wanted.tolist(), strict=True):
        if place in done:
            raise _second_time()
        if changes:
            done.add(place)


def _changed(table: Relation, conflict: OnConflict, both: RowSet, context: Context, values: RowValues) -> Words:
    assert conflict.changed is not None
    vectors = values(conflict.changed, both)
    schema = tuple(ColumnType(c.type, v.nulls is not None) for c, v in zip(table.columns, vectors, strict=True))
    return fit(table, RowSet(pack(vectors, schema, len(both)), schema), context)


def _second_time() -> SqlError:
    return SqlError(
        "21000", "ON CONFLICT DO UPDATE command cannot affect row a second time",
        hint="Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
    )  # fmt: skip
