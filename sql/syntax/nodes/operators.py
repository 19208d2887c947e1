"""The syntax tree of CREATE, ALTER and DROP OPERATOR."""

from __future__ import annotations

from dataclasses import dataclass

from sql.statements.role_spec import RoleSpec
from sql.syntax.nodes.queries import TableName, TypeName


@dataclass(frozen=True, slots=True)
class SetOf:
    """``SETOF type``, which no option takes."""

    type: TypeName


OptionValue = TypeName | TableName | SetOf | str | None
"""A type or a function's name, an operator's name, a text or number; None for NONE."""
Operands = tuple[TypeName | None, TypeName | None]
"""The types of an operator's operands, None where NONE is written."""


@dataclass(frozen=True, slots=True)
class CreateOperatorStatement:
    """``options``: ``name = value`` each, "true" where there is none."""

    name: TableName
    options: tuple[tuple[str, OptionValue], ...]


@dataclass(frozen=True, slots=True)
class AlterOperatorStatement:
    """What is None stays; ``options``: of SET (…)."""

    name: TableName
    operands: Operands
    options: tuple[tuple[str, OptionValue], ...] = ()
    schema_name: str | None = None
    owner: RoleSpec | None = None


@dataclass(frozen=True, slots=True)
class DropOperatorStatement:
    names: tuple[tuple[TableName, Operands], ...]
    if_exists: bool
    cascade: bool
