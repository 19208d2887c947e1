"""Rows of the catalogs about sequences."""

from __future__ import annotations

from collections.abc import Iterator

from sql.catalog.catalog import Relation, RelationKind, Sequence
from sql.catalog.securables import securable
from sql.catalog.system.definitions import Datums, Row
from sql.system.state import SystemState, owner_name, user_relations
from storage.types.type_names import type_oid


def sequences_of(state: SystemState) -> Iterator[tuple[Relation, Sequence]]:
    """The user's sequences, by oid."""
    for relation in user_relations(state, RelationKind.SEQUENCE):
        if relation.sequence is not None:
            yield relation, relation.sequence


def pg_sequence(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation, s in sequences_of(state):
        yield row(
            seqrelid=relation.id, seqtypid=type_oid(s.type), seqstart=s.start, seqincrement=s.increment,
            seqmax=s.maximum, seqmin=s.minimum, seqcache=s.cache, seqcycle=s.cycle,
        )  # fmt: skip


def pg_sequences(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation, s in sequences_of(state):
        value, _, called = state.sequence_state(relation)
        known = called and set("Ur") & set(state.roles.access.privileges(state.role, securable(relation)))
        yield row(
            schemaname=relation.schema_name, sequencename=relation.name, sequenceowner=owner_name(state, relation),
            data_type=type_oid(s.type), start_value=s.start, min_value=s.minimum, max_value=s.maximum,
            increment_by=s.increment, cycle=s.cycle, cache_size=s.cache, last_value=value if known else None,
        )  # fmt: skip
