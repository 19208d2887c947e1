"""The syntax tree of CREATE DOMAIN, and of ALTER DOMAIN where it holds an expression."""

from __future__ import annotations

from dataclasses import dataclass

from sql.statements.types import DomainChange
from sql.syntax.nodes.constraints import CheckConstraint
from sql.syntax.nodes.queries import Expr, TableName, TypeName


@dataclass(frozen=True, slots=True)
class CreateDomainStatement:
    """``default``: the expression and its text."""

    name: TableName
    type: TypeName
    default: tuple[Expr, str] | None
    not_null: bool
    checks: tuple[CheckConstraint, ...]


@dataclass(frozen=True, slots=True)
class SetDomainDefault:
    default: tuple[Expr, str]


@dataclass(frozen=True, slots=True)
class AddDomainCheck:
    check: CheckConstraint


@dataclass(frozen=True, slots=True)
class AlterDomainStatement:
    name: TableName
    change: DomainChange | SetDomainDefault | AddDomainCheck
