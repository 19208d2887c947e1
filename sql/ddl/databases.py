"""Databases as changes of the catalog that keeps them: that of the first database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from ivm.errors import SqlError, unsupported
from sql.catalog.access import Access, database_object
from sql.catalog.catalog import FIRST_USER_ID
from sql.catalog.databases import FIRST_DATABASE, Database
from sql.ddl.acting import Actor
from sql.ddl.settings import changed_settings
from sql.engine.writer import Writer
from sql.statements.databases import (
    AlterDatabase,
    CreateDatabase,
    DropDatabase,
    RenameDatabase,
    SetDatabase,
    Value,
    WholeDatabase,
)
from sql.statements.role_spec import RoleSpec

_BOOLEANS: Final = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
_LOCALES: Final = ("locale", "lc_collate", "lc_ctype")
_UTF8: Final = ("utf8", "unicode")
_UTF8_NUMBER: Final = 6


@dataclass(frozen=True, slots=True)
class NewDatabase:
    """What CREATE DATABASE is to make. ``oid``: the one asked for, or 0; ``template``: what it is a copy of."""

    database: Database
    oid: int
    template: Database


def new_database(actor: Actor, statement: CreateDatabase) -> NewDatabase:
    """Check the statement. Raises 0A000, 22023, 3D000, 42501, 42704, 42P04."""
    options, access = dict(statement.options), actor.access
    owner = options.get("owner")
    role = actor.of(owner) if isinstance(owner, RoleSpec) else actor.role
    _check_fixed(options)
    found = Database(0, statement.name, role, **_properties(options))  # type: ignore[arg-type]
    oid = options.get("oid") or 0
    if isinstance(oid, int) and oid and oid < FIRST_USER_ID:
        raise SqlError("22023", "OIDs less than 16384 are reserved for system objects")
    if not actor.creates_databases:
        raise SqlError("42501", "permission denied to create database")
    actor.check_becomes(role)
    name = str(options.get("template") or "template1")
    template = access.shared.database(name)
    if template is None:
        raise SqlError("3D000", f'template database "{name}" does not exist')
    if not template.template and not access.owns(actor.role, database_object(template.oid)):
        raise SqlError("42501", f'permission denied to copy database "{name}"')
    if template.oid == FIRST_DATABASE:
        raise unsupported(f"a copy of {name}, which keeps what all databases share,")
    check_absent(access, statement.name)
    return NewDatabase(found, int(str(oid)), template)


def check_absent(access: Access, name: str) -> None:
    """Raises 42P04 where there is a database of this name."""
    if access.shared.database(name) is not None:
        raise SqlError("42P04", f'database "{name}" already exists')


def _check_fixed(options: Mapping[str, Value]) -> None:
    """What is the same in every database: its encoding, its locale, and its tablespace."""
    encoding = options.get("encoding")
    if encoding is not None and encoding != _UTF8_NUMBER:
        plain = "".join(c for c in str(encoding).lower() if c.isalnum())
        if plain not in _UTF8:
            raise unsupported(f"encoding {encoding}", "Every database is in UTF8.")
    for name in _LOCALES:
        if options.get(name) not in (None, "C", "POSIX"):
            raise unsupported(f'{name.upper()} "{options[name]}"', "Every database has the locale C.")
    if options.get("locale_provider") not in (None, "libc"):
        raise unsupported(f"locale provider {options['locale_provider']}", "Every database has the locale C.")
    for name in ("icu_locale", "collation_version", "location"):
        if options.get(name) is not None:
            raise unsupported(name.upper())
    tablespace = options.get("tablespace")
    if tablespace == "pg_global":
        raise SqlError("22023", "pg_global cannot be used as default tablespace")
    if tablespace not in (None, "pg_default"):
        raise SqlError("42704", f'tablespace "{tablespace}" does not exist')
    strategy = options.get("strategy")
    if strategy is not None and str(strategy).lower() not in ("wal_log", "file_copy"):
        message = f'invalid create database strategy "{strategy}"'
        raise SqlError("22023", message, hint='Valid strategies are "wal_log", and "file_copy".')


def _properties(options: Mapping[str, Value]) -> dict[str, object]:
    """The fields of a database that CREATE and ALTER set. Raises 22023, 42601."""
    found: dict[str, object] = {}
    if options.get("connection limit") is not None:
        limit = options["connection limit"]
        if isinstance(limit, bool) or not isinstance(limit, int):
            raise SqlError("42601", "connection limit requires an integer value")
        if limit < -1:
            raise SqlError("22023", f"invalid connection limit: {limit}")
        found["limit"] = limit
    for option, field in (("allow_connections", "connects"), ("is_template", "template")):
        value = options.get(option)
        if value is None:
            continue
        known = bool(value) if isinstance(value, int) else _BOOLEANS.get(str(value).lower())
        if known is None:
            raise SqlError("42601", f"{option} requires a Boolean value")
        found[field] = known
    return found


def insert_database(writer: Writer, new: NewDatabase, oid: int) -> Database:
    """Add the database, which may be opened as soon as that is committed. Raises 42710, 42P04."""
    access = writer.catalog.access
    check_absent(access, new.database.name)
    if oid in access.shared.databases:
        raise SqlError("42710", f"database OID {oid} is already in use")
    if new.database.owner not in access.roles:
        raise SqlError("42704", f"role with OID {new.database.owner} does not exist")
    made = replace(new.database, oid=oid)
    if not new.oid:
        writer.catalog = replace(writer.catalog, next_id=max(writer.catalog.next_id, oid + 1))
    writer.set_access(access.with_database(made))
    return made


def database_to_drop(actor: Actor, statement: DropDatabase) -> Database | None:
    """Check the statement; None: there is none, and IF EXISTS accepts that. Raises 0A000, 3D000, 42501, 42809,
    55006."""
    name, access = statement.name, actor.access
    if access.shared.database(name) is None and name != actor.database and statement.if_exists:
        return None
    found = actor.database_named(name)
    _check_owner(actor, found)
    if name == actor.database:
        raise SqlError("55006", "cannot drop the currently open database")
    if found.template:
        raise SqlError("42809", "cannot drop a template database")
    if found.oid == FIRST_DATABASE:
        raise unsupported(f"DROP of {name}, which keeps what all databases share,")
    return found


def check_whole(actor: Actor, statement: WholeDatabase) -> None:
    """Raises what ``new_database`` or ``database_to_drop`` do."""
    if isinstance(statement, CreateDatabase):
        new_database(actor, statement)
    else:
        database_to_drop(actor, statement)


def remove_database(writer: Writer, oid: int) -> None:
    """Remove the database, which nobody can connect to from then on."""
    access = writer.catalog.access
    databases = {known: d for known, d in access.shared.databases.items() if known != oid}
    writer.set_access(access.with_databases(databases))


def _check_owner(actor: Actor, database: Database) -> None:
    if not actor.access.owns(actor.role, database_object(database.oid)):
        raise SqlError("42501", f"must be owner of database {database.name}")


def alter_database(writer: Writer, actor: Actor, statement: RenameDatabase | AlterDatabase | SetDatabase) -> str:
    """The tag. Raises 22023, 3D000, 42501, 42601, 42P04, and what ``Settings.set`` does."""
    access = writer.catalog.access
    found = actor.database_named(statement.name, access)
    _check_owner(actor, found)
    match statement:
        case RenameDatabase():
            check_renaming(actor, access, statement)
            changed = replace(found, name=statement.new)
        case AlterDatabase():
            properties = _properties(dict(statement.options))
            if properties.get("connects") is False and statement.name == actor.database:
                raise SqlError("22023", "cannot disallow connections for current database")
            changed = replace(found, **properties)  # type: ignore[arg-type]
        case SetDatabase():
            changed = replace(
                found, settings=changed_settings("DATABASE", found.settings, statement.setting, statement.value)
            )
    writer.set_access(access.with_database(changed))
    return "ALTER DATABASE"


def check_renaming(actor: Actor, access: Access, statement: RenameDatabase) -> None:
    """Raises 0A000, 3D000, 42501, 42P04."""
    _check_owner(actor, actor.database_named(statement.name, access))
    if not actor.creates_databases:
        raise SqlError("42501", "permission denied to rename database")
    check_absent(access, statement.new)
    if statement.name == actor.database:
        raise SqlError("0A000", "current database cannot be renamed")
