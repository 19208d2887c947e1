"""pg_get_*def: the SQL text that defines a view, index, constraint, partition or function."""

from __future__ import annotations

from ivm.words import BOOL, INT2, INT4, OID, REGCLASS, TEXT
from planner.expr.functions.table import CallSite, per_value, session_of


@per_value("pg_get_viewdef", (OID, BOOL), TEXT, volatility="stable", needs_site=True)
@per_value("pg_get_viewdef", (OID, INT4), TEXT, volatility="stable", needs_site=True)
@per_value("pg_get_viewdef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_viewdef(site: CallSite, oid: int, pretty: bool | int = False) -> str | None:
    """A number in place of ``pretty`` asks for pretty text with several columns on a line, up to that width."""
    if isinstance(pretty, bool):
        return session_of(site).view_definition(oid, pretty)
    return session_of(site).view_definition(oid, True, pretty)


@per_value("pg_get_viewdef", (TEXT, BOOL), TEXT, volatility="stable", needs_site=True)
@per_value("pg_get_viewdef", (TEXT,), TEXT, volatility="stable", needs_site=True)
def viewdef_of_name(site: CallSite, name: str, pretty: bool = False) -> str | None:
    return session_of(site).view_definition(session_of(site).reg_in(REGCLASS, name), pretty)


def _asked(site: CallSite, name: str, *args: object) -> str | None:
    """Calls an optional hook of the session; None if it has none."""
    hook = getattr(site.context.session, name, None)
    return None if hook is None else hook(*args)


@per_value("pg_get_expr", (TEXT, OID, BOOL), TEXT, volatility="stable", needs_site=True)
@per_value("pg_get_expr", (TEXT, OID), TEXT, volatility="stable", needs_site=True)
def pg_get_expr(site: CallSite, expression: str, relation: int, pretty: bool = False) -> str:
    return _asked(site, "expression", expression, relation, pretty) or expression


@per_value("pg_get_partkeydef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_partkeydef(site: CallSite, oid: int) -> str | None:
    return _asked(site, "partition_key", oid)


@per_value("pg_get_partition_constraintdef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_partition_constraintdef(site: CallSite, oid: int) -> str | None:
    return _asked(site, "partition_constraint", oid)


@per_value("pg_get_indexdef", (OID, INT4, BOOL), TEXT, volatility="stable", needs_site=True)
@per_value("pg_get_indexdef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_indexdef(site: CallSite, oid: int, column: int = 0, pretty: bool = False) -> str | None:
    return _asked(site, "index_definition", oid, column, pretty)


@per_value("pg_get_constraintdef", (OID, BOOL), TEXT, volatility="stable", needs_site=True)
@per_value("pg_get_constraintdef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_constraintdef(site: CallSite, oid: int, pretty: bool = False) -> str | None:
    return _asked(site, "constraint_definition", oid, pretty)


@per_value("pg_get_triggerdef", (OID, BOOL), TEXT, volatility="stable", needs_site=True)
@per_value("pg_get_triggerdef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_triggerdef(site: CallSite, oid: int, pretty: bool = False) -> str | None:
    return _asked(site, "trigger_definition", oid, pretty)


def _function_text(name: str, what: str) -> None:
    """Adds a function that gives one text of a user's function (``SessionFunctions.function_text``)."""
    per_value(name, (OID,), TEXT, volatility="stable", needs_site=True)(
        lambda site, oid: session_of(site).function_text(oid, what)
    )


_function_text("pg_get_functiondef", "definition")
_function_text("pg_get_function_result", "result")
_function_text("pg_get_function_arguments", "arguments")
_function_text("pg_get_function_identity_arguments", "identity")


@per_value("pg_get_function_sqlbody", (OID,), TEXT, volatility="stable")
def pg_get_function_sqlbody(oid: int) -> None:
    """NULL: no function has a body in SQL."""


@per_value("pg_relation_is_updatable", (REGCLASS, BOOL), INT4, volatility="stable", needs_site=True)
def pg_relation_is_updatable(site: CallSite, oid: int, triggers: bool) -> int:
    """4 for UPDATE, 8 for INSERT and 16 for DELETE."""
    return 28 if any(session_of(site).updatable(oid)) else 0


@per_value("pg_column_is_updatable", (REGCLASS, INT2, BOOL), BOOL, volatility="stable", needs_site=True)
def pg_column_is_updatable(site: CallSite, oid: int, number: int, triggers: bool) -> bool:
    columns = session_of(site).updatable(oid)
    return 0 < number <= len(columns) and columns[number - 1]


@per_value("pg_get_function_arg_default", (OID, INT4), TEXT, volatility="stable", needs_site=True)
def pg_get_function_arg_default(site: CallSite, oid: int, number: int) -> str | None:
    return session_of(site).argument_default(oid, number)
