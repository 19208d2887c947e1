"""Advisory locks and pg_notify, which the session implements (``SessionFunctions``)."""

from __future__ import annotations

from ivm.words import BOOL, INT4, INT8, TEXT, VOID
from planner.expr.functions.table import CallSite, per_value, session_of


def _register(xact: str, transaction: bool) -> None:
    for args in ((INT8,), (INT4, INT4)):

        @per_value(f"pg_advisory_{xact}lock", args, VOID, volatility="volatile", needs_site=True)
        def lock(site: CallSite, *key: int) -> int:
            session_of(site).advisory_lock(key, transaction)
            return 0

        @per_value(f"pg_try_advisory_{xact}lock", args, BOOL, volatility="volatile", needs_site=True)
        def try_lock(site: CallSite, *key: int) -> bool:
            return session_of(site).try_advisory_lock(key, transaction)


_register("", transaction=False)
_register("xact_", transaction=True)


@per_value("pg_advisory_unlock", (INT8,), BOOL, volatility="volatile", needs_site=True)
@per_value("pg_advisory_unlock", (INT4, INT4), BOOL, volatility="volatile", needs_site=True)
def pg_advisory_unlock(site: CallSite, *key: int) -> bool:
    return session_of(site).advisory_unlock(key)


@per_value("pg_advisory_unlock_all", (), VOID, volatility="volatile", needs_site=True)
def pg_advisory_unlock_all(site: CallSite) -> int:
    session_of(site).advisory_unlock_all()
    return 0


@per_value("pg_notify", (TEXT, TEXT), VOID, strict=False, volatility="volatile", needs_site=True)
def pg_notify(site: CallSite, channel: str | None, payload: str | None) -> int:
    session_of(site).notify(channel or "", payload or "")
    return 0
