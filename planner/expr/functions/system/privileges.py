"""has_*_privilege and pg_has_role (through ``Context.session``). There are no policies."""

from __future__ import annotations

from itertools import product
from typing import Final

from ivm.words import BOOL, INT2, NAME, OID, TEXT
from planner.expr.functions.table import ArgumentType, CallSite, per_value, session_of

_KINDS: Final = (
    "table", "schema", "database", "any_column", "function", "sequence", "type", "tablespace", "language",
    "foreign_data_wrapper", "server", "parameter",
)  # fmt: skip
_ROLES: Final[tuple[tuple[ArgumentType, ...], ...]] = ((), (NAME,), (OID,))


def _add(kind: str) -> None:
    """Adds the overloads of a function about objects of one kind, by name or by oid."""

    def mine(site: CallSite, subject: object, privileges: str) -> bool | None:
        return session_of(site).has_privilege(kind, None, subject, None, privileges)

    def role_s(site: CallSite, role: object, subject: object, privileges: str) -> bool | None:
        return session_of(site).has_privilege(kind, role, subject, None, privileges)

    subjects = (TEXT,) if kind == "parameter" else (TEXT, OID)
    for role, subject in product(_ROLES, subjects):
        args = (*role, subject, TEXT)
        implementation = role_s if role else mine
        per_value(f"has_{kind}_privilege", args, BOOL, volatility="stable", needs_site=True)(implementation)


def _mine(site: CallSite, table: object, column: object, privileges: str) -> bool | None:
    return session_of(site).has_privilege("column", None, table, column, privileges)


def _roles(site: CallSite, role: object, table: object, column: object, privileges: str) -> bool | None:
    return session_of(site).has_privilege("column", role, table, column, privileges)


def _my_role(site: CallSite, other: object, privileges: str) -> bool:
    return session_of(site).has_role(None, other, privileges)


def _restricted(site: CallSite, table: object) -> bool:
    return session_of(site).row_security_active(table)


def _role(site: CallSite, role: object, other: object, privileges: str) -> bool:
    return session_of(site).has_role(role, other, privileges)


for _kind in _KINDS:
    _add(_kind)
for _of, _table, _column in product(_ROLES, (TEXT, OID), (TEXT, INT2)):
    per_value("has_column_privilege", (*_of, _table, _column, TEXT), BOOL, volatility="stable", needs_site=True)(
        _roles if _of else _mine
    )
for _of, _other in product(_ROLES, (NAME, OID)):
    per_value("pg_has_role", (*_of, _other, TEXT), BOOL, volatility="stable", needs_site=True)(
        _role if _of else _my_role
    )
for _table in (TEXT, OID):
    per_value("row_security_active", (_table,), BOOL, volatility="stable", needs_site=True)(_restricted)
