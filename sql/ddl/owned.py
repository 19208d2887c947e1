"""What roles own and hold: who may change an object, and what keeps a role from being dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ivm.errors import SqlError
from sql.catalog.access import Access, Securable, database_object
from sql.catalog.acl import roles_in
from sql.catalog.catalog import LABELS, Catalog, Relation, RelationKind
from sql.catalog.search_path import SearchPathReader
from sql.catalog.securables import object_name, schema_object, securable

_DEFAULTED: Final = {"r": "relations", "s": "sequences", "f": "functions", "T": "types", "n": "schemas"}


def check_owner(access: Access, role: int, relation: Relation) -> None:
    """Raises 42501 unless the role may do what the owner of a relation, type or function may."""
    if not access.owns(role, securable(relation)):
        raise SqlError("42501", f"must be owner of {object_name(relation)}")


def check_schema_owner(catalog: Catalog, role: int, name: str) -> None:
    """The same for a schema, which exists."""
    if not catalog.access.owns(role, schema_object(catalog, name)):
        raise SqlError("42501", f"must be owner of schema {name}")


def objects(names: SearchPathReader) -> Iterator[tuple[Securable, str]]:
    """Everything that has an owner in this database, with what messages call it."""
    catalog = names.catalog
    for relation in sorted(catalog.relations.values(), key=lambda r: r.oid):
        yield securable(relation), described(relation, names)
    for name in catalog.schemas:
        yield schema_object(catalog, name), f"schema {name}"


def databases(access: Access) -> Iterator[tuple[Securable, str]]:
    """All databases, with what messages call them."""
    for database in access.shared.databases.values():
        yield database_object(database.oid), f"database {database.name}"


def described(relation: Relation, names: SearchPathReader) -> str:
    """``table t`` or ``function f(integer)``: an object in a message about what depends on what."""
    if relation.kind in (RelationKind.FUNCTION, RelationKind.OPERATOR, RelationKind.TYPE):
        kind = LABELS[relation.kind] if relation.routine is None else relation.routine.kind
        return f"{kind} {relation.name}"
    return f"{LABELS[relation.kind]} {names.shown(relation)}"


def database_lines(access: Access, role: int) -> list[str]:
    """Which databases a role owns, and on which it holds something, a line each."""
    lines = []
    for what, shown in databases(access):
        if access.owner(what) == role:
            lines.append(f"owner of {shown}")
        elif role in access.mentioned(what):
            lines.append(f"privileges for {shown}")
    return lines


def dependency_lines(names: SearchPathReader, role: int) -> list[str]:
    """What a role owns and holds, a line each."""
    catalog, lines = names.catalog, []
    access = catalog.access
    for what, shown in objects(names):
        if access.owner(what) == role:
            lines.append(f"owner of {shown}")
        elif role in access.mentioned(what):
            lines.append(f"privileges for {shown}")
        if what.kind == "r":
            relation = next(r for r in catalog.relations.values() if r.oid == what.oid and securable(r) == what)
            lines += [
                f"privileges for column {column.name} of {shown}"
                for i, column in enumerate(relation.columns)
                if role in access.mentioned(what.at(i + 1))
            ]
    for relation in sorted(catalog.relations.values(), key=lambda r: r.oid):
        lines += [
            f"target of policy {policy.name} on table {names.shown(relation)}"
            for policy in relation.security.policies
            if role in policy.roles
        ]
    for (creator, schema, kind), acl in access.defaults.items():
        if schema and schema not in catalog.schemas.values():
            continue
        if creator == role or role in roles_in(acl):
            what_for = "owner of" if creator == role else "privileges for"
            inside = next((f" in schema {name}" for name, oid in catalog.schemas.items() if oid == schema), "")
            whose = f"on new {_DEFAULTED[kind]} belonging to role {access.roles[creator].name}{inside}"
            lines.append(f"{what_for} default privileges {whose}")
    return lines
