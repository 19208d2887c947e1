"""Rows of information_schema's views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ivm.words import Kind, SqlType
from planner.logical.traversal import columns_of
from sql.bind.domains import not_null as domain_not_null
from sql.bind.entry_points import environment_of
from sql.bind.environment import Environment
from sql.bind.generation import generated_columns
from sql.bind.view_targets import fires_instead, updatable_columns
from sql.catalog.access import NAMESPACE, Securable
from sql.catalog.catalog import Relation, RelationKind, TableColumn
from sql.catalog.securables import securable
from sql.catalog.system.definitions import Datums, Row
from sql.catalog.user_types import type_of_oid
from sql.system.pg_sequences import sequences_of
from sql.system.state import SystemState, own_relations, user_relations
from sql.system.texts import default_text, view_definition
from storage.types.type_names import format_type, internal_name, type_oid, typmod

_MAX_OCTETS: Final = 1 << 30
_BITS: Final = {Kind.INT2: 16, Kind.INT4: 32, Kind.INT8: 64}
_MANTISSA: Final = {Kind.FLOAT4: 24, Kind.FLOAT8: 53}
_TIMES: Final = (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)
_TABLE_TYPES: Final = {"r": "BASE TABLE", "p": "BASE TABLE", "v": "VIEW"}
"""Materialized views are not in information_schema, as in Postgres."""


def information_schema_catalog_name(state: SystemState, row: Row) -> Iterator[Datums]:
    yield row(catalog_name=state.database)


def schemata(state: SystemState, row: Row) -> Iterator[Datums]:
    access = state.roles.access
    for name, oid in state.schemas().items():
        owner = access.owner(Securable(NAMESPACE, oid, "n"))
        if access.may_act_as(state.role, owner):
            yield row(catalog_name=state.database, schema_name=name, schema_owner=state.roles.name(owner))


def tables(state: SystemState, row: Row) -> Iterator[Datums]:
    env = _environment(state)
    for relation, kind in own_relations(state):
        if kind in _TABLE_TYPES:
            yield row(
                table_catalog=state.database, table_schema=relation.schema_name, table_name=relation.name,
                table_type="LOCAL TEMPORARY" if relation.temporary else _TABLE_TYPES[kind], is_typed="NO",
                is_insertable_into=_yes(any(_updatable(relation, env))),
            )  # fmt: skip


def views(state: SystemState, row: Row) -> Iterator[Datums]:
    env = _environment(state)
    for relation in user_relations(state, RelationKind.VIEW):
        changed = _yes(any(_updatable(relation, env)))
        yield row(
            table_catalog=state.database, table_schema=relation.schema_name, table_name=relation.name,
            view_definition=view_definition(relation, state),
            check_option=(relation.option("check_option") or "none").upper(), is_updatable=changed,
            is_insertable_into=changed,
            is_trigger_updatable=_yes(fires_instead(relation, "update")),
            is_trigger_deletable=_yes(fires_instead(relation, "delete")),
            is_trigger_insertable_into=_yes(fires_instead(relation, "insert")),
        )  # fmt: skip


def columns(state: SystemState, row: Row) -> Iterator[Datums]:
    env = _environment(state)
    for relation, kind in own_relations(state):
        if kind in _TABLE_TYPES:
            changed = _updatable(relation, env)
            for i, column in enumerate(relation.columns):
                yield row(**_column(state, relation, kind, i, column), is_updatable=_yes(changed[i]))


def _column(state: SystemState, relation: Relation, kind: str, i: int, column: TableColumn) -> dict[str, object]:
    not_null = kind in "rp" and (not column.nullable or i in relation.primary_key)
    not_null = not_null or (column.domain is not None and domain_not_null(column.domain))
    domain: dict[str, object] = {}
    if column.domain is not None:
        names = state.database, column.domain.schema_name, column.domain.name
        domain = dict(zip(("domain_catalog", "domain_schema", "domain_name"), names, strict=True))
    return dict(
        table_catalog=state.database, table_schema=relation.schema_name, table_name=relation.name,
        column_name=column.name, ordinal_position=i + 1,
        column_default=None if column.expression is not None else default_text(state, relation, column),
        is_nullable="NO" if not_null else "YES", **_type(state, column.type), **domain, dtd_identifier=str(i + 1),
        is_self_referencing="NO", **_generation(state, relation, column), **_identity(state, column),
        **_limits(column.type),
    )  # fmt: skip


def _type(state: SystemState, type_: SqlType) -> dict[str, object]:
    """The columns that name a type."""
    data_type = "ARRAY" if type_.kind is Kind.ARRAY else format_type(type_, False)
    inner = type_.element or type_
    own = type_of_oid((*state.types(), *state.relations()), type_oid(inner))
    if own is not None and type_.kind is not Kind.ARRAY:
        data_type = "USER-DEFINED"
    schema, name = "pg_catalog" if own is None else own[0].schema_name, internal_name(type_)
    if inner.domain is not None:
        schema, name = inner.domain.schema_name, inner.domain.name
        data_type, name = ("ARRAY", f"_{name}"[:63]) if inner is not type_ else ("USER-DEFINED", name)
    return {"data_type": data_type, "udt_catalog": state.database, "udt_schema": schema, "udt_name": name}


def domains(state: SystemState, row: Row) -> Iterator[Datums]:
    for domain in _domains(state):
        (value,) = domain.columns
        below = value.own_type(value.type)
        data = {**_type(state, below), "dtd_identifier": "1"}
        if value.domain is not None or value.type.element is not None:
            data["data_type"] = "USER-DEFINED"  # as in Postgres
        limits = _limits(value.type) if value.domain is None else {}
        yield row(
            domain_catalog=state.database, domain_schema=domain.schema_name, domain_name=domain.name,
            domain_default=value.default, **data, **limits,
        )  # fmt: skip


def domain_constraints(state: SystemState, row: Row) -> Iterator[Datums]:
    for domain in _domains(state):
        for check in domain.checks:
            yield row(
                constraint_catalog=state.database, constraint_schema=domain.schema_name, constraint_name=check.name,
                domain_catalog=state.database, domain_schema=domain.schema_name, domain_name=domain.name,
                is_deferrable="NO", initially_deferred="NO",
            )  # fmt: skip


def _domains(state: SystemState) -> Iterator[Relation]:
    return (type_ for type_ in sorted(state.types(), key=lambda r: r.oid) if type_.domain)


def updatable(relation: Relation, state: SystemState) -> tuple[bool, ...]:
    """For each column, whether statements can change it."""
    return _updatable(relation, _environment(state))


def _updatable(relation: Relation, env: Environment) -> tuple[bool, ...]:
    """For each column, whether statements can change it."""
    if relation.kind is not RelationKind.VIEW or relation.definition is None:
        return (relation.kind is RelationKind.TABLE,) * len(relation.columns)
    found = updatable_columns(env, relation)
    return (False,) * len(relation.columns) if isinstance(found, str) else tuple(i is not None for i in found)


def _environment(state: SystemState) -> Environment:
    return environment_of(state.reader)


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


def _generation(state: SystemState, relation: Relation, column: TableColumn) -> dict[str, object]:
    if column.expression is None:
        return {"is_generated": "NEVER"}
    return {"is_generated": "ALWAYS", "generation_expression": default_text(state, relation, column)}


def _identity(state: SystemState, column: TableColumn) -> dict[str, object]:
    """The columns about an identity column's sequence."""
    if column.generated is None or not column.generated.identity:
        return {"is_identity": "NO", "identity_cycle": "NO"}
    for relation, s in sequences_of(state):
        if relation.id == column.generated.sequence:
            return {
                "is_identity": "YES", "identity_generation": column.generated.kind.upper(),
                "identity_start": str(s.start), "identity_increment": str(s.increment),
                "identity_maximum": str(s.maximum), "identity_minimum": str(s.minimum),
                "identity_cycle": "YES" if s.cycle else "NO",
            }  # fmt: skip
    return {"is_identity": "YES", "identity_cycle": "NO"}


