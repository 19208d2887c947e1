"""Composite types: the type of a relation's rows, and those of CREATE TYPE, which are relations without rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar

from ivm.words import Kind, NamedType, SqlType
from planner.identifiers import quoted

ROW_BASE: Final = 0x5000_0000
"""The offset of a row type's oid from its relation's."""
ROW_ARRAY_BASE: Final = 0x5800_0000
"""The same for the type of arrays of rows."""


class _Column(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> SqlType: ...


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


RowsT = TypeVar("RowsT", bound=Rows)


def row_type(relation: Rows) -> SqlType:
    """The type of a relation's rows."""
    return _named_row(relation.oid, relation.name, ((c.name, c.type) for c in relation.columns))


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


def renewed(type_: SqlType, new: SqlType) -> SqlType:
    """The type with ``new`` in place of its former definition, wherever that is inside it."""
    if type_.named is not None and type_.named == new.named:
        return new
    if type_.element is None and not type_.fields:
        return type_
    element = None if type_.element is None else renewed(type_.element, new)
    return replace(type_, element=element, fields=tuple((n, renewed(t, new)) for n, t in type_.fields))


def retyped(relations: dict[int, RowsT], old: RowsT | None, new: RowsT) -> dict[int, RowsT]:
    """The relations with the type of a relation's rows as it is now, wherever it is inside another type."""
    if old is None or old.columns == new.columns:
        return relations
    type_, found = new.own_type, dict(relations)
    for relation in relations.values():
        if relation.id == new.id or type_.named is None:
            continue
        if any(mentions(c.type, type_.named.oid) for c in relation.columns):
            columns = tuple(replace(c, type=renewed(c.type, type_)) for c in relation.columns)  # type: ignore[type-var]
            changed = found[relation.id] = replace(relation, columns=columns)  # type: ignore[type-var]
            found = retyped(found, relation, changed)
        if relation.routine is not None:
            routine = relation.routine.renewed(lambda t: renewed(t, type_))
            found[relation.id] = replace(found[relation.id], routine=routine)  # type: ignore[type-var]
    return found


class StoredTypes(dict[int, SqlType]):
    """The types of a persisted catalog by oid, each made when it is first asked for: their order is not known.

    ``relations``: the persisted relations; ``read``: gives the type of a persisted column.
    """

    def __init__(self, known: Mapping[int, SqlType], relations: Iterable[Mapping[str, Any]], read: Any) -> None:
        super().__init__(known)
        self._relations = {ROW_BASE + (r.get("first_id") or r["id"]): r for r in relations}
        self._read = read

    def __missing__(self, oid: int) -> SqlType:
        data = self._relations[oid]
        fields = ((column[0], self._read(column[1], self)) for column in data["columns"])
        made = self[oid] = _named_row(oid - ROW_BASE, data["name"], fields)
        return made
