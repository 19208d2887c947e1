"""Facts about the server that psql and drivers ask for."""

from __future__ import annotations

from ivm.words import BOOL, INT4, NAME, TEXT, TIMESTAMPTZ
from planner.expr.context import SERVER_VERSION
from planner.expr.functions.table import CallSite, per_value


@per_value("version", (), TEXT, volatility="stable")
def version() -> str:
    return f"PostgreSQL {SERVER_VERSION}"


@per_value("pg_is_in_recovery", (), BOOL, volatility="volatile")
def pg_is_in_recovery() -> bool:
    return False


@per_value("getdatabaseencoding", (), NAME, volatility="stable")
@per_value("pg_client_encoding", (), NAME, volatility="stable")
def encoding() -> str:
    return "UTF8"


@per_value("pg_encoding_to_char", (INT4,), NAME)
def pg_encoding_to_char(code: int) -> str:
    return {0: "SQL_ASCII", 6: "UTF8"}.get(code, "")


@per_value("pg_char_to_encoding", (NAME,), INT4)
def pg_char_to_encoding(name: str) -> int:
    plain = "".join(c for c in name.lower() if c.isalnum())
    return {"sqlascii": 0, "utf8": 6, "unicode": 6}.get(plain, -1)


@per_value("pg_postmaster_start_time", (), TIMESTAMPTZ, volatility="stable", needs_site=True)
def pg_postmaster_start_time(site: CallSite) -> int:
    hook = getattr(site.context.session, "start_time", None)
    return int(hook()) if callable(hook) else site.context.now
