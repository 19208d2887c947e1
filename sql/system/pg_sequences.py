"""Rows of the catalogs about sequences."""

from __future__ import annotations

from collections.abc import Iterator

from sql.catalog.catalog import Relation, RelationKind, Sequence
from sql.catalog.system.definitions import Datums, Row
from sql.system.state import SystemState, defaults_of, owner_name, user_relations
from storage.types.type_names import type_oid

CLASS, ATTRDEF = 1259, 2604


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
        yield row(
            schemaname=relation.schema_name, sequencename=relation.name, sequenceowner=owner_name(state, relation),
            data_type=type_oid(s.type), start_value=s.start, min_value=s.minimum, max_value=s.maximum,
            increment_by=s.increment, cycle=s.cycle, cache_size=s.cache, last_value=value if called else None,
        )  # fmt: skip


def pg_depend(state: SystemState, row: Row) -> Iterator[Datums]:
    """The rows that psql and other clients look for: which column owns a sequence, and which DEFAULT uses it."""
    columns = {r.oid: [c.name for c in r.columns] for r in user_relations(state, RelationKind.TABLE)}
    for relation, s in sequences_of(state):
        if s.owner is not None and s.owner[0] in columns:
            owner, column = s.owner
            yield row(
                classid=CLASS, objid=relation.id, refclassid=CLASS, refobjid=owner,
                refobjsubid=columns[owner].index(column) + 1, deptype="i" if s.internal else "a",
            )  # fmt: skip
    for oid, table, number in defaults_of(state):
        yield row(
            classid=ATTRDEF, objid=oid, refclassid=CLASS, refobjid=table.oid, refobjsubid=number, deptype="a"
        )  # fmt: skip
        generated = table.columns[number - 1].generated
        if generated is not None:
            yield row(classid=ATTRDEF, objid=oid, refclassid=CLASS, refobjid=generated.sequence, deptype="n")
