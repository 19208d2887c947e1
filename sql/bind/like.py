"""LIKE in CREATE TABLE: what a new table copies from another relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ivm.errors import SqlError
from sql.bind.environment import Environment
from sql.bind.lookup import lookup
from sql.catalog.catalog import Relation, RelationKind, TableColumn
from sql.catalog.keys import Check, Index
from sql.catalog.securables import permission_denied, securable
from sql.catalog.sequence_options import SequenceOptions
from sql.statements.definitions import ColumnSequence
from sql.syntax.nodes.statements import LikeClause
from storage.types.type_names import format_type

_KINDS = (RelationKind.TABLE, RelationKind.VIEW, RelationKind.MATERIALIZED_VIEW)
_PLURALS = {RelationKind.SEQUENCE: "sequences", RelationKind.SYSTEM: "system relations"}


@dataclass(frozen=True, slots=True)
class Liked:
    """One LIKE clause with the relation that it names."""

    clause: LikeClause
    source: Relation

    def has(self, option: str) -> bool:
        return option in self.clause.options


def liked(env: Environment, clauses: Sequence[LikeClause]) -> tuple[Liked, ...]:
    """The relations of LIKE clauses. Raises 42P01, 42809."""
    return tuple(Liked(clause, _source(env, clause)) for clause in clauses)


def _source(env: Environment, clause: LikeClause) -> Relation:
    relation = lookup(env, clause.table)
    what, asking = securable(relation), env.asking
    if asking is not None and what.kind == "r" and not asking.access.has(asking.role, what, "r"):
        raise permission_denied(relation)
    if relation.kind not in (*_KINDS, RelationKind.SYSTEM):
        detail = f"This operation is not supported for {_PLURALS.get(relation.kind, 'this kind of relation')}."
        at = clause.table.at + 1
        raise SqlError("42809", f'relation "{relation.name}" is invalid in LIKE clause', detail, position=at)
    return relation


def with_liked(own: Sequence[TableColumn], found: Sequence[Liked]) -> tuple[TableColumn, ...]:
    """A table's own columns with those that LIKE clauses put before, between and after them. Raises 42701."""
    columns: list[TableColumn] = []
    for i in range(len(own) + 1):
        columns += [_copied(one, c) for one in found if one.clause.place == i for c in one.source.columns]
        columns += own[i : i + 1]
    names = [c.name for c in columns]
    for name in names:
        if names.count(name) > 1:
            raise SqlError("42701", f'column "{name}" specified more than once')
    return tuple(columns)


def _copied(one: Liked, column: TableColumn) -> TableColumn:
    serial = column.generated is not None and not column.generated.identity
    source = one.source
    declared = source.kind is RelationKind.TABLE
    keyed = source.columns.index(column) in source.primary_key
    return replace(
        column,
        nullable=not declared or (column.nullable and not keyed),
        default=column.default if one.has("defaults") else None,
        generated=column.generated if serial and one.has("defaults") else None,
        expression=column.expression if one.has("generated") else None,
    )


def liked_sequences(
    env: Environment, columns: Sequence[TableColumn], found: Sequence[Liked]
) -> tuple[ColumnSequence, ...]:
    """The sequences of identity columns that INCLUDING IDENTITY copies."""
    names = [c.name for c in columns]
    made = []
    for one in found:
        for column in one.source.columns if one.has("identity") else ():
            if column.generated is None or not column.generated.identity:
                continue
            relation = env.catalog.by_id(column.generated.sequence)
            assert relation is not None, "an identity column has a sequence"
            s = relation.sequence
            assert s is not None, "an identity column has a sequence"
            options = SequenceOptions(
                format_type(s.type), s.increment, s.minimum, s.maximum, s.start, None, s.cache, s.cycle
            )
            made.append(ColumnSequence(names.index(column.name), column.generated.kind, options))
    return tuple(made)


def liked_checks(columns: Sequence[TableColumn], found: Sequence[Liked]) -> tuple[Check, ...]:
    """The CHECK constraints that INCLUDING CONSTRAINTS copies."""
    return tuple(
        replace(check, id=0, columns=tuple(sorted(_places(columns, one.source, check.columns))))
        for one in found
        if one.has("constraints")
        for check in one.source.checks
    )


def liked_keys(columns: Sequence[TableColumn], found: Sequence[Liked]) -> tuple[Index | None, tuple[Index, ...]]:
    """The primary key and the other indexes that INCLUDING INDEXES copies, unnamed."""
    made = [
        replace(
            index, id=0, name="", columns=_places(columns, one.source, index.columns),
            included=_places(columns, one.source, index.included), used=_places(columns, one.source, index.used),
        )
        for one in found
        if one.has("indexes")
        for index in one.source.all_indexes
    ]  # fmt: skip
    return next((i for i in made if i.primary), None), tuple(i for i in made if not i.primary)


def _places(columns: Sequence[TableColumn], source: Relation, places: Sequence[int]) -> tuple[int, ...]:
    names = [c.name for c in columns]
    return tuple(names.index(source.columns[i].name) for i in places)
