"""Functions about the session, the catalog and the system; what they need to know comes from ``Context.session``."""

from __future__ import annotations

import os
import uuid
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import (
    BOOL,
    BYTEA,
    INT4,
    INT8,
    NAME,
    NUMERIC,
    OID,
    REGCLASS,
    REGNAMESPACE,
    REGPROC,
    REGTYPE,
    TEXT,
    TIMESTAMPTZ,
    Kind,
    SqlType,
)
from ivm.words import UUID as UUID_TYPE
from planner.expr.context import SERVER_VERSION
from planner.expr.functions.concat import to_text
from planner.expr.functions.table import ANY, ArgumentType, Site, per_value, session_of
from storage.types.type_names import format_type, type_from_oid, type_oid

_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
_OWNER: Final = 10
"""The OID of the one role."""
_FORKS: Final = ("main", "fsm", "vm", "init")
_NAMES: Final = SqlType(Kind.ARRAY, element=NAME)


@per_value("version", (), TEXT, volatility="stable")
def version() -> str:
    return f"PostgreSQL {SERVER_VERSION}"


@per_value("current_user", (), NAME, volatility="stable", needs_site=True)
@per_value("current_role", (), NAME, volatility="stable", needs_site=True)
@per_value("user", (), NAME, volatility="stable", needs_site=True)
def current_user(site: Site) -> str:
    return session_of(site).current_user()


@per_value("session_user", (), NAME, volatility="stable", needs_site=True)
def session_user(site: Site) -> str:
    return session_of(site).session_user()


@per_value("current_database", (), NAME, volatility="stable", needs_site=True)
@per_value("current_catalog", (), NAME, volatility="stable", needs_site=True)
def current_database(site: Site) -> str:
    return session_of(site).current_database()


@per_value("current_schema", (), NAME, volatility="stable", needs_site=True)
def current_schema(site: Site) -> str | None:
    return session_of(site).current_schema()


@per_value("current_schemas", (BOOL,), _NAMES, volatility="stable", needs_site=True)
def current_schemas(site: Site, implicit: bool) -> tuple[str, ...]:
    return tuple(session_of(site).current_schemas(implicit))


@per_value("current_setting", (TEXT,), TEXT, volatility="stable", needs_site=True)
def current_setting(site: Site, name: str) -> str:
    value = session_of(site).setting(name)
    if value is None:
        raise SqlError("42704", f'unrecognized configuration parameter "{name}"')
    return value


@per_value("current_setting", (TEXT, BOOL), TEXT, volatility="stable", needs_site=True)
def current_setting_or_null(site: Site, name: str, missing_ok: bool) -> str | None:
    return session_of(site).setting(name) if missing_ok else current_setting(site, name)


@per_value("mz_now", (), INT8, volatility="stable", needs_site=True)
def mz_now(site: Site) -> int:
    return site.context.epoch


@per_value("txid_current", (), INT8, volatility="stable", needs_site=True)
def txid_current(site: Site) -> int:
    return site.context.epoch


@per_value("pg_backend_pid", (), INT4, volatility="stable", needs_site=True)
def pg_backend_pid(site: Site) -> int:
    backend = getattr(site.context.session, "backend_pid", None)
    return int(backend()) if callable(backend) else os.getpid()


@per_value("pg_cancel_backend", (INT4,), BOOL, volatility="volatile", needs_site=True)
def pg_cancel_backend(site: Site, pid: int) -> bool:
    return session_of(site).signal_backend(pid, terminate=False)


@per_value("pg_terminate_backend", (INT4,), BOOL, volatility="volatile", needs_site=True)
def pg_terminate_backend(site: Site, pid: int) -> bool:
    return session_of(site).signal_backend(pid, terminate=True)


@per_value("pg_is_in_recovery", (), BOOL, volatility="volatile")
def pg_is_in_recovery() -> bool:
    return False


@per_value("pg_client_encoding", (), NAME, volatility="stable")
def pg_client_encoding() -> str:
    return "UTF8"


