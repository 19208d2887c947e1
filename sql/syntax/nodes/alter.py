"""The syntax tree of ALTER TABLE."""

from __future__ import annotations

from dataclasses import dataclass

from sql.statements.definitions import (
    AlterConstraint,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    SetIdentity,
    SetNotNull,
    Unchanged,
    Validate,
)  # fmt: skip
from sql.syntax.nodes.columns import ColumnDefinition
from sql.syntax.nodes.constraints import Constraint
from sql.syntax.nodes.queries import Expr, TableName, TypeName

Names = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class AddPrimaryKey:
    """``ADD [CONSTRAINT name] PRIMARY KEY (columns)``."""

    name: str | None
    columns: Names
    at: int


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """``ADD [CONSTRAINT name]`` UNIQUE, CHECK or FOREIGN KEY."""

    constraint: Constraint


@dataclass(frozen=True, slots=True)
class AddColumn:
    column: ColumnDefinition
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class SetDefault:
    """``default``: the expression and its own text; None for DROP DEFAULT."""

    column: str
    default: tuple[Expr, str] | None


@dataclass(frozen=True, slots=True)
class SetType:
    column: str
    type: TypeName
    using: Expr | None
    at: int


@dataclass(frozen=True, slots=True)
class SetOptions:
    """``SET (name = value, …)`` of a view, or ``RESET (name, …)``."""

    options: tuple[str, ...] = ()
    reset: tuple[str, ...] = ()


Change = (
    SetOptions | AddPrimaryKey | AddConstraint | DropConstraint | AddColumn | DropColumn | SetDefault | DropExpression
    | SetNotNull | SetType | SetIdentity | DropIdentity | Validate | AlterConstraint | Unchanged
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AlterTableStatement:
    """``ALTER TABLE [IF EXISTS] [ONLY] table change, …``."""

    table: TableName
    if_exists: bool
    changes: tuple[Change, ...]
    at: int
    only: bool = False
