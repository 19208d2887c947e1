"""Who may do what: the roles, the owners of objects, and the lists of what has been granted on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ivm.errors import SqlError
from sql.catalog.acl import ALL, Acl, AclItem, default_acl, held, ordered, roles_in, with_owner
from sql.catalog.databases import FIRST_DATABASE, NOTHING_SHARED, Database, Shared
from sql.catalog.roles import (
    BOOTSTRAP_ID,
    DATABASE_OWNER,
    FIRST_ROLES,
    MONITOR,
    READ_ALL_DATA,
    WRITE_ALL_DATA,
    Membership,
    Role,
)


@dataclass(frozen=True, slots=True, order=True)
class Securable:
    """An object that privileges are granted on. ``catalog``: the oid of the system catalog that lists it; ``kind``: as
    in ``acl.ALL``; ``column``: a column's number, or 0."""

    catalog: int
    oid: int
    kind: str
    column: int = 0

    @property
    def whole(self) -> Securable:
        """The relation of a column."""
        return replace(self, kind="r", column=0) if self.column else self

    def at(self, column: int) -> Securable:
        """A column of a relation."""
        return replace(self, kind="c", column=column)


Default = tuple[int, int, str]
"""What ALTER DEFAULT PRIVILEGES is for: the role that creates, the schema's oid or 0, and the kind of object."""


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """Immutable, as the catalog that it belongs to: who has what is worked out once. Objects that are gone leave their
    owners and lists behind, since oids are never given again; ``Catalog`` tells which exist.

    ``shared``: what all databases of the server have in common. ``owners``: but for those of the bootstrap superuser,
    and of databases. ``acls``: of objects that something was granted on or revoked from, but databases. ``database``:
    the oid of the database that the catalog is of.
    """

    shared: Shared = NOTHING_SHARED
    owners: Mapping[Securable, int] = field(default_factory=dict)
    acls: Mapping[Securable, Acl] = field(default_factory=dict)
    defaults: Mapping[Default, Acl] = field(default_factory=dict)
    database: int = FIRST_DATABASE
    _reached: dict[tuple[int, bool], frozenset[int]] = field(default_factory=dict)

    def changed(
        self, *, shared: Shared | None = None, owners: Mapping[Securable, int] | None = None,
        acls: Mapping[Securable, Acl] | None = None, defaults: Mapping[Default, Acl] | None = None,
        database: int | None = None,
    ) -> Access:  # fmt: skip
        """The same with these parts instead."""
        return Access(
            self.shared if shared is None else shared,
            self.owners if owners is None else owners,
            self.acls if acls is None else acls,
            self.defaults if defaults is None else defaults,
            self.database if database is None else database,
        )

    def with_roles(
        self, roles: Mapping[int, Role] | None = None, memberships: tuple[Membership, ...] | None = None
    ) -> Access:
        """The same with these roles or memberships instead."""
        known = self.shared
        return self.changed(
            shared=Shared(
                known.roles if roles is None else roles,
                known.memberships if memberships is None else memberships,
                known.databases,
            )
        )

    def with_database(self, database: Database) -> Access:
        """The same with this database, in place of the one with its oid."""
        return self.with_databases({**self.shared.databases, database.oid: database})

    def with_databases(self, databases: Mapping[int, Database]) -> Access:
        """The same with these databases instead."""
        return self.changed(shared=replace(self.shared, databases=databases))

    @property
    def roles(self) -> Mapping[int, Role]:
        """The roles, by oid."""
        return self.shared.roles

    @property
    def memberships(self) -> tuple[Membership, ...]:
        """Who is a member of which role."""
        return self.shared.memberships

    @property
    def own_database(self) -> Securable:
        """The database that the catalog is of."""
        return database_object(self.database)

    @property
    def has_others(self) -> bool:
        """Whether there are roles but those of a new server."""
        return len(self.roles) > len(FIRST_ROLES)

    def named(self, name: str) -> Role | None:
        """The role of this name."""
        return next((r for r in self.roles.values() if r.name == name), None)

    def is_superuser(self, role: int) -> bool:
        found = self.roles.get(role)
        return found is not None and found.superuser

    def inherited(self, role: int) -> frozenset[int]:
        """The roles whose privileges a role has: itself, and through INHERIT those that it is a member of."""
        return self._members_of(role, True)

    def joined(self, role: int) -> frozenset[int]:
        """The roles that a role is a member of, itself included, whether or not it inherits."""
        return self._members_of(role, False)

    def _members_of(self, role: int, inheriting: bool) -> frozenset[int]:
        known = self._reached.get((role, inheriting))
        if known is not None:
            return known
        found, left = {role}, [role]
        while left:
            member = left.pop()
            own = self.roles.get(member)
            if inheriting and (own is None or not own.inherit):
                continue
            more = {m.role for m in self.memberships if m.member == member}
            if member == self.owner(self.own_database):
                more.add(DATABASE_OWNER)
            left += more - found
            found |= more
        self._reached[role, inheriting] = frozenset(found)
        return frozenset(found)

    def may_act_as(self, role: int, other: int) -> bool:
        """Whether a role has all the privileges of another."""
        return self.is_superuser(role) or other in self.inherited(role)

    def may_become(self, role: int, other: int) -> bool:
        """Whether a role may SET ROLE to another."""
        return self.is_superuser(role) or other in self.joined(role)

    def may_admit(self, role: int, other: int) -> bool:
        """Whether a role may grant membership of another."""
        if self.is_superuser(role):
            return True
        joined = self.joined(role)
        return any(m.admin and m.role == other and m.member in joined for m in self.memberships)

    def owner(self, what: Securable) -> int:
        if what.catalog == DATABASE:
            known = self.shared.databases.get(what.oid)
            return BOOTSTRAP_ID if known is None else known.owner
        return self.owners.get(what.whole, _OWNERS.get(what.whole, BOOTSTRAP_ID))

    def owns(self, role: int, what: Securable) -> bool:
        """Whether a role may do what the object's owner may."""
        return self.may_act_as(role, self.owner(what))

    def acl(self, what: Securable) -> Acl:
        """An object's list: its own, or the default of its kind."""
        known = self._own_acl(what)
        if known is not None:
            return known
        if what.kind == "r" and what.catalog == CLASS and what.oid < FIRST_USER_ID:
            return _SYSTEM.get(what.oid, _READ)
        fixed = _FIXED.get(what)
        return default_acl(what.kind, self.owner(what)) if fixed is None else fixed

    def _own_acl(self, what: Securable) -> Acl | None:
        """An object's own list; None for the default of its kind."""
        if what.catalog == DATABASE:
            database = self.shared.databases.get(what.oid)
            return None if database is None else database.acl
        return self.acls.get(what)

    def initial(self, what: Securable) -> Acl | None:
        """The list of an object that came with the server, if it was not the default of its kind."""
        return replace(self, acls={}).shown(what)

    def shown(self, what: Securable) -> Acl | None:
        """An object's list if it is not the default of its kind."""
        system = what.catalog == CLASS and what.oid < FIRST_USER_ID and not what.column
        own = self._own_acl(what)
        return self.acl(what) if own is not None or what in _FIXED or system else None

    def privileges(self, role: int, what: Securable) -> str:
        """The letters of what a role may do with an object."""
        if self.is_superuser(role):
            return ALL[what.kind]
        roles = self.inherited(role)
        found = held(self.acl(what), roles)
        if what.kind in ("r", "s") and READ_ALL_DATA in roles:
            found += "r"
        if what.kind == "r" and WRITE_ALL_DATA in roles:
            found += "awd"
        if what.kind == "n" and (READ_ALL_DATA in roles or WRITE_ALL_DATA in roles):
            found += "U"
        return ordered(found)

    def has(self, role: int, what: Securable, privilege: str) -> bool:
        """Whether a role has a privilege, given by its letter; on a column also through its relation."""
        if privilege in self.privileges(role, what):
            return True
        return bool(what.column) and privilege in self.privileges(role, what.whole)

    def has_on_columns(self, role: int, what: Securable, privilege: str, columns: Collection[int]) -> bool:
        """Whether a role has a privilege on a relation or else on each of these columns."""
        return self.has(role, what, privilege) or all(
            privilege in self.privileges(role, what.at(column)) for column in columns
        )

    def with_owner(self, what: Securable, role: int) -> Access:
        """The object given to another owner, whose name then stands in its lists."""
        old = self.owner(what)
        if what.catalog == DATABASE:
            database = self.shared.databases[what.oid]
            acl = None if database.acl is None else with_owner(database.acl, old, role)
            return self.with_database(replace(database, owner=role, acl=acl))
        acls = {
            key: with_owner(acl, old, role) if (key.catalog, key.oid) == (what.catalog, what.oid) else acl
            for key, acl in self.acls.items()
        }
        return self.changed(owners={**self.owners, what: role}, acls=acls)

    def with_acl(self, what: Securable, acl: Acl) -> Access:
        """The object with this list."""
        if what.catalog == DATABASE:
            return self.with_database(replace(self.shared.databases[what.oid], acl=acl))
        return self.changed(acls={**self.acls, what: acl})

    def with_columns(self, relation: int, before: Sequence[str], after: Sequence[str]) -> Access:
        """The lists of a relation's columns, and of its tableoid, at the columns' new places."""
        if not any(key.column and key.oid == relation for key in self.acls):
            return self
        places = {-6: -6} | {i + 1: after.index(name) + 1 for i, name in enumerate(before) if name in after}
        kept = {key: acl for key, acl in self.acls.items() if not (key.column and key.oid == relation)}
        moved = {
            key.at(places[key.column]): acl
            for key, acl in self.acls.items()
            if key.oid == relation and (key.column in places)
        }
        return self.changed(acls=kept | moved)

    def default_for(self, role: int, schema: int, kind: str) -> Acl | None:
        """The list of a new object; None for its kind's default."""
        whole, inside = self.defaults.get((role, 0, kind)), self.defaults.get((role, schema, kind), ())
        if whole is None and not inside:
            return None
        found = default_acl(kind, role) if whole is None else whole
        for item in inside:
            found = _merged(found, item)
        return found

    def mentioned(self, what: Securable) -> set[int]:
        """The roles in an object's own list, other than its owner."""
        return roles_in(self._own_acl(what) or ()) - {self.owner(what)}


