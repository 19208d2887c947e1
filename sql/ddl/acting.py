"""Who runs a definition, and what statements call roles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ivm.errors import SqlError
from sql.catalog.access import Access, RoleNames
from sql.catalog.acl import PUBLIC_ROLE
from sql.catalog.databases import Database
from sql.statements.role_spec import RoleSpec


@dataclass(frozen=True, slots=True)
class Actor:
    """``role``: the current role; ``session``: that of the session. ``database``: the name by which it connected."""

    role: int
    session: int
    roles: RoleNames
    database: str

    @property
    def access(self) -> Access:
        return self.roles.access

    @property
    def is_superuser(self) -> bool:
        return self.access.is_superuser(self.role)

    @property
    def creates_databases(self) -> bool:
        """Whether the current role is a superuser or has CREATEDB."""
        known = self.access.roles.get(self.role)
        return known is not None and (known.superuser or known.createdb)

    def database_named(self, name: str, access: Access | None = None) -> Database:
        """The database that a statement names. ``access``: where to look, if not in the actor's own. Raises 3D000."""
        access = access or self.access
        found = access.shared.database(name)
        if found is None and name == self.database:
            found = access.shared.databases[access.database]
        if found is None:
            raise SqlError("3D000", f'database "{name}" does not exist')
        return found

    def of(self, spec: RoleSpec) -> int:
        """The role that a statement names. Raises 42704, also for PUBLIC."""
        match spec.kind:
            case "current":
                return self.role
            case "session":
                return self.session
            case _:
                return self.roles.role(spec.name).oid

    def all_of(self, specs: Iterable[RoleSpec]) -> tuple[int, ...]:
        """Several of them, each once."""
        return tuple(dict.fromkeys(map(self.of, specs)))

    def grantee(self, spec: RoleSpec) -> int:
        """The same for those that a privilege is granted to, where PUBLIC means everybody."""
        return PUBLIC_ROLE if spec.kind == "public" else self.of(spec)

    def check_superuser(self, message: str) -> None:
        """Raises 42501 unless the current role is a superuser."""
        if not self.is_superuser:
            raise SqlError("42501", message)

    def check_creates_schemas(self) -> None:
        """Raises 42501 unless the current role may create schemas."""
        if not self.access.has(self.role, self.access.own_database, "C"):
            raise SqlError("42501", f"permission denied for database {self.database}")

    def check_becomes(self, role: int) -> None:
        """Raises 42501 unless what the current role makes or owns may be given to this one."""
        if not self.access.may_become(self.role, role):
            raise SqlError("42501", f'must be member of role "{self.roles.name(role)}"')
