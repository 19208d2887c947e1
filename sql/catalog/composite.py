"""The users' types as the catalog defines them: composite types, the type of a relation's rows, and ranges.

Composite types of CREATE TYPE are relations without rows; the bounds of a range type are its one column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from ivm.words import Kind, NamedType, RangeType, SqlType
from planner.identifiers import quoted
from storage.types.range_values import multirange_of

ROW_BASE: Final = 0x5000_0000
"""The offset of a row type's oid from its relation's."""
ROW_ARRAY_BASE: Final = 0x5800_0000
"""The same for the type of arrays of rows, and of arrays of a range type."""
MULTIRANGE_BASE: Final = 0x6000_0000
"""The offset of a multirange type's oid from its range type's, which is its relation's."""
MULTIRANGE_ARRAY_BASE: Final = 0x6800_0000


class _Column(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> SqlType: ...
    @property
    def domain(self) -> Any: ...


class Rows(Protocol):
    """What this module sees of a relation."""

    @property
    def id(self) -> int: ...
    @property
    def oid(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> tuple[_Column, ...]: ...
    @property
    def own_type(self) -> SqlType: ...
    @property
    def routine(self) -> Any: ...
    @property
    def operator(self) -> Any: ...
    @property
    def enum(self) -> Any: ...
    @property
    def multirange(self) -> str | None: ...
    @property
    def domain(self) -> bool: ...


RowsT = TypeVar("RowsT", bound=Rows)


def defined_type(relation: Rows) -> SqlType:
    """The type that a relation defines: a type itself, or that of its rows."""
    if relation.enum is not None:
        return SqlType(Kind.ENUM, enum=relation.enum.type)
    if relation.multirange is not None:
        return _range(relation.oid, relation.name, relation.multirange, relation.columns[0].type)
    fields = ((c.name, c.type if c.domain is None else replace(c.type, domain=c.domain)) for c in relation.columns)
    return _named_row(relation.oid, relation.name, fields)


def _range(oid: int, name: str, many: str, subtype: SqlType) -> SqlType:
    multirange = NamedType(MULTIRANGE_BASE + oid, MULTIRANGE_ARRAY_BASE + oid, many, quoted(many))
    named = RangeType(oid, ROW_ARRAY_BASE + oid, name, quoted(name), multirange)
    return SqlType(Kind.RANGE, subtype=subtype, named=named)


def _named_row(oid: int, name: str, fields: Iterable[tuple[str, SqlType]]) -> SqlType:
    named = NamedType(ROW_BASE + oid, ROW_ARRAY_BASE + oid, name, quoted(name))
    return SqlType(Kind.RECORD, fields=tuple(fields), named=named)


def parts(type_: SqlType, directly: bool = False) -> Iterator[SqlType]:
    """A type and all types inside it: of elements, bounds and, unless ``directly``, fields."""
    yield type_
    for inner in (type_.element, type_.subtype, *(t for _, t in type_.fields if not directly)):
        if inner is not None:
            yield from parts(inner, directly)


def mentions(type_: SqlType, oid: int, directly: bool = False) -> bool:
    """Whether the type with this oid is this one or inside it. ``directly``: as in ``parts``."""
    inside = parts(type_, directly)
    return any(oid == named.oid for part in inside for named in (part.enum, part.named) if named is not None)


def has_domains(type_: SqlType) -> bool:
    """Whether an element, or a field of a row, inside the type is of a domain."""
    if type_.element is None and not type_.fields:
        return False
    return any(part.domain is not None for part in parts(type_) if part is not type_)


def domain_oid(type_: SqlType) -> int | None:
    """The oid of a type that is a domain or an array of one; None for any other."""
    if type_.domain is not None:
        return int(type_.domain.oid)
    inside = None if type_.element is None else type_.element.domain
    return None if inside is None else ROW_ARRAY_BASE + int(inside.oid)


def same_domains(a: SqlType, b: SqlType) -> bool:
    """Whether two types, which are the same but for domains, are of the same domains, but for fields of named rows."""
    if (a.domain and a.domain.id) != (b.domain and b.domain.id):
        return False
    if a.element is not None and b.element is not None:
        return same_domains(a.element, b.element)
    pairs = zip(a.fields, b.fields, strict=False)
    return a.named is not None or all(same_domains(one, two) for (_, one), (_, two) in pairs)


def without_domain(type_: SqlType) -> SqlType:
    """The type of the same values, of no domain; nor are its elements."""
    element = type_.element
    if element is not None and element.domain is not None:
        return replace(type_, domain=None, element=without_domain(element))
    return type_ if type_.domain is None else replace(type_, domain=None)


def with_element_domains(relations: dict[int, RowsT]) -> dict[int, RowsT]:
    """The relations with the domains of arrays' elements, and of functions' arguments and results, as these are now.
    The types of a persisted catalog have their ids."""
    domains = {r.id: r for r in relations.values() if r.domain}
    if not domains:
        return relations

    now = partial(_of_domains, domains)
    found = dict(relations)
    for relation in relations.values():
        if any(c.type.element is not None or c.type.domain is not None for c in relation.columns):
            columns = tuple(replace(c, type=now(c.type)) for c in relation.columns)  # type: ignore[type-var]
            found[relation.id] = replace(relation, columns=columns)  # type: ignore[type-var]
        if relation.routine is not None:
            routine = relation.routine.renewed(now)
            found[relation.id] = replace(found[relation.id], routine=routine)  # type: ignore[type-var]
    return found


def _of_domains(domains: Mapping[int, RowsT], type_: SqlType) -> SqlType:
    """The type with these domains, by their ids."""
    if type_.element is None and type_.domain is None:
        return type_
    element = None if type_.element is None else _of_domains(domains, type_.element)
    known = type_.domain if type_.domain is None or isinstance(type_.domain, int) else type_.domain.id
    return replace(type_, element=element, domain=None if known is None else domains.get(known))


def renewed(type_: SqlType, new: SqlType) -> SqlType:
    """The type with ``new`` in place of its former definition, wherever that is inside it."""
    if type_.named is not None and type_.named == new.named:
        return new
    if type_.element is None and type_.subtype is None and not type_.fields:
        return type_
    element, subtype = (None if inner is None else renewed(inner, new) for inner in (type_.element, type_.subtype))
    fields = tuple((n, renewed(t, new)) for n, t in type_.fields)
    return replace(type_, element=element, subtype=subtype, fields=fields)


def retyped(relations: dict[int, RowsT], old: RowsT | None, new: RowsT) -> dict[int, RowsT]:
    """The relations with the type of a relation's rows as it is now, wherever it is inside another type."""
    return relations if old is None or old.columns == new.columns else _with_type(relations, new)


def with_field_domains(relations: dict[int, RowsT]) -> dict[int, RowsT]:
    """The relations with the types of rows that have fields of domains as these are now."""
    found = relations
    for relation in relations.values() if any(r.domain for r in relations.values()) else ():
        if relation.routine is None and any(c.domain is not None for c in relation.columns):
            found = _with_type(found, found[relation.id])
    return found


def _with_type(relations: dict[int, RowsT], new: RowsT) -> dict[int, RowsT]:
    type_, found = new.own_type, dict(relations)
    for relation in relations.values():
        if relation.id == new.id or type_.named is None:
            continue
        if any(mentions(c.type, type_.named.oid) for c in relation.columns):
            columns = tuple(replace(c, type=renewed(c.type, type_)) for c in relation.columns)  # type: ignore[type-var]
            changed = found[relation.id] = replace(relation, columns=columns)  # type: ignore[type-var]
            found = _with_type(found, changed)
        if relation.routine is not None:
            routine = relation.routine.renewed(lambda t: renewed(t, type_))
            found[relation.id] = replace(found[relation.id], routine=routine)  # type: ignore[type-var]
        if relation.operator is not None:
            operator = relation.operator.renewed(lambda t: renewed(t, type_))
            found[relation.id] = replace(found[relation.id], operator=operator)  # type: ignore[type-var]
    return found


class StoredTypes(dict[int, SqlType]):
    """The types of a persisted catalog by oid, each made when it is first asked for: their order is not known.

    ``relations``: the persisted relations; ``read``: gives the type of a persisted column.
    """

    def __init__(self, known: Mapping[int, SqlType], relations: Iterable[Mapping[str, Any]], read: Any) -> None:
        super().__init__(known)
        self._relations = {r.get("first_id") or r["id"]: r for r in relations}
        self._read = read

    def __missing__(self, oid: int) -> SqlType:
        if oid >= MULTIRANGE_BASE:
            made = multirange_of(self[oid - MULTIRANGE_BASE])
        elif oid >= ROW_BASE:
            data = self._relations[oid - ROW_BASE]
            fields = ((column[0], self._read(column[1], self)) for column in data["columns"])
            made = _named_row(oid - ROW_BASE, data["name"], fields)
        else:
            data = self._relations[oid]
            made = _range(oid, data["name"], data["multirange"], self._read(data["columns"][0][1], self))
        self[oid] = made
        return made
