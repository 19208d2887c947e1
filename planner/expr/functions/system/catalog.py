"""Names, object identifiers and comments of catalog objects."""

from __future__ import annotations

from ivm.errors import SqlError
from ivm.words import (
    BOOL,
    INT4,
    NAME,
    OID,
    REGCLASS,
    REGCOLLATION,
    REGNAMESPACE,
    REGOPER,
    REGOPERATOR,
    REGPROC,
    REGPROCEDURE,
    REGROLE,
    REGTYPE,
    TEXT,
    Kind,
    SqlType,
)
from planner.expr.functions.table import CallSite, per_value, session_of
from storage.types.type_names import format_type, type_from_oid


@per_value("format_type", (OID, INT4), TEXT, strict=False, volatility="stable", needs_site=True)
def format_type_of(site: CallSite, oid: int | None, modifier: int | None) -> str | None:
    if oid is None:
        return None
    if oid == 0:
        return "-"
    if site.context.session is not None:
        return site.context.session.format_type(oid, modifier)
    found = type_from_oid(oid, -1 if modifier is None else modifier)
    return "???" if found is None else format_type(found, modifier is not None)


@per_value("oidvectortypes", (SqlType(Kind.ARRAY, element=OID),), TEXT, volatility="stable", needs_site=True)
def oidvectortypes(site: CallSite, oids: tuple[int, ...]) -> str:
    return ", ".join(format_type_of(site, oid, None) or "" for oid in oids)


@per_value("pg_get_userbyid", (OID,), NAME, volatility="stable", needs_site=True)
def pg_get_userbyid(site: CallSite, oid: int) -> str:
    return session_of(site).role_name(oid)


@per_value("to_regclass", (TEXT,), REGCLASS, volatility="stable", needs_site=True)
@per_value("to_regtype", (TEXT,), REGTYPE, volatility="stable", needs_site=True)
@per_value("to_regproc", (TEXT,), REGPROC, volatility="stable", needs_site=True)
@per_value("to_regnamespace", (TEXT,), REGNAMESPACE, volatility="stable", needs_site=True)
@per_value("to_regprocedure", (TEXT,), REGPROCEDURE, volatility="stable", needs_site=True)
@per_value("to_regoper", (TEXT,), REGOPER, volatility="stable", needs_site=True)
@per_value("to_regoperator", (TEXT,), REGOPERATOR, volatility="stable", needs_site=True)
@per_value("to_regrole", (TEXT,), REGROLE, volatility="stable", needs_site=True)
@per_value("to_regcollation", (TEXT,), REGCOLLATION, volatility="stable", needs_site=True)
def registered(site: CallSite, name: str) -> int | None:
    """NULL if there is none; numbers, which the types read as oids, are no names here."""
    if name == "-" or (name.isascii() and name.isdigit()):
        if site.result == REGTYPE:
            raise SqlError("42601", f'syntax error at or near "{name}"')
        return None
    try:
        return session_of(site).reg_in(site.result, name)
    except SqlError as error:
        if error.sqlstate in ("42P01", "42704", "42883", "42725", "3F000", "42602"):
            return None
        raise


@per_value("obj_description", (OID,), TEXT, volatility="stable", needs_site=True)
@per_value("obj_description", (OID, NAME), TEXT, volatility="stable", needs_site=True)
@per_value("shobj_description", (OID, NAME), TEXT, volatility="stable", needs_site=True)
def obj_description(site: CallSite, oid: int, catalog: str | None = None) -> str | None:
    return session_of(site).description(oid, 0, catalog)


@per_value("col_description", (OID, INT4), TEXT, volatility="stable", needs_site=True)
def col_description(site: CallSite, oid: int, number: int) -> str | None:
    return session_of(site).description(oid, number, "pg_class") if number else None


@per_value("pg_get_ruledef", (OID, BOOL), TEXT, volatility="stable")
@per_value("pg_get_ruledef", (OID,), TEXT, volatility="stable")
@per_value("pg_get_statisticsobjdef", (OID,), TEXT, volatility="stable")
@per_value("pg_get_statisticsobjdef_columns", (OID,), TEXT, volatility="stable")
@per_value("pg_get_statisticsobjdef_expressions", (OID,), SqlType(Kind.ARRAY, element=TEXT), volatility="stable")
def no_description(*args: object) -> None:
    """NULL: Freshet keeps no rules or statistics."""
    return


@per_value("pg_tablespace_location", (OID,), TEXT, volatility="stable")
def pg_tablespace_location(oid: int) -> str:
    """Every tablespace is in the data folder."""
    return ""