def _merged(acl: Acl, item: AclItem) -> Acl:
    known = next((i for i in acl if (i.grantee, i.grantor) == (item.grantee, item.grantor)), None)
    if known is None:
        return (*acl, item)
    both = AclItem(
        item.grantee, item.grantor, ordered(known.privileges + item.privileges), ordered(known.options + item.options)
    )
    return tuple(both if i is known else i for i in acl)


FIRST_USER_ID: Final = 16384
CLASS: Final = 1259
TYPE: Final = 1247
FUNCTION: Final = 1255
NAMESPACE: Final = 2615
DATABASE: Final = 1262


def database_object(oid: int) -> Securable:
    """A database."""
    return Securable(DATABASE, oid, "d")


_PUBLIC_SCHEMA: Final = Securable(NAMESPACE, 2200, "n")
_OWNERS: Final = {_PUBLIC_SCHEMA: DATABASE_OWNER}
_OPEN: Final = (AclItem(BOOTSTRAP_ID, BOOTSTRAP_ID, "UC"), AclItem(0, BOOTSTRAP_ID, "U"))
_FIXED: Final[Mapping[Securable, Acl]] = {
    _PUBLIC_SCHEMA: (AclItem(DATABASE_OWNER, DATABASE_OWNER, "UC"), AclItem(0, DATABASE_OWNER, "U")),
    **{Securable(NAMESPACE, oid, "n"): _OPEN for oid in (11, 13207, 13999)},
}
"""The lists that a new server's schemas have."""
_OWN: Final = AclItem(BOOTSTRAP_ID, BOOTSTRAP_ID, ALL["r"])
_READ: Final = (_OWN, AclItem(0, BOOTSTRAP_ID, "r"))
_SYSTEM: Final[Mapping[int, Acl]] = {
    **dict.fromkeys((1260, 1418, 12114), (_OWN,)),
    **dict.fromkeys(range(13980, 13999), (_OWN, AclItem(MONITOR, BOOTSTRAP_ID, "r"))),
}
"""The lists of the system relations that not everybody may read: passwords, who may connect, and those of schema
freshet."""


@dataclass(frozen=True, slots=True)
class RoleNames:
    """The roles' names as one session sees them. ``login``: the name under which it connected although no role has it:
    so it calls the bootstrap superuser."""

    access: Access
    login: str | None = None

    def find(self, name: str) -> Role | None:
        """The role of this name."""
        found = self.access.named(name)
        return self.access.roles[BOOTSTRAP_ID] if found is None and name == self.login else found

    def role(self, name: str) -> Role:
        """The role of this name. Raises 42704."""
        found = self.find(name)
        if found is None:
            raise SqlError("42704", f'role "{name}" does not exist')
        return found

    def name(self, oid: int) -> str:
        """A role's name."""
        if oid == BOOTSTRAP_ID and self.login is not None and self.access.named(self.login) is None:
            return self.login
        found = self.access.roles.get(oid)
        return f"unknown (OID={oid})" if found is None else found.name
