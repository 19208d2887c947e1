"""Functions about the server that psql and drivers ask for, and that have one answer here."""

from __future__ import annotations

from ivm.errors import SqlError
from ivm.words import BOOL, INT8, NAME, OID, TEXT
from planner.expr.functions.table import Site, per_value


@per_value("pg_conversion_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_opclass_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_opfamily_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_statistics_obj_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_ts_config_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_ts_dict_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_ts_parser_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_ts_template_is_visible", (OID,), BOOL, volatility="stable")
def visible(oid: int) -> bool:
    """Objects of kinds that exist in pg_catalog only."""
    return True


@per_value("pg_tablespace_location", (OID,), TEXT, volatility="stable")
def pg_tablespace_location(oid: int) -> str:
    """Every tablespace is the data folder."""
    return ""


@per_value("pg_get_function_sqlbody", (OID,), TEXT, volatility="stable")
def pg_get_function_sqlbody(oid: int) -> None:
    """No function has a body in SQL."""


@per_value("pg_database_size", (NAME,), INT8, volatility="stable")
@per_value("pg_database_size", (OID,), INT8, volatility="stable")
def pg_database_size(database: str | int) -> None:
    """Not known: the store belongs to the whole server."""


@per_value("getdatabaseencoding", (), NAME, volatility="stable")
def getdatabaseencoding() -> str:
    return "UTF8"


@per_value("set_config", (TEXT, TEXT, BOOL), TEXT, strict=False, volatility="volatile", needs_site=True)
def set_config(site: Site, name: str | None, value: str | None, local: bool | None) -> str:
    """SET as a function; gives the new value."""
    session = site.context.session
    assert session is not None, "a session evaluates this"
    if name is None:
        raise SqlError("22004", "SET requires parameter name")
    return session.set_setting(name, "default" if value is None else value, bool(local))
