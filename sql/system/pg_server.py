"""Rows of the catalogs about the server: schemas, databases, settings, sessions, and fixed rows (pg_am …)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from sql.catalog import access
from sql.catalog.access import NAMESPACE, Securable, database_object
from sql.catalog.catalog import FIRST_USER_ID, INTERNAL_SCHEMAS
from sql.catalog.roles import READ_ALL_STATS
from sql.catalog.securables import LANGUAGES, TRUSTED, language, securable
from sql.catalog.system.definitions import Datums, Row
from sql.system.acls import initial_acl, own_acl
from sql.system.builtin import COLLATIONS, descriptions
from sql.system.pg_types import function_oids
from sql.system.state import HIDDEN, OWNER, SystemState, all_relations, databases
from storage.passwords import hide_passwords
from storage.types.calendar import SECOND
from storage.types.type_names import type_oid
from storage.types.zone_abbreviations import DYNAMIC, FIXED
from storage.types.zone_files import zone_names
from storage.types.zones import zone

_UTF8: Final = 6
_TABLESPACE: Final = 1663
_VALIDATORS: Final = {"internal": "fmgr_internal_validator", "c": "fmgr_c_validator", "sql": "fmgr_sql_validator"}


def pg_namespace(state: SystemState, row: Row) -> Iterator[Datums]:
    for name, oid in state.schemas().items():
        what = Securable(NAMESPACE, oid, "n")
        owner = state.roles.access.owner(what)
        yield row(oid=oid, nspname=name, nspowner=owner, nspacl=own_acl(what, state.roles))


def pg_init_privs(state: SystemState, row: Row) -> Iterator[Datums]:
    """What is granted from the start on what came with the server: a dump leaves it out."""
    for relation, _ in all_relations(state):
        if relation.oid < FIRST_USER_ID and (acl := initial_acl(securable(relation), state.roles)) is not None:
            yield row(objoid=relation.oid, classoid=access.CLASS, privtype="i", initprivs=acl)
    for name, oid in state.schemas().items():
        if oid < FIRST_USER_ID and (acl := initial_acl(Securable(NAMESPACE, oid, "n"), state.roles)) is not None:
            yield row(objoid=oid, classoid=NAMESPACE, privtype="e" if name == "freshet" else "i", initprivs=acl)


def pg_database(state: SystemState, row: Row) -> Iterator[Datums]:
    for database in databases(state):
        yield row(
            oid=database.oid, datname=database.name, datdba=database.owner,
            encoding=_UTF8, datlocprovider="c", datistemplate=database.template, datallowconn=database.connects,
            datconnlimit=database.limit, dattablespace=_TABLESPACE, datcollate="C", datctype="C",
            datacl=own_acl(database_object(database.oid), state.roles),
        )  # fmt: skip


def pg_db_role_setting(state: SystemState, row: Row) -> Iterator[Datums]:
    for database in databases(state):
        if database.settings:
            yield row(
                setdatabase=database.oid, setrole=0, setconfig=tuple(f"{n}={v}" for n, v in database.settings)
            )  # fmt: skip
    there = {0, *(database.oid for database in databases(state))}
    for role in state.roles.access.roles.values():
        for oid, settings in role.settings:
            if oid in there:
                yield row(setdatabase=oid, setrole=role.oid, setconfig=tuple(f"{n}={v}" for n, v in settings))


def pg_stat_database(state: SystemState, row: Row) -> Iterator[Datums]:
    sessions = state.sessions()
    for database in databases(state):
        count = sum(session.database_oid == database.oid for session in sessions)
        yield row(datid=database.oid, datname=database.name, numbackends=count)


def pg_settings(state: SystemState, row: Row) -> Iterator[Datums]:
    for name, value in state.settings():
        yield row(
            name=name, setting=value, category="Freshet", short_desc="", context="user", vartype="string",
            source="session", boot_val=value, reset_val=value, pending_restart=False,
        )  # fmt: skip


def pg_locks(state: SystemState, row: Row) -> Iterator[Datums]:
    """Locks of tables and the database, and those of rows that somebody waits for. A row has no place to name it by."""
    oids = {r.id: r.oid for r in state.relations()}
    for lock in state.locks():
        class_, object_, part = lock.numbers or (None, None, None)
        yield row(
            locktype=lock.kind, database=state.roles.access.database, relation=oids.get(lock.relation),
            classid=class_, objid=object_, objsubid=part, pid=lock.backend_id, mode=lock.mode, granted=lock.granted,
            fastpath=False,
        )  # fmt: skip


def pg_stat_activity(state: SystemState, row: Row) -> Iterator[Datums]:
    for session in state.sessions():
        who = {
            "datid": session.database_oid, "datname": session.database, "pid": session.backend_id,
            "usesysid": session.role, "usename": session.user, "application_name": session.application_name,
            "backend_type": "client backend",
        }  # fmt: skip
        if not _sees(state, session.role):
            yield row(**who, query=HIDDEN)
            continue
        yield row(
            **who, backend_start=session.started,
            xact_start=session.transaction_started, query_start=session.query_started,
            state_change=session.query_started or session.started, state=session.state,
            query=hide_passwords(session.query),
        )  # fmt: skip


def _sees(state: SystemState, role: int) -> bool:
    """Whether the current role may see what another's sessions run."""
    access = state.roles.access
    return access.may_act_as(state.role, role) or access.may_act_as(state.role, READ_ALL_STATS)


