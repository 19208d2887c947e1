"""has_*_privilege and pg_has_role, always true: one role owns everything, and there are no policies."""

from __future__ import annotations

from itertools import product
from typing import Final

from ivm.words import BOOL, INT2, NAME, OID, TEXT
from planner.expr.functions.table import ArgumentType, per_value

_KINDS: Final = (
    "table", "schema", "database", "column", "any_column", "function", "sequence", "type", "tablespace", "language",
    "foreign_data_wrapper", "server", "parameter",
)  # fmt: skip


def _privileges() -> None:
    """Adds the overloads of a has_*_privilege function, which is always true."""
    for kind in _KINDS:
        columns: tuple[tuple[ArgumentType, ...], ...] = ((TEXT,), (INT2,)) if kind == "column" else ((),)
        subjects = (TEXT,) if kind == "parameter" else (TEXT, OID)
        for owner, subject, column in product(((), (NAME,), (OID,)), subjects, columns):
            args = (*owner, subject, *column, TEXT)
            per_value(f"has_{kind}_privilege", args, BOOL, volatility="stable")(_granted)
    for owner, role in product(((), (NAME,), (OID,)), (NAME, OID)):
        per_value("pg_has_role", (*owner, role, TEXT), BOOL, volatility="stable")(_granted)
    for table in (TEXT, OID):
        per_value("row_security_active", (table,), BOOL, volatility="stable")(lambda table: False)


def _granted(*args: object) -> bool:
    return True


_privileges()