@per_value("pg_encoding_to_char", (INT4,), NAME)
def pg_encoding_to_char(code: int) -> str:
    return {0: "SQL_ASCII", 6: "UTF8"}.get(code, "")


@per_value("pg_char_to_encoding", (NAME,), INT4)
def pg_char_to_encoding(name: str) -> int:
    plain = "".join(c for c in name.lower() if c.isalnum())
    return {"sqlascii": 0, "utf8": 6, "unicode": 6}.get(plain, -1)


@per_value("gen_random_uuid", (), UUID_TYPE, volatility="volatile")
def gen_random_uuid() -> bytes:
    return uuid.uuid4().bytes


@per_value("pg_typeof", (ANY,), REGTYPE, strict=False, needs_site=True)
def pg_typeof(site: Site, value: Any) -> int:
    return type_oid(site.args[0])


@per_value("format_type", (OID, INT4), TEXT, strict=False, volatility="stable", needs_site=True)
def format_type_of(site: Site, oid: int | None, modifier: int | None) -> str | None:
    if oid is None:
        return None
    if oid == 0:
        return "-"
    if site.context.session is not None:
        return site.context.session.format_type(oid, modifier)
    found = type_from_oid(oid, -1 if modifier is None else modifier)
    return "???" if found is None else format_type(found, modifier is not None)


@per_value("pg_table_is_visible", (OID,), BOOL, volatility="stable", needs_site=True)
def pg_table_is_visible(site: Site, oid: int) -> bool | None:
    return session_of(site).table_is_visible(oid)


@per_value("pg_my_temp_schema", (), OID, volatility="stable", needs_site=True)
def pg_my_temp_schema(site: Site) -> int:
    return session_of(site).temporary_schema()


@per_value("pg_is_other_temp_schema", (OID,), BOOL, volatility="stable", needs_site=True)
def pg_is_other_temp_schema(site: Site, oid: int) -> bool:
    return session_of(site).is_other_temporary(oid)


@per_value("pg_type_is_visible", (OID,), BOOL, volatility="stable", needs_site=True)
def pg_type_is_visible(site: Site, oid: int) -> bool:
    return session_of(site).type_is_visible(oid)


@per_value("pg_function_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_operator_is_visible", (OID,), BOOL, volatility="stable")
@per_value("pg_collation_is_visible", (OID,), BOOL, volatility="stable")
def always_visible(oid: int) -> bool:
    return True


@per_value("pg_relation_is_publishable", (REGCLASS,), BOOL, volatility="stable")
def never_publishable(oid: int) -> bool:
    return False


@per_value("pg_get_userbyid", (OID,), NAME, volatility="stable", needs_site=True)
def pg_get_userbyid(site: Site, oid: int) -> str:
    return session_of(site).session_user() if oid == _OWNER else f"unknown (OID={oid})"


