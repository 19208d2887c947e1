"""Roles, their memberships, and the roles that every server has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BOOTSTRAP_ID: Final = 10
DATABASE_OWNER: Final = 6171
READ_ALL_DATA: Final = 6181
WRITE_ALL_DATA: Final = 6182
MONITOR: Final = 3373
READ_ALL_SETTINGS: Final = 3374
READ_ALL_STATS: Final = 3375
READ_SERVER_FILES: Final = 4569
WRITE_SERVER_FILES: Final = 4570
SIGNAL_BACKEND: Final = 4200
CHECKPOINT: Final = 4544


@dataclass(frozen=True, slots=True)
class Role:
    """``limit``: of its connections, -1 for none. ``valid_until``: of its password, in µs since 2000 UTC.
    ``password``: the SCRAM-SHA-256 verifier. ``settings``: what its sessions begin with, by the oid of the database, 0
    for all."""

    oid: int
    name: str
    superuser: bool = False
    inherit: bool = True
    createrole: bool = False
    createdb: bool = False
    login: bool = False
    replication: bool = False
    bypassrls: bool = False
    limit: int = -1
    valid_until: int | None = None
    password: str | None = None
    settings: tuple[tuple[int, tuple[tuple[str, str], ...]], ...] = ()

    def settings_in(self, database: int) -> tuple[tuple[str, str], ...]:
        """Those for one database alone, or (0) for all."""
        return dict(self.settings).get(database, ())


@dataclass(frozen=True, slots=True)
class Membership:
    """``member`` is a member of ``role``; ``admin``: and may grant it to others."""

    role: int
    member: int
    grantor: int
    admin: bool = False


BOOTSTRAP: Final = Role(
    BOOTSTRAP_ID, "postgres", superuser=True, createrole=True, createdb=True, login=True, replication=True,
    bypassrls=True,
)  # fmt: skip
"""The superuser of a new server, who owns all that nobody else does."""
_PREDEFINED: Final = {
    "pg_database_owner": DATABASE_OWNER, "pg_read_all_data": READ_ALL_DATA, "pg_write_all_data": WRITE_ALL_DATA,
    "pg_monitor": MONITOR, "pg_read_all_settings": READ_ALL_SETTINGS, "pg_read_all_stats": READ_ALL_STATS,
    "pg_stat_scan_tables": 3377, "pg_read_server_files": READ_SERVER_FILES,
    "pg_write_server_files": WRITE_SERVER_FILES, "pg_execute_server_program": 4571,
    "pg_signal_backend": SIGNAL_BACKEND, "pg_checkpoint": CHECKPOINT,
}  # fmt: skip
FIRST_ROLES: Final = {r.oid: r for r in (BOOTSTRAP, *(Role(oid, name) for name, oid in _PREDEFINED.items()))}
FIRST_MEMBERSHIPS: Final = tuple(
    Membership(role, MONITOR, BOOTSTRAP_ID) for role in (READ_ALL_SETTINGS, READ_ALL_STATS, 3377)
)