def sequences(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation, s in sequences_of(state):
        if s.internal:
            continue  # an identity column's sequence is internal to the column, as in Postgres
        yield row(
            sequence_catalog=state.database, sequence_schema=relation.schema_name, sequence_name=relation.name,
            data_type=format_type(s.type, False), numeric_precision=_BITS[s.type.kind], numeric_precision_radix=2,
            numeric_scale=0, start_value=str(s.start), minimum_value=str(s.minimum), maximum_value=str(s.maximum),
            increment=str(s.increment), cycle_option="YES" if s.cycle else "NO",
        )  # fmt: skip


def _limits(type_: SqlType) -> dict[str, object]:
    """The columns about length, precision and scale."""
    match type_.kind:
        case Kind.VARCHAR | Kind.BPCHAR if type_.precision is not None:
            return {
                "character_maximum_length": type_.precision,
                "character_octet_length": min(4 * type_.precision, _MAX_OCTETS),
            }
        case Kind.TEXT | Kind.VARCHAR | Kind.BPCHAR:
            return {"character_octet_length": _MAX_OCTETS}
        case Kind.BIT | Kind.VARBIT:
            return {"character_maximum_length": type_.precision}
        case Kind.INT2 | Kind.INT4 | Kind.INT8:
            return {"numeric_precision": _BITS[type_.kind], "numeric_precision_radix": 2, "numeric_scale": 0}
        case Kind.FLOAT4 | Kind.FLOAT8:
            return {"numeric_precision": _MANTISSA[type_.kind], "numeric_precision_radix": 2}
        case Kind.NUMERIC:
            scale = None if type_.precision is None else typmod(type_) - 4 & 0xFFFF  # PostgreSQL 15's, if negative too
            return {"numeric_precision": type_.precision, "numeric_precision_radix": 10, "numeric_scale": scale}
        case Kind.DATE:
            return {"datetime_precision": 0}
        case _ if type_.kind in _TIMES:
            return {"datetime_precision": 6 if type_.precision is None else type_.precision}
        case _:
            return {}


def column_column_usage(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation in user_relations(state, RelationKind.TABLE):
        for i, expr in generated_columns(relation):
            for used in sorted(columns_of(expr)):
                yield row(
                    table_catalog=state.database, table_schema=relation.schema_name, table_name=relation.name,
                    column_name=relation.columns[used].name, dependent_column=relation.columns[i].name,
                )  # fmt: skip


def character_sets(state: SystemState, row: Row) -> Iterator[Datums]:
    yield row(
        character_set_name="UTF8", character_repertoire="UCS", form_of_use="UTF8",
        default_collate_catalog=state.database, default_collate_schema="pg_catalog", default_collate_name="C",
    )  # fmt: skip


def view_table_usage(state: SystemState, row: Row) -> Iterator[Datums]:
    relations = {r.id: r for r in state.relations()}
    access = state.roles.access
    for view in user_relations(state, RelationKind.VIEW):
        for used in sorted({r.relation for r in view.references if r.relation in relations}):
            table = relations[used]
            if access.owns(state.role, securable(table)):
                yield row(
                    view_catalog=state.database, view_schema=view.schema_name, view_name=view.name,
                    table_catalog=state.database, table_schema=table.schema_name, table_name=table.name,
                )  # fmt: skip
