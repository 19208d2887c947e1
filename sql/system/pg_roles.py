"""Rows of the catalogs about roles, their memberships, and default privileges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sql.catalog.roles import Role
from sql.catalog.system.definitions import Datums, Row
from sql.system.acls import acl_text
from sql.system.state import SystemState

_HIDDEN: Final = "********"
_DEFAULTS_BASE: Final = 0x6200_0000
_DEFAULT_KINDS: Final = {"s": "S", "r": "r", "f": "f", "T": "T", "n": "n"}


def _shared(state: SystemState, role: Role) -> dict[str, object]:
    return {
        "oid": role.oid, "rolname": state.roles.name(role.oid), "rolsuper": role.superuser, "rolinherit": role.inherit,
        "rolcreaterole": role.createrole, "rolcreatedb": role.createdb, "rolcanlogin": role.login,
        "rolreplication": role.replication, "rolbypassrls": role.bypassrls, "rolconnlimit": role.limit,
        "rolvaliduntil": role.valid_until,
    }  # fmt: skip


def _roles(state: SystemState) -> list[Role]:
    return sorted(state.roles.access.roles.values(), key=lambda r: r.oid)


def _config(role: Role) -> tuple[str, ...] | None:
    return tuple(f"{name}={value}" for name, value in role.settings_in(0)) or None


def pg_authid(state: SystemState, row: Row) -> Iterator[Datums]:
    for role in _roles(state):
        yield row(rolpassword=role.password, **_shared(state, role))


def pg_roles(state: SystemState, row: Row) -> Iterator[Datums]:
    for role in _roles(state):
        yield row(rolpassword=_HIDDEN, rolconfig=_config(role), **_shared(state, role))


def pg_user(state: SystemState, row: Row) -> Iterator[Datums]:
    for role in _roles(state):
        if role.login:
            yield row(
                usename=state.roles.name(role.oid), usesysid=role.oid, usecreatedb=role.createdb,
                usesuper=role.superuser, userepl=role.replication, usebypassrls=role.bypassrls, passwd=_HIDDEN,
                valuntil=role.valid_until, useconfig=_config(role),
            )  # fmt: skip


def pg_group(state: SystemState, row: Row) -> Iterator[Datums]:
    for role in _roles(state):
        if not role.login:
            members = tuple(m.member for m in state.roles.access.memberships if m.role == role.oid)
            yield row(groname=state.roles.name(role.oid), grosysid=role.oid, grolist=members)


def pg_auth_members(state: SystemState, row: Row) -> Iterator[Datums]:
    for m in state.roles.access.memberships:
        yield row(roleid=m.role, member=m.member, grantor=m.grantor, admin_option=m.admin)


def pg_default_acl(state: SystemState, row: Row) -> Iterator[Datums]:
    known = {0, *state.schemas().values()}
    for number, ((role, schema, kind), acl) in enumerate(state.roles.access.defaults.items()):
        if schema not in known:
            continue
        yield row(
            oid=_DEFAULTS_BASE + number, defaclrole=role, defaclnamespace=schema,
            defaclobjtype=_DEFAULT_KINDS[kind], defaclacl=acl_text(acl, state.roles),
        )  # fmt: skip