@per_value("pg_get_viewdef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_viewdef(site: Site, oid: int) -> str | None:
    return session_of(site).view_definition(oid)


@per_value("pg_get_viewdef", (OID, BOOL), TEXT, volatility="stable", needs_site=True)
def pg_get_viewdef_pretty(site: Site, oid: int, pretty: bool) -> str | None:
    return session_of(site).view_definition(oid)


@per_value("pg_get_expr", (TEXT, OID), TEXT, volatility="stable")
def pg_get_expr(expression: str, relation: int) -> str:
    return expression


@per_value("pg_get_expr", (TEXT, OID, BOOL), TEXT, volatility="stable")
def pg_get_expr_pretty(expression: str, relation: int, pretty: bool) -> str:
    return expression


def _asked(site: Site, name: str, *args: object) -> str | None:
    """A hook that a session may have; None without it."""
    hook = getattr(site.context.session, name, None)
    return None if hook is None else hook(*args)


@per_value("pg_get_partkeydef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_partkeydef(site: Site, oid: int) -> str | None:
    return _asked(site, "partition_key", oid)


@per_value("pg_get_partition_constraintdef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_partition_constraintdef(site: Site, oid: int) -> str | None:
    return _asked(site, "partition_constraint", oid)


@per_value("pg_get_indexdef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_indexdef(site: Site, oid: int) -> str | None:
    return _asked(site, "index_definition", oid, 0)


@per_value("pg_get_indexdef", (OID, INT4, BOOL), TEXT, volatility="stable", needs_site=True)
def pg_get_indexdef_column(site: Site, oid: int, column: int, pretty: bool) -> str | None:
    return _asked(site, "index_definition", oid, column)


@per_value("pg_get_constraintdef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_constraintdef(site: Site, oid: int) -> str | None:
    return _asked(site, "constraint_definition", oid)


@per_value("pg_get_constraintdef", (OID, BOOL), TEXT, volatility="stable", needs_site=True)
def pg_get_constraintdef_pretty(site: Site, oid: int, pretty: bool) -> str | None:
    return _asked(site, "constraint_definition", oid, pretty)


@per_value("pg_get_functiondef", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_functiondef(site: Site, oid: int) -> str | None:
    return session_of(site).function_text(oid, "definition")


@per_value("pg_get_function_result", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_function_result(site: Site, oid: int) -> str | None:
    return session_of(site).function_text(oid, "result")


@per_value("pg_get_function_arguments", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_function_arguments(site: Site, oid: int) -> str | None:
    return session_of(site).function_text(oid, "arguments")


@per_value("pg_get_function_identity_arguments", (OID,), TEXT, volatility="stable", needs_site=True)
def pg_get_function_identity_arguments(site: Site, oid: int) -> str | None:
    return session_of(site).function_text(oid, "identity")


@per_value("obj_description", (OID,), TEXT, volatility="stable")
@per_value("obj_description", (OID, NAME), TEXT, volatility="stable")
@per_value("shobj_description", (OID, NAME), TEXT, volatility="stable")
@per_value("col_description", (OID, INT4), TEXT, volatility="stable")
@per_value("pg_get_ruledef", (OID, BOOL), TEXT, volatility="stable")
@per_value("pg_get_triggerdef", (OID, BOOL), TEXT, volatility="stable")
@per_value("pg_get_statisticsobjdef_columns", (OID,), TEXT, volatility="stable")
def no_description(*args: object) -> None:
    """There are no comments, rules, triggers or statistics to tell of."""
    return


def _privileges() -> None:
    """has_*_privilege: one role owns everything, so each is true."""
    for kind in ("table", "schema", "database", "column", "any_column", "function", "sequence", "type", "tablespace"):
        column: tuple[ArgumentType, ...] = (TEXT,) if kind == "column" else ()
        for owner in ((), (NAME,), (OID,)):
            for subject in (TEXT, OID):
                args = (*owner, subject, *column, TEXT)
                per_value(f"has_{kind}_privilege", args, BOOL, volatility="stable")(_granted)
    for roles in ((NAME, TEXT), (NAME, NAME, TEXT), (OID, TEXT)):
        per_value("pg_has_role", roles, BOOL, volatility="stable")(_granted)


def _granted(*args: object) -> bool:
    return True


_privileges()


def _registered(site: Site, type_: SqlType, name: str) -> int | None:
    try:
        return session_of(site).reg_in(type_, name)
    except SqlError as error:
        if error.sqlstate in ("42P01", "42704", "42883", "3F000", "42602"):
            return None
        raise


@per_value("to_regclass", (TEXT,), REGCLASS, volatility="stable", needs_site=True)
def to_regclass(site: Site, name: str) -> int | None:
    return _registered(site, REGCLASS, name)


@per_value("to_regtype", (TEXT,), REGTYPE, volatility="stable", needs_site=True)
def to_regtype(site: Site, name: str) -> int | None:
    return _registered(site, REGTYPE, name)


@per_value("to_regproc", (TEXT,), REGPROC, volatility="stable", needs_site=True)
def to_regproc(site: Site, name: str) -> int | None:
    return _registered(site, REGPROC, name)


@per_value("to_regnamespace", (TEXT,), REGNAMESPACE, volatility="stable", needs_site=True)
def to_regnamespace(site: Site, name: str) -> int | None:
    return _registered(site, REGNAMESPACE, name)


@per_value("pg_relation_size", (REGCLASS,), INT8, volatility="volatile", needs_site=True)
@per_value("pg_table_size", (REGCLASS,), INT8, volatility="volatile", needs_site=True)
@per_value("pg_total_relation_size", (REGCLASS,), INT8, volatility="volatile", needs_site=True)
def relation_size(site: Site, oid: int) -> int:
    hook = getattr(site.context.session, "relation_size", None)
    return int(hook(oid)) if callable(hook) else 0


@per_value("pg_relation_size", (REGCLASS, TEXT), INT8, volatility="volatile", needs_site=True)
def fork_size(site: Site, oid: int, fork: str) -> int:
    if fork not in _FORKS:
        hint = 'Valid fork names are "main", "fsm", "vm", and "init".'
        raise SqlError("22023", "invalid fork name", hint=hint)
    return relation_size(site, oid) if fork == "main" else 0


@per_value("pg_size_pretty", (INT8,), TEXT)
@per_value("pg_size_pretty", (NUMERIC,), TEXT)
def pg_size_pretty(size: Any) -> str:
    amount, units = int(size), ("bytes", "kB", "MB", "GB", "TB", "PB")
    at = 0
    # Postgres goes on to the next unit from 10240 of one on, rounding half away from zero
    while abs(amount) >= 10 * 1024 and at < len(units) - 1:
        half = 512 if amount >= 0 else -512
        amount = int((amount + half) / 1024)
        at += 1
    return f"{amount} {units[at]}"


@per_value("num_nulls", (ANY,), INT4, strict=False, variadic=True)
def num_nulls(*values: Any) -> int:
    return sum(value is None for value in values)


@per_value("num_nonnulls", (ANY,), INT4, strict=False, variadic=True)
def num_nonnulls(*values: Any) -> int:
    return sum(value is not None for value in values)


@per_value("pg_column_size", (ANY,), INT4, needs_site=True)
def pg_column_size(site: Site, value: Any) -> int:
    return len(to_text(site, site.args[0], value).encode())


@per_value("pg_postmaster_start_time", (), TIMESTAMPTZ, volatility="stable", needs_site=True)
def pg_postmaster_start_time(site: Site) -> int:
    hook = getattr(site.context.session, "start_time", None)
    return int(hook()) if callable(hook) else site.context.now


@per_value("encode", (BYTEA, TEXT), TEXT)
def encode(value: bytes, form: str) -> str:
    import base64

    match form.lower():
        case "hex":
            return value.hex()
        case "base64":
            text = base64.b64encode(value).decode()
            return "\n".join(text[i : i + 76] for i in range(0, len(text), 76))
        case "escape":
            return "".join(
                "\\\\" if byte == 92 else (f"\\{byte:03o}" if byte == 0 or byte > 127 else chr(byte)) for byte in value
            )
    raise SqlError("22023", f'unrecognized encoding: "{form}"')


@per_value("decode", (TEXT, TEXT), BYTEA)
def decode(value: str, form: str) -> bytes:
    import base64
    import binascii

    from storage.types.text import parse_datum

    match form.lower():
        case "hex":
            return bytes(parse_datum(BYTEA, "\\x" + value))  # type: ignore[call-overload, no-any-return]
        case "base64":
            bad = next((c for c in value if not (c in _BASE64 or c.isspace())), None)
            if bad is not None:
                raise SqlError("22023", f'invalid symbol "{bad}" found while decoding base64 sequence')
            try:
                return base64.b64decode("".join(value.split()), validate=True)
            except binascii.Error:
                raise SqlError("22023", "invalid base64 end sequence") from None
        case "escape":
            return bytes(parse_datum(BYTEA, value))  # type: ignore[call-overload, no-any-return]
    raise SqlError("22023", f'unrecognized encoding: "{form}"')
