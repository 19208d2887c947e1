"""Bound statements about row-level security. Roles are looked up at execution."""

from __future__ import annotations

from dataclasses import dataclass

from sql.catalog.catalog import Relation
from sql.catalog.policies import Policy
from sql.statements.role_spec import RoleSpec


@dataclass(frozen=True, slots=True)
class CreatePolicy:
    """``policy``: complete but for its id and roles."""

    table: Relation
    policy: Policy
    roles: tuple[RoleSpec, ...]
    tag: str = "CREATE POLICY"


@dataclass(frozen=True, slots=True)
class AlterPolicy:
    """``policy``: as it becomes; ``roles`` None: they stay."""

    table: Relation
    policy: Policy
    roles: tuple[RoleSpec, ...] | None
    tag: str = "ALTER POLICY"


@dataclass(frozen=True, slots=True)
class RenamePolicy:
    """The table by schema and name, as written."""

    name: str
    table: tuple[str | None, str]
    new_name: str
    if_exists: bool = False
    tag: str = "ALTER POLICY"


@dataclass(frozen=True, slots=True)
class DropPolicy:
    name: str
    table: tuple[str | None, str]
    if_exists: bool
    tag: str = "DROP POLICY"


@dataclass(frozen=True, slots=True)
class SetRowSecurity:
    """ALTER TABLE … [NO] FORCE, ENABLE or DISABLE ROW LEVEL SECURITY; None: it stays."""

    table: tuple[str | None, str]
    enabled: bool | None
    forced: bool | None
    if_exists: bool = False
    tag: str = "ALTER TABLE"


PolicyStatement = CreatePolicy | AlterPolicy | RenamePolicy | DropPolicy | SetRowSecurity
