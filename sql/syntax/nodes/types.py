"""The syntax tree of CREATE TYPE and ALTER TYPE of composite types."""

from __future__ import annotations

from dataclasses import dataclass

from sql.statements.types import DropAttribute, RenameAttribute
from sql.syntax.nodes.queries import TableName, TypeName


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    type: TypeName
    at: int


@dataclass(frozen=True, slots=True)
class CreateCompositeStatement:
    """``CREATE TYPE name AS (attribute type, …)``."""

    name: TableName
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class CreateRangeStatement:
    """``CREATE TYPE name AS RANGE (…)``. ``multirange``: the name of the multirange type, if it is given."""

    name: TableName
    subtype: TypeName | None
    multirange: str | None


@dataclass(frozen=True, slots=True)
class AddAttribute:
    attribute: Attribute


@dataclass(frozen=True, slots=True)
class SetAttributeType:
    """``ALTER ATTRIBUTE name TYPE type``."""

    attribute: Attribute


AttributeChange = AddAttribute | SetAttributeType | DropAttribute | RenameAttribute


@dataclass(frozen=True, slots=True)
class AlterCompositeStatement:
    name: TableName
    changes: tuple[AttributeChange, ...]
