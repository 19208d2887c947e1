"""Roles, owners and access control lists as JSON, as a part of the stored catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple
from typing import Any

from sql.catalog.access import Access, Securable
from sql.catalog.acl import Acl, AclItem
from sql.catalog.roles import Membership, Role


def access_to_json(access: Access) -> dict[str, object]:
    """What ``access_from_json`` reads back."""
    return {
        "roles": [asdict(r) for r in access.roles.values()],
        "memberships": [astuple(m) for m in access.memberships],
        "owners": [[*astuple(what), owner] for what, owner in access.owners.items()],
        "acls": [[*astuple(what), [astuple(i) for i in acl]] for what, acl in access.acls.items()],
        "defaults": [[*what, [astuple(i) for i in acl]] for what, acl in access.defaults.items()],
    }


def access_from_json(data: Mapping[str, Any] | None) -> Access:
    """``data``: with tuples for lists; None: of a catalog that was stored before there were roles."""
    if data is None:
        return Access()
    roles = [Role(**r) for r in data["roles"]]
    return Access(
        {r.oid: r for r in roles},
        tuple(Membership(*m) for m in data["memberships"]),
        {Securable(*what): owner for *what, owner in data["owners"]},
        {Securable(*what): _acl(items) for *what, items in data["acls"]},
        {(role, schema, kind): _acl(items) for role, schema, kind, items in data["defaults"]},
    )


def _acl(items: tuple[Any, ...]) -> Acl:
    return tuple(AclItem(*i) for i in items)
