"""The users' types by oid: enums, composite types, the types of relations' rows, and arrays of any of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ivm.words import Kind, SqlType
from sql.catalog.catalog import FIRST_USER_ID, ROWED, Relation, RelationKind
from sql.catalog.composite import ROW_ARRAY_BASE, ROW_BASE
from storage.types.type_names import info


def typed(relations: Iterable[Relation]) -> Iterator[Relation]:
    """Those of the relations that are types, or whose rows have one."""
    return (r for r in relations if r.kind in (RelationKind.TYPE, *ROWED))


def type_of_oid(relations: Iterable[Relation], oid: int) -> tuple[Relation, SqlType] | None:
    """The type with this oid, or the array type, and the relation that defines it (or its elements)."""
    if oid < FIRST_USER_ID:
        return None
    for relation in typed(relations):
        if relation.enum is None and relation.oid not in (oid - ROW_BASE, oid - ROW_ARRAY_BASE):
            continue
        type_ = relation.own_type
        found = info(type_)
        if found.oid == oid:
            return relation, type_
        if found.array_oid == oid:
            return relation, SqlType(Kind.ARRAY, element=type_)
    return None
