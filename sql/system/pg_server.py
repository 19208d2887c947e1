"""Rows of the catalogs about the server: schemas, roles, databases, settings, sessions, and fixed rows (pg_am …)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from sql.catalog import comments
from sql.catalog.catalog import INTERNAL_SCHEMAS
from sql.catalog.system.definitions import Datums, Row
from sql.system.pg_routines import PYTHON_LANGUAGE
from sql.system.pg_types import function_oids
from sql.system.state import DATABASE, OWNER, SystemState
from storage.passwords import hide_passwords
from storage.types.calendar import SECOND
from storage.types.type_names import type_oid
from storage.types.zone_abbreviations import DYNAMIC, FIXED
from storage.types.zone_files import zone_names
from storage.types.zones import zone

_UTF8: Final = 6
_TABLESPACE: Final = 1663
_HIDDEN: Final = "********"
_SUPERUSER: Final = dict.fromkeys(
    ("rolsuper", "rolinherit", "rolcreaterole", "rolcreatedb", "rolcanlogin", "rolreplication", "rolbypassrls"), True
)


def pg_namespace(state: SystemState, row: Row) -> Iterator[Datums]:
    for name, oid in state.schemas().items():
        yield row(oid=oid, nspname=name, nspowner=OWNER)


def pg_database(state: SystemState, row: Row) -> Iterator[Datums]:
    yield row(
        oid=DATABASE, datname=state.database, datdba=OWNER, encoding=_UTF8, datlocprovider="c", datallowconn=True,
        datconnlimit=-1, dattablespace=_TABLESPACE, datcollate="C", datctype="C",
    )  # fmt: skip


def pg_authid(state: SystemState, row: Row) -> Iterator[Datums]:
    yield row(oid=OWNER, rolname=state.user, rolconnlimit=-1, **_SUPERUSER)


def pg_roles(state: SystemState, row: Row) -> Iterator[Datums]:
    yield row(oid=OWNER, rolname=state.user, rolconnlimit=-1, rolpassword=_HIDDEN, **_SUPERUSER)


def pg_user(state: SystemState, row: Row) -> Iterator[Datums]:
    yield row(
        usename=state.user, usesysid=OWNER, usecreatedb=True, usesuper=True, userepl=True, usebypassrls=True,
        passwd=_HIDDEN,
    )  # fmt: skip


def pg_settings(state: SystemState, row: Row) -> Iterator[Datums]:
    for name, value in state.settings():
        yield row(
            name=name, setting=value, category="Freshet", short_desc="", context="user", vartype="string",
            source="session", boot_val=value, reset_val=value, pending_restart=False,
        )  # fmt: skip


def pg_stat_activity(state: SystemState, row: Row) -> Iterator[Datums]:
    for session in state.sessions():
        yield row(
            datid=DATABASE, datname=session.database, pid=session.backend_id, usesysid=OWNER, usename=session.user,
            application_name=session.application_name, backend_start=session.started,
            xact_start=session.transaction_started, query_start=session.query_started,
            state_change=session.query_started, state=session.state,
            query=hide_passwords(session.query),
            backend_type="client backend",
        )  # fmt: skip


def pg_stat_progress_copy(state: SystemState, row: Row) -> Iterator[Datums]:
    for copy in state.copies():
        yield row(
            pid=copy.backend_id, datid=DATABASE, datname=state.database, relid=copy.relation,
            command="COPY TO" if copy.to else "COPY FROM", type=copy.target, bytes_processed=copy.done,
            bytes_total=copy.size, tuples_processed=copy.rows, tuples_excluded=0, tuples_skipped=copy.skipped,
        )  # fmt: skip


def pg_cursors(state: SystemState, row: Row) -> Iterator[Datums]:
    for cursor in state.cursors():
        yield row(
            name=cursor.name, statement=cursor.statement, is_holdable=cursor.holdable, is_binary=False,
            is_scrollable=cursor.scrollable, creation_time=cursor.created,
        )  # fmt: skip


def pg_prepared_statements(state: SystemState, row: Row) -> Iterator[Datums]:
    for prepared in state.prepared_statements():
        yield row(
            name=prepared.name, statement=hide_passwords(prepared.statement), prepare_time=prepared.created,
            parameter_types=tuple(type_oid(t) for t in prepared.types), from_sql=prepared.by_sql, generic_plans=0,
            custom_plans=0,
        )  # fmt: skip


def pg_am(state: SystemState, row: Row) -> Iterator[Datums]:
    for oid, name, routine, kind in (
        (2, "heap", "heap_tableam_handler", "t"),
        (403, "btree", "bthandler", "i"),
        (405, "hash", "hashhandler", "i"),
        (783, "gist", "gisthandler", "i"),
        (2742, "gin", "ginhandler", "i"),
        (4000, "spgist", "spghandler", "i"),
        (3580, "brin", "brinhandler", "i"),
    ):
        yield row(oid=oid, amname=name, amhandler=function_oids()[routine], amtype=kind)


def pg_collation(state: SystemState, row: Row) -> Iterator[Datums]:
    for oid, name, provider, locale in (
        (100, "default", "d", None),
        (950, "C", "c", "C"),
        (951, "POSIX", "c", "POSIX"),
    ):
        yield row(
            oid=oid, collname=name, collnamespace=INTERNAL_SCHEMAS["pg_catalog"], collowner=OWNER,
            collprovider=provider, collisdeterministic=True, collencoding=-1, collcollate=locale, collctype=locale,
        )  # fmt: skip


def pg_tablespace(state: SystemState, row: Row) -> Iterator[Datums]:
    yield row(oid=_TABLESPACE, spcname="pg_default", spcowner=OWNER)
    yield row(oid=1664, spcname="pg_global", spcowner=OWNER)


def pg_language(state: SystemState, row: Row) -> Iterator[Datums]:
    yield row(oid=12, lanname="internal", lanowner=OWNER)
    yield row(oid=14, lanname="sql", lanowner=OWNER, lanpltrusted=True)
    yield row(oid=PYTHON_LANGUAGE, lanname="python", lanowner=OWNER, lanispl=True)


def pg_timezone_names(state: SystemState, row: Row) -> Iterator[Datums]:
    now = int(time.time())
    for name in zone_names().values():
        found = zone(name).at(now)
        offset = (0, 0, found.offset * SECOND)
        yield row(name=name, abbrev=found.abbreviation, utc_offset=offset, is_dst=found.daylight)


def pg_timezone_abbrevs(state: SystemState, row: Row) -> Iterator[Datums]:
    now = int(time.time())
    for word in sorted(FIXED | DYNAMIC):
        offset, daylight = FIXED[word] if word in FIXED else zone(DYNAMIC[word]).meaning(word, now)[:2]
        yield row(abbrev=word.upper(), utc_offset=(0, 0, offset * SECOND), is_dst=daylight)


def pg_description(state: SystemState, row: Row) -> Iterator[Datums]:
    for (catalog, oid, number), text in state.comments().items():
        if catalog != comments.DATABASE:
            yield row(objoid=oid, classoid=catalog, objsubid=number, description=text)


def pg_shdescription(state: SystemState, row: Row) -> Iterator[Datums]:
    for (catalog, oid, _), text in state.comments().items():
        if catalog == comments.DATABASE:
            yield row(objoid=oid, classoid=catalog, description=text)
