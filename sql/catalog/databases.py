"""What all databases of a server share: the roles, their memberships, and the databases themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sql.catalog.acl import PUBLIC_ROLE, Acl, AclItem
from sql.catalog.roles import BOOTSTRAP_ID, FIRST_MEMBERSHIPS, FIRST_ROLES, Membership, Role

FIRST_DATABASE: Final = 5
"""The oid of the database that every server has, whose catalog keeps what is shared."""
TEMPLATE0: Final = 4
TEMPLATE1: Final = 1


@dataclass(frozen=True, slots=True)
class Database:
    """``acl``: None as long as nothing was granted on it or revoked from it. ``limit``: of its connections, -1 for
    none. ``connects``: whether it takes any. ``template``: whether everybody with CREATEDB may copy it. ``settings``:
    of its sessions, in the order in which they were set."""

    oid: int
    name: str
    owner: int = BOOTSTRAP_ID
    acl: Acl | None = None
    limit: int = -1
    connects: bool = True
    template: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    comment: str | None = None


_COPIED: Final = (AclItem(PUBLIC_ROLE, BOOTSTRAP_ID, "c"), AclItem(BOOTSTRAP_ID, BOOTSTRAP_ID, "CTc"))
FIRST_DATABASES: Final = {
    FIRST_DATABASE: Database(FIRST_DATABASE, "postgres", comment="default administrative connection database"),
    TEMPLATE1: Database(
        TEMPLATE1, "template1", acl=_COPIED, template=True, comment="default template for new databases"
    ),
    TEMPLATE0: Database(
        TEMPLATE0, "template0", acl=_COPIED, connects=False, template=True, comment="unmodifiable empty database"
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """Immutable, and known by its identity: a change makes another one."""

    roles: Mapping[int, Role] = field(default_factory=lambda: FIRST_ROLES)
    memberships: tuple[Membership, ...] = FIRST_MEMBERSHIPS
    databases: Mapping[int, Database] = field(default_factory=lambda: FIRST_DATABASES)

    def database(self, name: str) -> Database | None:
        """The database of this name."""
        return next((d for d in self.databases.values() if d.name == name), None)


NOTHING_SHARED: Final = Shared()
"""Of a new server."""
