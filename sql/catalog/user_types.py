"""The users' types by oid: enums, composite types, the types of relations' rows, and arrays of any of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import Kind, SqlType
from planner.identifiers import quoted
from sql.catalog.catalog import FIRST_USER_ID, LABELS, ROWED, STORED, Catalog, Relation, RelationKind
from sql.catalog.composite import MULTIRANGE_ARRAY_BASE, MULTIRANGE_BASE, ROW_ARRAY_BASE, ROW_BASE, mentions, parts
from storage.types.range_values import multirange_of
from storage.types.type_names import info, type_oid


def typed(relations: Iterable[Relation]) -> Iterator[Relation]:
    """Those of the relations that are types, or whose rows have one."""
    return (r for r in relations if r.kind in (RelationKind.TYPE, *ROWED))


_BASES: Final = (0, ROW_BASE, ROW_ARRAY_BASE, MULTIRANGE_BASE, MULTIRANGE_ARRAY_BASE)


def types_of(relation: Relation) -> tuple[SqlType, ...]:
    """The types that it defines, without their arrays: a range type comes with its multirange type. A domain defines
    none: its values have the base type."""
    if relation.domain:
        return ()
    own = relation.own_type
    return (own,) if relation.multirange is None else (own, multirange_of(own))


def check_unused(catalog: Catalog, gone: Collection[int]) -> None:
    """Raises 2BP01 if what stays has one of the dropped types, or the type of the rows of a dropped relation, inside a
    column: neither its rows nor the catalog could be read."""
    dropped = list(typed(catalog.relations[i] for i in gone if i in catalog.relations))
    for relation, user, column in _used(catalog, dropped):
        if user.id not in gone:
            of = "composite type" if user.kind is RelationKind.TYPE else LABELS[user.kind]
            what = f"{LABELS[relation.kind]} {quoted(relation.name)}"
            raise SqlError(
                "2BP01", f"cannot drop {what} because other objects depend on it",
                f"column {quoted(column)} of {of} {quoted(user.name)} depends on type {quoted(relation.name)}",
                "Drop the columns first; CASCADE does not drop them.",
            )  # fmt: skip


def signature_types(catalog: Catalog, function: Relation) -> tuple[int, ...]:
    """The ids of the relations that define the types of a function's arguments and results."""
    assert function.routine is not None, "a function"
    given = (*(a.type for a in function.routine.declared), function.routine.result, *(c.type for c in function.columns))
    return types_inside(catalog, given)


def types_inside(catalog: Catalog, given: Iterable[object]) -> tuple[int, ...]:
    """The ids of the relations that define these types, and those inside of them; polymorphic ones have none."""
    found: set[int] = set()
    for type_ in given:
        for part in parts(type_) if isinstance(type_, SqlType) else ():
            if part.domain is not None:
                found.add(part.domain.id)
            named = part.enum or part.named
            known = None if named is None else type_of_oid(catalog.relations.values(), named.oid)
            if known is not None:
                found.add(known[0].id)
    return tuple(sorted(found))


def check_lasting(catalog: Catalog, relation: Relation) -> None:
    """Raises 0A000 for a column of a temporary relation's row type in what is not temporary, and for a change of a row
    type that columns hold values of, other than of its names."""
    if not relation.temporary:
        inside = [c for c in relation.columns if c.type.fields or c.type.element is not None]
        temporary = [r for r in typed(catalog.relations.values()) if inside and r.temporary]
        if any(mentions(c.type, type_oid(r.own_type)) for r in temporary for c in inside):
            raise unsupported("a permanent object with the row type of a temporary table")
    old = catalog.relations.get(relation.id)
    if old is None or old.kind is not RelationKind.VIEW:
        return
    if [c.type for c in old.columns] != [c.type for c in relation.columns]:
        for _, user, column in _used(catalog, [old]):
            if user.kind in STORED:
                raise unsupported(f"changing the row type of a view that column {column} of {user.name} has")


def _used(catalog: Catalog, types: Iterable[Relation]) -> Iterator[tuple[Relation, Relation, str]]:
    """The relations with a column that has one of these types inside, and the column's name."""
    given = list(types)
    domains = {r.id: r for r in given if r.domain}
    oids = [(relation, info(type_).oid) for relation in given for type_ in types_of(relation)]
    for user in catalog.relations.values() if given else ():
        for column in user.columns:
            for of in (column.domain, *(part.domain for part in parts(column.type, True))) if domains else ():
                if of is not None and of.id in domains:
                    yield domains[of.id], user, column.name
            if column.type.named is not None or column.type.enum is not None or column.type.element is not None:
                for relation, oid in oids:
                    if user.id != relation.id and mentions(column.type, oid):
                        yield relation, user, column.name


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
