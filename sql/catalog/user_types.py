"""The users' types by oid: enums, composite types, the types of relations' rows, and arrays of any of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ivm.words import Kind, SqlType
from sql.catalog.catalog import FIRST_USER_ID, ROWED, Relation, RelationKind
from sql.catalog.composite import MULTIRANGE_ARRAY_BASE, MULTIRANGE_BASE, ROW_ARRAY_BASE, ROW_BASE
from storage.types.range_values import multirange_of
from storage.types.type_names import info


def typed(relations: Iterable[Relation]) -> Iterator[Relation]:
    """Those of the relations that are types, or whose rows have one."""
    return (r for r in relations if r.kind in (RelationKind.TYPE, *ROWED))


_BASES: Final = (0, ROW_BASE, ROW_ARRAY_BASE, MULTIRANGE_BASE, MULTIRANGE_ARRAY_BASE)


def types_of(relation: Relation) -> tuple[SqlType, ...]:
    """The types that it defines, without their arrays: a range type comes with its multirange type."""
    own = relation.own_type
    return (own,) if relation.multirange is None else (own, multirange_of(own))


def type_of_oid(relations: Iterable[Relation], oid: int) -> tuple[Relation, SqlType] | None:
    """The type with this oid, or the array type, and the relation that defines it (or its elements)."""
    if oid < FIRST_USER_ID:
        return None
    for relation in typed(relations):
        if relation.enum is None and relation.oid not in (oid - base for base in _BASES):
            continue
        for type_ in types_of(relation):
            found = info(type_)
            if found.oid == oid:
                return relation, type_
            if found.array_oid == oid:
                return relation, SqlType(Kind.ARRAY, element=type_)
    return None
