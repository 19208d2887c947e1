"""pg_*_is_visible and temporary schemas: which catalog objects a session finds by unqualified name."""

from __future__ import annotations

from ivm.words import BOOL, OID, REGCLASS, TEXT
from planner.expr.functions.table import CallSite, per_value, session_of


@per_value("pg_table_is_visible", (OID,), BOOL, volatility="stable", needs_site=True)
def pg_table_is_visible(site: CallSite, oid: int) -> bool | None:
    return session_of(site).table_is_visible(oid)


@per_value("pg_my_temp_schema", (), OID, volatility="stable", needs_site=True)
def pg_my_temp_schema(site: CallSite) -> int:
    return session_of(site).temporary_schema()


@per_value("pg_export_snapshot", (), TEXT, volatility="volatile", needs_site=True)
def pg_export_snapshot(site: CallSite) -> str:
    return session_of(site).export_snapshot()


@per_value("pg_is_other_temp_schema", (OID,), BOOL, volatility="stable", needs_site=True)
def pg_is_other_temp_schema(site: CallSite, oid: int) -> bool:
    return session_of(site).is_other_temporary(oid)


@per_value("pg_type_is_visible", (OID,), BOOL, volatility="stable", needs_site=True)
def pg_type_is_visible(site: CallSite, oid: int) -> bool:
    return session_of(site).type_is_visible(oid)


@per_value("pg_function_is_visible", (OID,), BOOL, volatility="stable", needs_site=True)
def pg_function_is_visible(site: CallSite, oid: int) -> bool | None:
    return session_of(site).function_is_visible(oid)


@per_value("pg_operator_is_visible", (OID,), BOOL, volatility="stable", needs_site=True)
def pg_operator_is_visible(site: CallSite, oid: int) -> bool | None:
    return session_of(site).operator_is_visible(oid)


@per_value("pg_collation_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_conversion_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_opclass_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_opfamily_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_statistics_obj_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_ts_config_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_ts_dict_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_ts_parser_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_ts_template_is_visible", (OID,), BOOL, volatility="stable")
def visible(oid: int) -> bool:
    """For kinds of objects that exist in pg_catalog only, so that all are visible."""
    return True


@per_value("pg_relation_is_publishable", (REGCLASS,), BOOL, volatility="stable")
def never_publishable(oid: int) -> bool:
    return False