def pg_stat_ssl(state: SystemState, row: Row) -> Iterator[Datums]:
    for session in state.sessions():
        tls = session.tls
        if not _sees(state, session.role):
            yield row(pid=session.backend_id)
        elif tls is None:
            yield row(pid=session.backend_id, ssl=False)
        else:
            serial = None if tls.client_serial is None else Decimal(tls.client_serial)
            yield row(
                pid=session.backend_id, ssl=True, version=tls.version, cipher=tls.cipher, bits=tls.bits,
                client_dn=tls.client_dn or None, client_serial=serial, issuer_dn=tls.issuer_dn or None,
            )  # fmt: skip


def pg_stat_gssapi(state: SystemState, row: Row) -> Iterator[Datums]:
    for session in state.sessions():
        if _sees(state, session.role):
            yield row(pid=session.backend_id, gss_authenticated=False, encrypted=False)
        else:
            yield row(pid=session.backend_id)


def pg_hba_file_rules(state: SystemState, row: Row) -> Iterator[Datums]:
    for line in state.hba_lines():
        yield row(
            line_number=line.line, type=line.type, database=line.databases, user_name=line.users, address=line.address,
            netmask=line.netmask, auth_method=line.method, options=line.options, error=line.error,
        )  # fmt: skip


def pg_stat_progress_copy(state: SystemState, row: Row) -> Iterator[Datums]:
    for copy in state.copies():
        yield row(
            pid=copy.backend_id, datid=state.roles.access.database, datname=state.database, relid=copy.relation,
            command="COPY TO" if copy.to else "COPY FROM", type=copy.target, bytes_processed=copy.done,
            bytes_total=copy.size, tuples_processed=copy.rows, tuples_excluded=0, tuples_skipped=copy.skipped,
        )  # fmt: skip


def pg_cursors(state: SystemState, row: Row) -> Iterator[Datums]:
    for cursor in state.cursors():
        yield row(
            name=cursor.name, statement=cursor.statement, is_holdable=cursor.holdable, is_binary=cursor.binary,
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
    for oid, name in COLLATIONS.items():
        provider, locale = ("d", None) if name == "default" else ("c", name)
        yield row(
            oid=oid, collname=name, collnamespace=INTERNAL_SCHEMAS["pg_catalog"], collowner=OWNER,
            collprovider=provider, collisdeterministic=True, collencoding=-1, collcollate=locale, collctype=locale,
        )  # fmt: skip


def pg_tablespace(state: SystemState, row: Row) -> Iterator[Datums]:
    yield row(oid=_TABLESPACE, spcname="pg_default", spcowner=OWNER)
    yield row(oid=1664, spcname="pg_global", spcowner=OWNER)


def pg_language(state: SystemState, row: Row) -> Iterator[Datums]:
    oids = function_oids()
    for name in LANGUAGES:
        what = language(name)
        yield row(
            oid=what.oid, lanname=name, lanowner=OWNER, lanispl=name in ("python", "plpgsql"),
            lanpltrusted=name in TRUSTED, lanplcallfoid=oids.get(f"{name}_call_handler", 0),
            laninline=oids.get(f"{name}_inline_handler", 0),
            lanvalidator=oids.get(_VALIDATORS.get(name, f"{name}_validator"), 0), lanacl=own_acl(what, state.roles),
        )  # fmt: skip


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
    own = state.comments()
    for (catalog, oid), text in descriptions().items():
        if (catalog, oid, 0) not in own:
            yield row(objoid=oid, classoid=catalog, description=text)
    for (catalog, oid, number), text in own.items():
        if text and catalog != access.DATABASE:
            yield row(objoid=oid, classoid=catalog, objsubid=number, description=text)


def pg_shdescription(state: SystemState, row: Row) -> Iterator[Datums]:
    for (catalog, oid, _), text in state.comments().items():
        if catalog == access.DATABASE:
            yield row(objoid=oid, classoid=catalog, description=text)
