"""Bound statements about user-defined types; names are looked up at execution."""

from __future__ import annotations

from dataclasses import dataclass

from ivm.words import SqlType
from sql.catalog.catalog import TableColumn


@dataclass(frozen=True, slots=True)
class CreateEnum:
    schema_name: str | None
    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddLabel:
    """``neighbor``: the label that the new one comes before (True) or after; None: it becomes the last."""

    schema_name: str | None
    name: str
    label: str
    neighbor: tuple[str, bool] | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameLabel:
    schema_name: str | None
    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RenameType:
    """``domain``: written as ALTER DOMAIN."""

    schema_name: str | None
    name: str
    new: str
    domain: bool = False


@dataclass(frozen=True, slots=True)
class DropType:
    """``domains``: written as DROP DOMAIN."""

    names: tuple[tuple[str | None, str], ...]
    if_exists: bool = False
    cascade: bool = False
    domains: bool = False


@dataclass(frozen=True, slots=True)
class CreateComposite:
    schema_name: str | None
    name: str
    attributes: tuple[TableColumn, ...]


@dataclass(frozen=True, slots=True)
class CreateRange:
    """``multirange``: the name of its multirange type, None: a name like the range type's."""

    schema_name: str | None
    name: str
    subtype: SqlType
    multirange: str | None


@dataclass(frozen=True, slots=True)
class AddAttribute:
    attribute: TableColumn


@dataclass(frozen=True, slots=True)
class SetAttributeType:
    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class DropAttribute:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameAttribute:
    name: str
    new: str


AttributeChange = AddAttribute | SetAttributeType | DropAttribute | RenameAttribute


@dataclass(frozen=True, slots=True)
class AlterComposite:
    schema_name: str | None
    name: str
    changes: tuple[AttributeChange, ...]


@dataclass(frozen=True, slots=True)
class DomainCheck:
    """A CHECK of a domain over VALUE. ``valid``: the columns' rows are checked too."""

    name: str | None
    text: str
    valid: bool = True


@dataclass(frozen=True, slots=True)
class CreateDomain:
    """``value``: the type of the values, with the DEFAULT; not nullable if NOT NULL is given."""

    schema_name: str | None
    name: str
    value: TableColumn
    checks: tuple[DomainCheck, ...]


@dataclass(frozen=True, slots=True)
class DomainDefault:
    """SET DEFAULT, None: DROP DEFAULT."""

    text: str | None


@dataclass(frozen=True, slots=True)
class DomainNotNull:
    not_null: bool


@dataclass(frozen=True, slots=True)
class DropDomainCheck:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameDomainCheck:
    name: str
    new: str


@dataclass(frozen=True, slots=True)
class ValidateDomainCheck:
    name: str


DomainChange = DomainDefault | DomainNotNull | DomainCheck | DropDomainCheck | RenameDomainCheck | ValidateDomainCheck


@dataclass(frozen=True, slots=True)
class AlterDomain:
    schema_name: str | None
    name: str
    change: DomainChange


TypeStatement = (
    CreateEnum | AddLabel | RenameLabel | RenameType | DropType | CreateComposite | AlterComposite | CreateRange
    | CreateDomain | AlterDomain
)  # fmt: skip
