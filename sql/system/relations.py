"""The relations of pg_catalog and information_schema, and their rows over the present state.

A relation without a function here is always empty: it exists because clients name it in joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Final

from ivm.stops import polled
from sql.catalog.catalog import Relation
from sql.catalog.system.definitions import Datums, Row, definitions
from sql.system import (
    information_constraints,
    information_routines,
    information_schema,
    pg_dependencies,
    pg_operators,
    pg_policies,
    pg_relations,
    pg_roles,
    pg_sequences,
    pg_server,
    pg_text_search,
    pg_triggers,
    pg_types,
    privileges,
)
from sql.system.state import SystemState

_MODULES: Final = (
    ("pg_catalog", pg_dependencies),
    ("pg_catalog", pg_operators),
    ("pg_catalog", pg_policies),
    ("pg_catalog", pg_relations),
    ("pg_catalog", pg_sequences),
    ("pg_catalog", pg_roles),
    ("pg_catalog", pg_server),
    ("pg_catalog", pg_text_search),
    ("pg_catalog", pg_triggers),
    ("pg_catalog", pg_types),
    ("information_schema", information_schema),
    ("information_schema", information_constraints),
    ("information_schema", information_routines),
    ("information_schema", pg_triggers),
    ("information_schema", privileges),
)

RowsOf = Callable[[SystemState, Row], Iterator[Datums]]


def _functions() -> MappingProxyType[int, RowsOf]:
    """The functions of the modules above, by the oid of the relation with the same name."""
    found: dict[int, RowsOf] = {}
    for system in definitions().values():
        for schema, module in _MODULES:
            if system.relation.schema_name == schema and hasattr(module, system.relation.name):
                found[system.relation.id] = getattr(module, system.relation.name)
    return MappingProxyType(found)


ROWS: Final = _functions()


def system_relations() -> tuple[Relation, ...]:
    """Every relation of pg_catalog and information_schema; the ids are PostgreSQL 15's oids (< 16384)."""
    return tuple(d.relation for d in definitions().values())


FEW: Final = 64
"""How many rows are made between two polls: some take 60 µs."""


def rows(relation_id: int, state: SystemState) -> list[Datums]:
    """The rows of a system relation, datums in column order. KeyError for an unknown id. Many take long: it polls."""
    if relation_id not in definitions():
        raise KeyError(relation_id)
    function = ROWS.get(relation_id)
    return [] if function is None else list(polled(function(state, definitions()[relation_id].row), FEW))
