"""CREATE, ALTER and DROP of roles, and GRANT and REVOKE of their membership, as changes of the catalog."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from ivm.errors import SqlError
from ivm.words import TIMESTAMPTZ
from sql.catalog.access import Access
from sql.catalog.roles import BOOTSTRAP_ID, DATABASE_OWNER, FIRST_ROLES, Membership, Role
from sql.catalog.search_path import SearchPathReader
from sql.ddl.acting import Actor
from sql.ddl.owned import database_lines, dependency_lines
from sql.ddl.settings import changed_settings
from sql.engine.writer import Writer
from sql.statements.results import Notice, Notify
from sql.statements.roles import AlterRole, CreateRole, DropRole, GrantRole, RenameRole, SetRole
from storage.scram import verifier
from storage.types.text import parse_datum

_MD5: Final = re.compile("md5[0-9a-f]{32}")
RoleChange = CreateRole | AlterRole | SetRole | RenameRole | DropRole | GrantRole
_PROTECTED: Final = (
    ("superuser", "must be superuser to create superusers"),
    ("replication", "must be superuser to create replication users"),
    ("bypassrls", "must be superuser to create bypassrls users"),
)


Elsewhere = Mapping[str, Sequence[str]]
"""What roles own and hold in other databases: lines by the role's name."""
NOTHING_ELSEWHERE: Final[Elsewhere] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RoleDefiner:
    """Runs these statements for one writer."""

    writer: Writer
    names: SearchPathReader
    notify: Notify
    actor: Actor
    elsewhere: Elsewhere = field(default_factory=dict)

    @property
    def access(self) -> Access:
        """What the transaction's own catalog says."""
        return self.writer.catalog.access

    def run(self, statement: RoleChange) -> str:
        """The statement's tag. Raises 42501, 42704, 42710, and the error of whatever blocks the change."""
        match statement:
            case CreateRole():
                self._create(statement)
                return "CREATE ROLE"
            case AlterRole():
                self._alter(statement)
                return "ALTER ROLE"
            case SetRole():
                self._set(statement)
                return "ALTER ROLE"
            case RenameRole():
                self._rename(statement)
                return "ALTER ROLE"
            case DropRole():
                self._drop(statement)
                return "DROP ROLE"
            case GrantRole():
                self._grant(statement)
                return "ALTER ROLE" if statement.alter else "REVOKE ROLE" if statement.revoke else "GRANT ROLE"

    @property
    def _may_create(self) -> bool:
        role = self.access.roles.get(self.actor.role)
        return role is not None and (role.superuser or role.createrole)

    def _put(self, role: Role) -> None:
        self.writer.set_access(self.access.with_roles({**self.access.roles, role.oid: role}))

    def _create(self, statement: CreateRole) -> None:
        options = dict(statement.options)
        for option, message in _PROTECTED:
            if options.get(option):
                self.actor.check_superuser(message)
        if not self._may_create:
            raise SqlError("42501", "permission denied to create role")
        _check_name(statement.name)
        if self.actor.roles.find(statement.name) is not None:
            raise SqlError("42710", f'role "{statement.name}" already exists')
        role = Role(self._new_oid(), statement.name, **self._values(options))  # type: ignore[arg-type]
        self._put(role)
        for other in self.actor.all_of(statement.within):
            self._join([role.oid], other, admin=False, grantor=self.actor.role)
        for specs, admin in ((statement.admins, True), (statement.members, False)):
            self._join(self.actor.all_of(specs), role.oid, admin=admin, grantor=self.actor.role)

    def _new_oid(self) -> int:
        """An oid that no role has, whichever database it was made in."""
        oid = self.writer.new_id()
        while oid in self.access.roles:
            oid = self.writer.new_id()
        return oid

    def _alter(self, statement: AlterRole) -> None:
        role = self.access.roles[self.actor.of(statement.role)]
        options = dict(statement.options)
        if "superuser" in options or role.superuser:
            message = "must be superuser to alter superuser roles or change superuser attribute"
            self.actor.check_superuser(message)
        elif "replication" in options or role.replication:
            message = "must be superuser to alter replication roles or change replication attribute"
            self.actor.check_superuser(message)
        elif "bypassrls" in options:
            self.actor.check_superuser("must be superuser to change bypassrls attribute")
        elif not self._may_create and (role.oid != self.actor.role or set(options) - {"password"}):
            raise SqlError("42501", "permission denied")
        _check_own(role)
        if role.oid == BOOTSTRAP_ID and options.get("superuser") is False:
            detail = "The bootstrap user must have the SUPERUSER attribute."
            raise SqlError("0A000", "permission denied to alter role", detail)
        self._put(replace(role, **self._values(options)))  # type: ignore[arg-type]

    def _set(self, statement: SetRole) -> None:
        """Raises 3D000, 42501, 0A000, and what ``changed_settings`` does."""
        role = self.access.roles[self.actor.of(statement.role)]
        if role.superuser:
            self.actor.check_superuser("must be superuser to alter superusers")
        elif not self._may_create and role.oid != self.actor.role:
            raise SqlError("42501", "permission denied")
        _check_own(role)
        name = statement.database
        database = 0 if name is None else self.actor.database_named(name, self.access).oid
        changed = changed_settings("ROLE", role.settings_in(database), statement.setting, statement.value)
        others = tuple((oid, kept) for oid, kept in role.settings if oid != database)
        self._put(replace(role, settings=(*others, (database, changed)) if changed else others))

    def _rename(self, statement: RenameRole) -> None:
        role = self.actor.roles.role(statement.name)
        if role.oid == self.actor.session:
            raise SqlError("0A000", "session user cannot be renamed")
        if role.oid == self.actor.role:
            raise SqlError("0A000", "current user cannot be renamed")
        _check_own(role)
        _check_name(statement.new)
        if self.actor.roles.find(statement.new) is not None:
            raise SqlError("42710", f'role "{statement.new}" already exists')
        if role.superuser:
            self.actor.check_superuser("must be superuser to rename superusers")
        elif not self._may_create:
            raise SqlError("42501", "permission denied to rename role")
        self._put(replace(role, name=statement.new))

    def _drop(self, statement: DropRole) -> None:
        if not self._may_create:
            raise SqlError("42501", "permission denied to drop role")
        for spec in statement.roles:
            if spec.kind != "named":
                raise SqlError("22023", "cannot use special role specifier in DROP ROLE")
            role = self.actor.roles.find(spec.name)
            if role is not None:
                self._drop_one(role)
            elif statement.if_exists:
                self.notify(Notice("NOTICE", "00000", f'role "{spec.name}" does not exist, skipping'))
            else:
                raise SqlError("42704", f'role "{spec.name}" does not exist')

    def _drop_one(self, role: Role) -> None:
        if role.oid == self.actor.role:
            raise SqlError("55006", "current user cannot be dropped")
        if role.oid == self.actor.session:
            raise SqlError("55006", "session user cannot be dropped")
        if role.oid in FIRST_ROLES:
            message = f"cannot drop role {role.name} because it is required by the database system"
            raise SqlError("2BP01", message)
        if role.superuser:
            self.actor.check_superuser("must be superuser to drop superusers")
        own = dependency_lines(replace(self.names, catalog=self.writer.catalog), role.oid)
        lines = [*database_lines(self.access, role.oid), *own, *self.elsewhere.get(role.name, ())]
        if lines:
            message = f'role "{role.name}" cannot be dropped because some objects depend on it'
            raise SqlError("2BP01", message, "\n".join(lines))
        access = self.access
        memberships = tuple(m for m in access.memberships if role.oid not in (m.role, m.member))
        roles = {oid: r for oid, r in access.roles.items() if oid != role.oid}
        self.writer.set_access(access.with_roles(roles, memberships))

    def _grant(self, statement: GrantRole) -> None:
        grantor = self.actor.role if statement.grantor is None else self.actor.of(statement.grantor)
        if grantor != self.actor.role:
            self.actor.check_superuser("must be superuser to set grantor")
        for name in statement.roles:
            role = self.actor.roles.role(name)
            members = self.actor.all_of(statement.members)
            self._check_admits(role)
            if statement.revoke:
                self._leave(members, role, statement.option)
            else:
                self._join(members, role.oid, admin=statement.option, grantor=grantor)

    def _check_admits(self, role: Role) -> None:
        if role.oid == DATABASE_OWNER:
            raise SqlError("0A000", f'role "{role.name}" cannot have explicit members')
        if role.superuser:
            self.actor.check_superuser("must be superuser to alter superusers")
        elif not self._may_create and not self.access.may_admit(self.actor.role, role.oid):
            raise SqlError("42501", f'must have admin option on role "{role.name}"')

    def _join(self, members: Iterable[int], role: int, *, admin: bool, grantor: int) -> None:
        for member in members:
            access, name = self.access, self._name
            if member == DATABASE_OWNER:
                raise SqlError("0A000", f'role "{name(member)}" cannot be a member of any role')
            if role == DATABASE_OWNER:
                raise SqlError("0A000", f'role "{name(role)}" cannot have explicit members')
            if member == role or member in access.joined(role):
                raise SqlError("0LP01", f'role "{name(role)}" is a member of role "{name(member)}"')
            known = next((m for m in access.memberships if (m.role, m.member) == (role, member)), None)
            if known is not None and (known.admin or not admin):
                message = f'role "{name(member)}" is already a member of role "{name(role)}"'
                self.notify(Notice("NOTICE", "00000", message))
                continue
            others = tuple(m for m in access.memberships if m is not known)
            made = Membership(role, member, grantor, admin)
            self.writer.set_access(access.with_roles(memberships=(*others, made)))

    def _leave(self, members: Iterable[int], role: Role, only_admin: bool) -> None:
        for member in members:
            access = self.access
            known = next((m for m in access.memberships if (m.role, m.member) == (role.oid, member)), None)
            if known is None:
                message = f'role "{self._name(member)}" is not a member of role "{role.name}"'
                self.notify(Notice("WARNING", "01000", message))
                continue
            others = tuple(m for m in access.memberships if m is not known)
            left = (replace(known, admin=False),) if only_admin else ()
            self.writer.set_access(access.with_roles(memberships=(*others, *left)))

    def _values(self, options: Mapping[str, object]) -> dict[str, object]:
        """The options as fields of a role: of a password its verifier. Raises 22007, 0A000 for a hash by MD5."""
        found = dict(options)
        if isinstance(found.get("password"), str):
            password = str(found["password"])
            if _MD5.fullmatch(password):
                hint = "Give the password itself or a SCRAM-SHA-256 verifier; set password_encryption to scram-sha-256."
                raise SqlError("0A000", "passwords hashed with MD5 are not supported", hint=hint)
            if not password:
                message = "empty string is not a valid password, clearing password"
                self.notify(Notice("NOTICE", "00000", message))
            found["password"] = verifier(password) if password else None
        if isinstance(found.get("valid_until"), str):
            found["valid_until"] = parse_datum(TIMESTAMPTZ, str(found["valid_until"]))
        return found

    def _name(self, role: int) -> str:
        return self.access.roles[role].name


def _check_name(name: str) -> None:
    if name.startswith("pg_"):
        detail = 'Role names starting with "pg_" are reserved.'
        raise SqlError("42939", f'role name "{name}" is reserved', detail)


def _check_own(role: Role) -> None:
    if role.oid in FIRST_ROLES and role.oid != BOOTSTRAP_ID:
        detail = 'Role names starting with "pg_" are reserved.'
        raise SqlError("42939", f'role name "{role.name}" is reserved', detail)
