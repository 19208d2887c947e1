"""Bound statements about roles, privileges and owners. Roles and objects are looked up at execution."""

from __future__ import annotations

from dataclasses import dataclass

from sql.catalog.catalog import Relation
from sql.statements.rename import Named
from sql.statements.role_spec import RoleSpec


@dataclass(frozen=True, slots=True)
class CreateRole:
    """``options``: by the name of a field of ``Role``. ``within``: the roles to join; ``members`` and ``admins``: who
    joins the new one. ``kind``: role, user or group, as written."""

    name: str
    options: tuple[tuple[str, object], ...]
    within: tuple[RoleSpec, ...] = ()
    members: tuple[RoleSpec, ...] = ()
    admins: tuple[RoleSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterRole:
    role: RoleSpec
    options: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class SetRole:
    """What a setting is in the role's sessions, of one ``database`` or of all. ``value`` None: RESET; of ``setting``
    None: of all settings."""

    role: RoleSpec
    database: str | None
    setting: str | None
    value: str | None


@dataclass(frozen=True, slots=True)
class RenameRole:
    name: str
    new: str


@dataclass(frozen=True, slots=True)
class DropRole:
    roles: tuple[RoleSpec, ...]
    if_exists: bool


@dataclass(frozen=True, slots=True)
class GrantRole:
    """GRANT and REVOKE of roles. ``option``: WITH ADMIN OPTION, or ADMIN OPTION FOR. ``alter``: as ALTER GROUP."""

    roles: tuple[str, ...]
    members: tuple[RoleSpec, ...]
    revoke: bool
    option: bool = False
    cascade: bool = False
    grantor: RoleSpec | None = None
    alter: bool = False


@dataclass(frozen=True, slots=True)
class Privilege:
    """A privilege by name, lower case, perhaps on columns; ``name`` "all": all of them."""

    name: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grant:
    """GRANT and REVOKE on objects. ``kind``: as in ``acl.ALL``. ``inside``: ON ALL … IN SCHEMA, whose names these are.
    ``routines``: found by binding; ``routine``: function, procedure or routine, as written."""

    privileges: tuple[Privilege, ...]
    kind: str
    names: tuple[tuple[str | None, str], ...]
    grantees: tuple[RoleSpec, ...]
    revoke: bool
    option: bool = False
    cascade: bool = False
    grantor: RoleSpec | None = None
    inside: bool = False
    routines: tuple[Relation, ...] = ()
    routine: str = ""


@dataclass(frozen=True, slots=True)
class AlterDefaults:
    """ALTER DEFAULT PRIVILEGES. ``grant``: without names."""

    roles: tuple[RoleSpec, ...]
    schemas: tuple[str, ...]
    grant: Grant


@dataclass(frozen=True, slots=True)
class DropOwned:
    roles: tuple[RoleSpec, ...]
    cascade: bool


@dataclass(frozen=True, slots=True)
class ReassignOwned:
    roles: tuple[RoleSpec, ...]
    new: RoleSpec


@dataclass(frozen=True, slots=True)
class ChangeOwner:
    """OWNER TO of a type, a domain or the database."""

    target: Named
    role: RoleSpec


RoleStatement = (
    CreateRole | AlterRole | SetRole | RenameRole | DropRole | GrantRole | Grant | AlterDefaults | DropOwned
    | ReassignOwned | ChangeOwner
)  # fmt: skip
