"""The syntax trees of CREATE and ALTER POLICY."""

from __future__ import annotations

from dataclasses import dataclass

from sql.statements.role_spec import RoleSpec
from sql.syntax.nodes.queries import Expr, TableName


@dataclass(frozen=True, slots=True)
class Condition:
    """USING or WITH CHECK: the expression, its text, and the text's offset."""

    expr: Expr
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class CreatePolicyStatement:
    """``command``: the word after FOR."""

    name: str
    table: TableName
    permissive: bool
    command: str
    roles: tuple[RoleSpec, ...]
    using: Condition | None
    check: Condition | None


@dataclass(frozen=True, slots=True)
class AlterPolicyStatement:
    """What is None stays."""

    name: str
    table: TableName
    roles: tuple[RoleSpec, ...] | None
    using: Condition | None
    check: Condition | None
