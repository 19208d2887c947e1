"""Sizes of relations and databases, and pg_size_pretty."""

from __future__ import annotations

from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import INT8, NAME, NUMERIC, OID, REGCLASS, TEXT
from planner.expr.functions.table import CallSite, per_value

_FORKS: Final = ("main", "fsm", "vm", "init")


@per_value("pg_relation_size", (REGCLASS,), INT8, volatility="volatile", needs_site=True)
@per_value("pg_table_size", (REGCLASS,), INT8, volatility="volatile", needs_site=True)
@per_value("pg_total_relation_size", (REGCLASS,), INT8, volatility="volatile", needs_site=True)
def relation_size(site: CallSite, oid: int) -> int:
    hook = getattr(site.context.session, "relation_size", None)
    return int(hook(oid)) if callable(hook) else 0


@per_value("pg_relation_size", (REGCLASS, TEXT), INT8, volatility="volatile", needs_site=True)
def fork_size(site: CallSite, oid: int, fork: str) -> int:
    if fork not in _FORKS:
        hint = 'Valid fork names are "main", "fsm", "vm", and "init".'
        raise SqlError("22023", "invalid fork name", hint=hint)
    return relation_size(site, oid) if fork == "main" else 0


@per_value("pg_size_pretty", (INT8,), TEXT)
@per_value("pg_size_pretty", (NUMERIC,), TEXT)
def pg_size_pretty(size: Any) -> str:
    amount, units = int(size), ("bytes", "kB", "MB", "GB", "TB", "PB")
    at = 0
    # Postgres moves to the next unit from 10240 of a unit, rounding half away from zero
    while abs(amount) >= 10 * 1024 and at < len(units) - 1:
        half = 512 if amount >= 0 else -512
        amount = int((amount + half) / 1024)
        at += 1
    return f"{amount} {units[at]}"


@per_value("pg_database_size", (NAME,), INT8, volatility="stable")
@per_value("pg_database_size", (OID,), INT8, volatility="stable")
def pg_database_size(database: str | int) -> None:
    """The size of one database is unknown: the whole server shares the store."""
