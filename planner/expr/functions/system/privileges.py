"""has_*_privilege and pg_has_role, always true: one role owns everything."""

from __future__ import annotations

from ivm.words import BOOL, NAME, OID, TEXT
from planner.expr.functions.table import ArgumentType, per_value


def _privileges() -> None:
    """Adds the overloads of a has_*_privilege function, which is always true."""
    for kind in ("table", "schema", "database", "column", "any_column", "function", "sequence", "type", "tablespace"):
        column: tuple[ArgumentType, ...] = (TEXT,) if kind == "column" else ()
        for owner in ((), (NAME,), (OID,)):
            for subject in (TEXT, OID):
                args = (*owner, subject, *column, TEXT)
                per_value(f"has_{kind}_privilege", args, BOOL, volatility="stable")(_granted)
    for roles in ((NAME, TEXT), (NAME, NAME, TEXT), (OID, TEXT)):
        per_value("pg_has_role", roles, BOOL, volatility="stable")(_granted)


def _granted(*args: object) -> bool:
    return True


_privileges()
