"""Advisory locks and pg_notify, which the session implements (``SessionFunctions``)."""

from __future__ import annotations

from itertools import product

from ivm.words import BOOL, INT4, INT8, TEXT, VOID
from planner.expr.functions.table import ArgumentType, CallSite, per_value, session_of


def _register(args: tuple[ArgumentType, ...], transaction: bool, shared: bool) -> None:
    kind = f"advisory_{'xact_' if transaction else ''}lock{'_shared' if shared else ''}"

    @per_value(f"pg_{kind}", args, VOID, volatility="volatile", needs_site=True)
    def lock(site: CallSite, *key: int) -> int:
        session_of(site).advisory_lock(key, transaction, shared)
        return 0

    @per_value(f"pg_try_{kind}", args, BOOL, volatility="volatile", needs_site=True)
    def try_lock(site: CallSite, *key: int) -> bool:
        return session_of(site).try_advisory_lock(key, transaction, shared)


for _args, _transaction, _shared in product(((INT8,), (INT4, INT4)), (False, True), (False, True)):
    _register(_args, _transaction, _shared)


@per_value("pg_advisory_unlock", (INT8,), BOOL, volatility="volatile", needs_site=True)
@per_value("pg_advisory_unlock", (INT4, INT4), BOOL, volatility="volatile", needs_site=True)
def pg_advisory_unlock(site: CallSite, *key: int) -> bool:
    return session_of(site).advisory_unlock(key, shared=False)


@per_value("pg_advisory_unlock_shared", (INT8,), BOOL, volatility="volatile", needs_site=True)
@per_value("pg_advisory_unlock_shared", (INT4, INT4), BOOL, volatility="volatile", needs_site=True)
def pg_advisory_unlock_shared(site: CallSite, *key: int) -> bool:
    return session_of(site).advisory_unlock(key, shared=True)


@per_value("pg_advisory_unlock_all", (), VOID, volatility="volatile", needs_site=True)
def pg_advisory_unlock_all(site: CallSite) -> int:
    session_of(site).advisory_unlock_all()
    return 0


@per_value("pg_notify", (TEXT, TEXT), VOID, strict=False, volatility="volatile", needs_site=True)
def pg_notify(site: CallSite, channel: str | None, payload: str | None) -> int:
    session_of(site).notify(channel or "", payload or "")
    return 0
