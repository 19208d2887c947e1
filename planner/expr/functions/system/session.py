"""The session's user, database, address and settings, and signals to other sessions (through ``Context.session``)."""

from __future__ import annotations

import os
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import BOOL, INT4, INT8, NAME, TEXT, Kind, SqlType
from planner.expr.functions.table import CallSite, per_value, session_of
from storage.types.text import parse_datum

_INET: Final = SqlType(Kind.INET)
_NAMES: Final = SqlType(Kind.ARRAY, element=NAME)


@per_value("current_user", (), NAME, volatility="stable", needs_site=True)
@per_value("current_role", (), NAME, volatility="stable", needs_site=True)
@per_value("user", (), NAME, volatility="stable", needs_site=True)
@per_value("getpgusername", (), NAME, volatility="stable", needs_site=True)
def current_user(site: CallSite) -> str:
    return session_of(site).current_user()


@per_value("session_user", (), NAME, volatility="stable", needs_site=True)
def session_user(site: CallSite) -> str:
    return session_of(site).session_user()


@per_value("current_database", (), NAME, volatility="stable", needs_site=True)
@per_value("current_catalog", (), NAME, volatility="stable", needs_site=True)
def current_database(site: CallSite) -> str:
    return session_of(site).current_database()


@per_value("current_schema", (), NAME, volatility="stable", needs_site=True)
def current_schema(site: CallSite) -> str | None:
    return session_of(site).current_schema()


@per_value("current_schemas", (BOOL,), _NAMES, volatility="stable", needs_site=True)
def current_schemas(site: CallSite, implicit: bool) -> tuple[str, ...]:
    return tuple(session_of(site).current_schemas(implicit))


CURRENT_SETTING: Final = "current_setting"
SETTING_NOW: Final = "setting now"
"""current_setting beside set_config: it is asked anew by each column."""


@per_value(SETTING_NOW, (TEXT,), TEXT, volatility="volatile", needs_site=True, internal=True)
@per_value(CURRENT_SETTING, (TEXT,), TEXT, volatility="stable", needs_site=True)
def current_setting(site: CallSite, name: str) -> str:
    value = session_of(site).setting(name)
    if value is None:
        raise SqlError("42704", f'unrecognized configuration parameter "{name}"')
    return value


@per_value(SETTING_NOW, (TEXT, BOOL), TEXT, volatility="volatile", needs_site=True, internal=True)
@per_value(CURRENT_SETTING, (TEXT, BOOL), TEXT, volatility="stable", needs_site=True)
def current_setting_or_null(site: CallSite, name: str, missing_ok: bool) -> str | None:
    return session_of(site).setting(name) if missing_ok else current_setting(site, name)


@per_value("set_config", (TEXT, TEXT, BOOL), TEXT, strict=False, volatility="volatile", needs_site=True)
def set_config(site: CallSite, name: str | None, value: str | None, local: bool | None) -> str:
    """set_config: SET as a function; returns the new value."""
    session = site.context.session
    assert session is not None, "a session evaluates this"
    if name is None:
        raise SqlError("22004", "SET requires parameter name")
    return session.set_setting(name, value, bool(local))


@per_value("pg_client_encoding", (), NAME, volatility="stable", needs_site=True)
def pg_client_encoding(site: CallSite) -> str:
    return current_setting(site, "client_encoding")


@per_value("txid_current", (), INT8, volatility="stable", needs_site=True)
def txid_current(site: CallSite) -> int:
    session = site.context.session
    return site.context.epoch if session is None else session.transaction_number()


@per_value("pg_backend_pid", (), INT4, volatility="stable", needs_site=True)
def pg_backend_pid(site: CallSite) -> int:
    backend = getattr(site.context.session, "backend_pid", None)
    return int(backend()) if callable(backend) else os.getpid()


@per_value("pg_blocking_pids", (INT4,), SqlType(Kind.ARRAY, element=INT4), volatility="volatile", needs_site=True)
def pg_blocking_pids(site: CallSite, pid: int) -> tuple[int, ...]:
    return tuple(session_of(site).blocking_pids(pid))


@per_value("pg_trigger_depth", (), INT4, volatility="stable", needs_site=True)
def pg_trigger_depth(site: CallSite) -> int:
    depth = getattr(site.context.session, "trigger_depth", None)
    return int(depth()) if callable(depth) else 0


@per_value("pg_cancel_backend", (INT4,), BOOL, volatility="volatile", needs_site=True)
def pg_cancel_backend(site: CallSite, pid: int) -> bool:
    return session_of(site).signal_backend(pid, terminate=False)


@per_value("pg_reload_conf", (), BOOL, volatility="volatile", needs_site=True)
def pg_reload_conf(site: CallSite) -> bool:
    return session_of(site).reload()


@per_value("current_query", (), TEXT, volatility="volatile", needs_site=True)
def current_query(site: CallSite) -> str:
    return session_of(site).statement_text()


@per_value("system_user", (), TEXT, volatility="stable", needs_site=True)
def system_user(site: CallSite) -> str | None:
    """NULL for a client that had nothing to prove."""
    return session_of(site).identity()


def _address(kind: str, server: bool) -> None:
    """Adds inet_…_addr and inet_…_port."""

    @per_value(f"inet_{kind}_addr", (), _INET, volatility="stable", needs_site=True)
    def host(site: CallSite) -> Any:
        found = session_of(site).address(server)
        return None if found is None else parse_datum(_INET, found[0])

    @per_value(f"inet_{kind}_port", (), INT4, volatility="stable", needs_site=True)
    def port(site: CallSite) -> int | None:
        found = session_of(site).address(server)
        return None if found is None else found[1]


_address("client", False)
_address("server", True)


@per_value("pg_terminate_backend", (INT4, INT8), BOOL, volatility="volatile", needs_site=True)
def pg_terminate_and_wait(site: CallSite, pid: int, timeout: int) -> bool:
    """The session ends soon; nothing waits for it here."""
    if timeout < 0:
        raise SqlError("22003", '"timeout" must not be negative')
    return pg_terminate_backend(site, pid)


@per_value("pg_terminate_backend", (INT4,), BOOL, volatility="volatile", needs_site=True)
def pg_terminate_backend(site: CallSite, pid: int) -> bool:
    return session_of(site).signal_backend(pid, terminate=True)
