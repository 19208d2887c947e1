"""Roles, owners and access control lists as JSON, as a part of the stored catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from operator import attrgetter
from typing import Any, Final

from planner.memo import by_identity
from sql.catalog.access import Access, Securable, database_object
from sql.catalog.acl import Acl, AclItem
from sql.catalog.databases import FIRST_DATABASE, FIRST_DATABASES, Database, Shared
from sql.catalog.roles import BOOTSTRAP_ID, Membership, Role

# astuple copies each value deeply, and lists may have thousands of items
_OBJECT: Final = attrgetter(*(f.name for f in fields(Securable)))
_ITEM: Final = attrgetter(*(f.name for f in fields(AclItem)))
_MEMBERSHIP: Final = attrgetter(*(f.name for f in fields(Membership)))


def access_to_json(access: Access) -> dict[str, object]:
    """What ``access_from_json`` reads back."""
    return {
        "roles": [_role(r) for r in access.roles.values()],
        "memberships": [_MEMBERSHIP(m) for m in access.memberships],
        "databases": [asdict(d) for d in access.shared.databases.values()],
        "database": access.database,
        "owners": [[*_OBJECT(what), owner] for what, owner in access.owners.items()],
        "acls": [[*_OBJECT(what), [_ITEM(i) for i in acl]] for what, acl in access.acls.items()],
        "defaults": [[*what, [_ITEM(i) for i in acl]] for what, acl in access.defaults.items()],
    }


@by_identity
def _role(role: Role) -> dict[str, Any]:
    return asdict(role)


def access_from_json(data: Mapping[str, Any] | None) -> Access:
    """``data``: with tuples for lists; None: of a catalog that was stored before there were roles. One that was stored
    when a server had one database has its owner and list among the others."""
    if data is None:
        return Access()
    owners = {Securable(*what): owner for *what, owner in data["owners"]}
    acls = {Securable(*what): _acl(items) for *what, items in data["acls"]}
    first = database_object(FIRST_DATABASE)
    alone = replace(
        FIRST_DATABASES[FIRST_DATABASE], owner=owners.pop(first, BOOTSTRAP_ID), acl=acls.pop(first, None)
    )  # fmt: skip
    databases = {**FIRST_DATABASES, FIRST_DATABASE: alone}
    if "databases" in data:
        databases = {d["oid"]: _database(d) for d in data["databases"]}
    roles = {r["oid"]: Role(**r) for r in data["roles"]}
    memberships = tuple(Membership(*m) for m in data["memberships"])
    defaults = {(role, schema, kind): _acl(items) for role, schema, kind, items in data["defaults"]}
    return Access(Shared(roles, memberships, databases), owners, acls, defaults, data.get("database", FIRST_DATABASE))


def _database(data: Mapping[str, Any]) -> Database:
    acl = data["acl"]
    return Database(**{**data, "acl": None if acl is None else tuple(AclItem(**i) for i in acl)})


def _acl(items: tuple[Any, ...]) -> Acl:
    return tuple(AclItem(*i) for i in items)
