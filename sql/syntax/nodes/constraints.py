"""The syntax tree of constraints and of CREATE INDEX."""

from __future__ import annotations

from dataclasses import dataclass

from sql.syntax.nodes.queries import Expr, TableName


@dataclass(frozen=True, slots=True)
class KeyConstraint:
    """PRIMARY KEY or UNIQUE."""

    name: str | None
    primary: bool
    columns: tuple[tuple[str, int], ...]
    included: tuple[tuple[str, int], ...]
    nulls_distinct: bool
    at: int
    deferrable: bool = False
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class CheckConstraint:
    """``text``: the condition's own text."""

    name: str | None
    condition: Expr
    text: str
    at: int
    no_inherit: bool = False
    valid: bool = True


@dataclass(frozen=True, slots=True)
class ForeignKeyConstraint:
    """``referenced`` empty: the other table's primary key. The actions: no action, restrict, cascade, set null or
    set default; ``changed``: the columns that ON DELETE SET sets, all when empty."""

    name: str | None
    columns: tuple[tuple[str, int], ...]
    table: TableName
    referenced: tuple[tuple[str, int], ...]
    full: bool
    on_delete: str
    on_update: str
    changed: tuple[tuple[str, int], ...]
    at: int
    valid: bool = True
    deferrable: bool = False
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class ExcludeConstraint:
    """EXCLUDE. ``elements``: each part with its operator; ``where``: the predicate with its text."""

    name: str | None
    method: str
    elements: tuple[tuple[IndexColumn, str], ...]
    included: tuple[tuple[str, int], ...]
    where: tuple[str, Expr] | None
    at: int
    deferrable: bool = False
    deferred: bool = False


Constraint = KeyConstraint | CheckConstraint | ForeignKeyConstraint | ExcludeConstraint


@dataclass(frozen=True, slots=True)
class IndexColumn:
    """``expression``: its text and tree, where it is no column's name."""

    name: str
    at: int
    descending: bool
    nulls_first: bool
    expression: tuple[str, Expr] | None = None


@dataclass(frozen=True, slots=True)
class CreateIndexStatement:
    name: str | None
    table: TableName
    method: str
    columns: tuple[IndexColumn, ...]
    included: tuple[tuple[str, int], ...]
    unique: bool
    nulls_distinct: bool
    if_not_exists: bool
    at: int
    where: tuple[str, Expr] | None = None
