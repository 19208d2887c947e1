"""pg_get_*def: the SQL text that defines a view, index, constraint, partition or function."""

from __future__ import annotations

from ivm.words import BOOL, INT4, OID, TEXT
from planner.expr.functions.table import CallSite, per_value, session_of


@per_value("pg_get_viewdef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_viewdef(site: CallSite, oid: int) -> str | None:
    return session_of(site).view_definition(oid)


@per_value("pg_get_viewdef", (OID, BOOL), TEXT, volatility="stable", needs_site=True)
def pg_get_viewdef_pretty(site: CallSite, oid: int, pretty: bool) -> str | None:
    return session_of(site).view_definition(oid)


@per_value("pg_get_expr", (TEXT, OID), TEXT, volatility="stable")
def pg_get_expr(expression: str, relation: int) -> str:
    return expression


@per_value("pg_get_expr", (TEXT, OID, BOOL), TEXT, volatility="stable")
def pg_get_expr_pretty(expression: str, relation: int, pretty: bool) -> str:
    return expression


def _asked(site: CallSite, name: str, *args: object) -> str | None:
    """Calls an optional hook of the session; None if it has none."""
    hook = getattr(site.context.session, name, None)
    return None if hook is None else hook(*args)


@per_value("pg_get_partkeydef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_partkeydef(site: CallSite, oid: int) -> str | None:
    return _asked(site, "partition_key", oid)


@per_value("pg_get_partition_constraintdef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_partition_constraintdef(site: CallSite, oid: int) -> str | None:
    return _asked(site, "partition_constraint", oid)


@per_value("pg_get_indexdef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_indexdef(site: CallSite, oid: int) -> str | None:
    return _asked(site, "index_definition", oid, 0)


@per_value("pg_get_indexdef", (OID, INT4, BOOL), TEXT, volatility="stable", needs_site=True)
def pg_get_indexdef_column(site: CallSite, oid: int, column: int, pretty: bool) -> str | None:
    return _asked(site, "index_definition", oid, column)


@per_value("pg_get_constraintdef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_constraintdef(site: CallSite, oid: int) -> str | None:
    return _asked(site, "constraint_definition", oid)


@per_value("pg_get_constraintdef", (OID, BOOL), TEXT, volatility="stable", needs_site=True)
def pg_get_constraintdef_pretty(site: CallSite, oid: int, pretty: bool) -> str | None:
    return _asked(site, "constraint_definition", oid, pretty)


@per_value("pg_get_functiondef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_functiondef(site: CallSite, oid: int) -> str | None:
    return session_of(site).function_text(oid, "definition")


@per_value("pg_get_function_result", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_function_result(site: CallSite, oid: int) -> str | None:
    return session_of(site).function_text(oid, "result")


@per_value("pg_get_function_arguments", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_function_arguments(site: CallSite, oid: int) -> str | None:
    return session_of(site).function_text(oid, "arguments")


@per_value("pg_get_function_identity_arguments", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_function_identity_arguments(site: CallSite, oid: int) -> str | None:
    return session_of(site).function_text(oid, "identity")


@per_value("pg_get_function_sqlbody", (OID,), TEXT, volatility="stable")
def pg_get_function_sqlbody(oid: int) -> None:
    """NULL: no function has a body in SQL."""
