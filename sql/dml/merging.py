"""MERGE: its rows by action, each action as the statement that it is."""

from __future__ import annotations

import numpy as np

from ivm.errors import SqlError
from ivm.rows import RowSet, Vector, Words, pack
from ivm.words import OID, TEXT, ColumnType, Schema
from planner.expr.scalar import Column, Scalar
from sql.dml.changes import Changed, Changer
from sql.dml.family import part, shares, stored_rows
from sql.dml.triggers import firing
from sql.dml.view_layers import through
from sql.statements.statements import Delete, Insert, Merge, Update
from storage.types.codec import encode


def merge(changer: Changer, statement: Merge, source: RowSet) -> Changed:
    """Delete, update and add the source's rows, in this order; RETURNING's rows are in the source's. Raises 21000 if a
    row would be changed twice."""
    actions = tuple(kind for kind in ("insert", "update", "delete") if kind in statement.actions)
    with firing(changer, statement.table, actions):
        return _merge(changer, statement, source)


def _merge(changer: Changer, statement: Merge, source: RowSet) -> Changed:
    width, kinds = statement.width, _kinds(statement, source)
    old, new = tuple(range(1, 1 + width)), tuple(range(1 + width, 1 + 2 * width))
    _check_once(changer, statement, changed_rows(statement, source)[1])
    policies = statement.policies
    for kind, layers in (("update", policies.updates), ("delete", policies.deletes)):
        rows = part(source, np.flatnonzero(kinds == kind), old)
        through(statement.table, layers, rows, changer.row_values(), changer.context.dictionary, check=True)
    places = {kind: np.flatnonzero(kinds == kind) for kind in ("delete", "update", "insert")}
    columns = tuple(Column(i, c.type, c.nullable) for i, c in enumerate(source.schema[1 : 1 + width]))
    found = [
        changer.delete(_delete(statement, columns), part(source, places["delete"], old)),
        changer.update(_update(statement, columns), part(source, places["update"], (*old, *new))),
        changer.insert(_insert(statement), part(source, places["insert"], new[: len(statement.table.columns)])),
    ]
    if statement.returning is None and not statement.layers:
        return Changed(len(source))
    shown = _shown(changer, statement, source, places, found)
    return Changed(len(source), changer.returning(statement.returning, shown))


def _kinds(statement: Merge, source: RowSet) -> Words:
    """The name of each row's action."""
    return np.array(["", *statement.actions])[source.columns()[0].words]


def changed_rows(statement: Merge, source: RowSet) -> tuple[Delete, RowSet]:
    """The old rows that are updated or deleted, as the source of a deletion."""
    kinds = _kinds(statement, source)
    changing = np.flatnonzero((kinds == "delete") | (kinds == "update"))
    return _delete(statement, ()), part(source, changing, tuple(range(1, 1 + statement.width)))


def twice() -> SqlError:
    """21000: a row would be changed by two actions, or by another part of the statement too."""
    hint = "Ensure that not more than one source row matches any one target row."
    return SqlError("21000", "MERGE command cannot affect row a second time", hint=hint)


def _check_once(changer: Changer, statement: Merge, old: RowSet) -> None:
    """21000 if the rows hold one of the table's rows more often than the table."""
    if statement.branches:
        groups = [(s.branch.table, s.old) for s in shares(_delete(statement, ()), old)]
    else:
        groups = [(statement.table, stored_rows(old, statement.table.schema))]
    for table, rows in groups:
        if len(changer.once(table, rows)) < len(rows):
            raise twice()


def _delete(statement: Merge, columns: tuple[Scalar, ...]) -> Delete:
    width = statement.width if statement.branches else 0
    return Delete(statement.table, statement.source, columns, branches=statement.branches, width=width)


def _update(statement: Merge, columns: tuple[Scalar, ...]) -> Update:
    width = statement.width if statement.branches else 0
    layers = statement.policies.updated
    return Update(
        statement.table, statement.source, columns, branches=statement.branches, width=width, layers=layers
    )  # fmt: skip


def _insert(statement: Merge) -> Insert:
    table = statement.table
    columns: list[Scalar] = [Column(i, c.type, c.nullable) for i, c in enumerate(table.columns)]
    if statement.branches:
        columns.append(Column(len(columns), OID, False))
    layers = statement.policies.inserted
    return Insert(table, statement.source, tuple(columns), oid=bool(statement.branches), layers=layers)


def _shown(
    changer: Changer, statement: Merge, source: RowSet, places: dict[str, Words], found: list[Changed]
) -> RowSet:
    """The rows that RETURNING reads."""
    width, own = statement.width, len(statement.table.columns)
    wide: Schema = source.schema[1 : 1 + width]
    schema = tuple(ColumnType(c.type, True) for c in wide)
    rows = [Vector(np.zeros(len(source), np.int64), np.ones(len(source), np.bool_)) for _ in wide]
    for kind, changed in zip(places, found, strict=True):
        assert changed.returning is not None, "every part returns its rows"
        given = changed.returning.columns()
        targets = range(width) if kind != "insert" else (*range(own), *((width - 1,) if statement.branches else ()))
        for i, vector in zip(targets, given, strict=True):
            rows[i].words[places[kind]] = vector.words
            nulls = rows[i].nulls
            assert nulls is not None
            nulls[places[kind]] = False if vector.nulls is None else vector.nulls
    kept = np.sort(np.concatenate([places["update"], places["insert"]]))
    values, dictionary = changer.row_values(), changer.context.dictionary
    base = RowSet(pack(rows, schema, len(source)), schema)
    if statement.layers:
        through(
            statement.table, statement.layers, part(base, kept, tuple(range(width))), values, dictionary, check=True
        )
    base = through(statement.table, statement.layers, base, values, dictionary, check=False)
    names = encode(TEXT, [statement.actions[n - 1].upper() for n in source.columns()[0].words.tolist()], dictionary)
    others = 1 + 2 * width + len(base.schema) - width
    vectors = [names, *base.columns(), *source.columns()[others:]]
    kinds = (ColumnType(TEXT, False), *base.schema, *source.schema[others:])
    return RowSet(pack(vectors, kinds, len(source)), kinds)
