"""Rows of information_schema's views about constraints.

As in PostgreSQL a column that is NOT NULL is a CHECK constraint too, named by oids; EXCLUDE constraints are in no view.
"""

from __future__ import annotations

from collections.abc import Iterator

from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.keys import ForeignKey, Index
from sql.catalog.links import key_index
from sql.catalog.securables import securable
from sql.catalog.system.definitions import Datums, Row
from sql.system.state import SystemState, indexed, user_relations
from sql.system.texts import check_definition

_CHANGING = "awdDxt"
"""The letters of the privileges that show a table's constraints to others than its owner."""


def key(state: SystemState, relation: Relation, name: str) -> dict[str, object]:
    """The columns that name a constraint and its table."""
    return {
        "constraint_catalog": state.database,
        "constraint_schema": relation.schema_name,
        "constraint_name": name,
        **_table(state, relation),
    }


def _table(state: SystemState, relation: Relation) -> dict[str, object]:
    return {
        "table_catalog": state.database,
        "table_schema": relation.schema_name,
        "table_name": relation.name,
    }


def _owns(state: SystemState, relation: Relation) -> bool:
    return state.roles.access.owns(state.role, securable(relation))


def _tables(state: SystemState, privileges: str = _CHANGING) -> Iterator[Relation]:
    """The tables that the current role owns, or has one of these privileges on."""
    access = state.roles.access
    for relation in user_relations(state, RelationKind.TABLE):
        what = securable(relation)
        if access.owns(state.role, what) or any(letter in privileges for letter in access.privileges(state.role, what)):
            yield relation


def _keys(state: SystemState, relation: Relation) -> Iterator[Index]:
    """A table's primary key and unique constraints."""
    return (i for r, i in indexed(state) if r.oid == relation.oid and i.constraint and not i.operators)


def _not_null(state: SystemState, relation: Relation) -> Iterator[tuple[str, str]]:
    """The names of the constraints of columns that are NOT NULL, and the columns' names."""
    schema = state.schemas()[relation.schema_name]
    for i, column in enumerate(relation.columns):
        if not column.nullable or i in relation.primary_key:
            yield f"{schema}_{relation.oid}_{i + 1}_not_null", column.name


def _parent(state: SystemState, foreign: ForeignKey) -> Relation:
    return next(r for r in user_relations(state, RelationKind.TABLE) if r.oid == foreign.parent)


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


def table_constraints(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation in _tables(state):
        found: list[tuple[str, str, bool, bool, str | None]] = []
        for index in _keys(state, relation):
            distinct = None if index.primary else _yes(index.nulls_distinct)
            kind = "PRIMARY KEY" if index.primary else "UNIQUE"
            found.append((index.name, kind, index.deferrable, index.deferred, distinct))
        found += [(f.name, "FOREIGN KEY", f.deferrable, f.deferred, None) for f in relation.foreign_keys]
        found += [(check.name, "CHECK", False, False, None) for check in relation.checks]
        found += [(name, "CHECK", False, False, None) for name, _ in _not_null(state, relation)]
        for name, kind, deferrable, deferred, distinct in found:
            yield row(
                constraint_type=kind, is_deferrable=_yes(deferrable), initially_deferred=_yes(deferred),
                enforced="YES", nulls_distinct=distinct, **key(state, relation, name),
            )  # fmt: skip


def key_column_usage(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation in _tables(state, "rawx"):
        for index in _keys(state, relation):
            for number, i in enumerate(index.columns):
                named = key(state, relation, index.name)
                yield row(column_name=relation.columns[i].name, ordinal_position=number + 1, **named)
        for foreign in relation.foreign_keys:
            parent = _parent(state, foreign)
            unique = key_index(parent, foreign.keys)
            order = [] if unique is None else [parent.columns[i].name for i in unique.columns]
            for number, (i, name) in enumerate(zip(foreign.columns, foreign.keys, strict=True)):
                yield row(
                    column_name=relation.columns[i].name, ordinal_position=number + 1,
                    position_in_unique_constraint=order.index(name) + 1 if name in order else None,
                    **key(state, relation, foreign.name),
                )  # fmt: skip


def referential_constraints(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation in _tables(state):
        for foreign in relation.foreign_keys:
            parent = _parent(state, foreign)
            index = key_index(parent, foreign.keys)
            unique: dict[str, object] = {}
            if index is not None and index.constraint:
                names = state.database, parent.schema_name, index.name
                columns = (f"unique_constraint_{part}" for part in ("catalog", "schema", "name"))
                unique = dict(zip(columns, names, strict=True))
            yield row(
                constraint_catalog=state.database, constraint_schema=relation.schema_name,
                constraint_name=foreign.name, match_option="FULL" if foreign.full else "NONE",
                update_rule=foreign.on_update.upper(), delete_rule=foreign.on_delete.upper(), **unique,
            )  # fmt: skip


def check_constraints(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from dict.fromkeys(_checks(state, row))  # tables may inherit one


def _checks(state: SystemState, row: Row) -> Iterator[Datums]:
    def found(owner: Relation, name: str, clause: str) -> Datums:
        return row(
            constraint_catalog=state.database, constraint_schema=owner.schema_name, constraint_name=name,
            check_clause=clause,
        )  # fmt: skip

    for relation in user_relations(state, RelationKind.TABLE):
        if _owns(state, relation):
            for check in relation.checks:
                text = check_definition(state, relation, check, pretty=False)
                yield found(relation, check.name, text.removeprefix("CHECK "))
            for name, column in _not_null(state, relation):
                yield found(relation, name, f"{column} IS NOT NULL")
    for domain in (t for t in state.types() if t.domain and _owns(state, t)):
        for check in domain.checks:
            text = check_definition(state, domain, check, pretty=False)
            yield found(domain, check.name, text.removeprefix("CHECK "))


def _used(state: SystemState) -> Iterator[tuple[Relation, Relation, str, list[str]]]:
    """What the current role's constraints use: the constraint's table, the table used, the constraint's name, and the
    names of the columns used."""
    for relation in user_relations(state, RelationKind.TABLE):
        for check in relation.checks:
            yield relation, relation, check.name, [relation.columns[i].name for i in check.columns]
        for index in _keys(state, relation):
            yield relation, relation, index.name, [relation.columns[i].name for i in index.columns]
        for foreign in relation.foreign_keys:
            yield relation, _parent(state, foreign), foreign.name, list(foreign.keys)


def constraint_column_usage(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation, used, name, columns in _used(state):
        for column in columns if _owns(state, used) else ():
            yield row(column_name=column, **{**key(state, relation, name), **_table(state, used)})


def constraint_table_usage(state: SystemState, row: Row) -> Iterator[Datums]:
    checks = {(r.oid, check.name) for r in user_relations(state, RelationKind.TABLE) for check in r.checks}
    for relation, used, name, _ in _used(state):
        if (relation.oid, name) not in checks and _owns(state, used):
            yield row(**{**key(state, relation, name), **_table(state, used)})
