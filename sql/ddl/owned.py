"""What roles own and hold: who may change an object, and what keeps a role from being dropped."""

from __future__ import annotations

from collections.abc import Iterator

from ivm.errors import SqlError
from sql.catalog.access import DATABASE_OBJECT, Access, Securable
from sql.catalog.catalog import LABELS, Catalog, Relation
from sql.catalog.securables import object_name, schema_object, securable


def check_owner(access: Access, role: int, relation: Relation) -> None:
    """Raises 42501 unless the role may do what the owner of a relation, type or function may."""
    if not access.owns(role, securable(relation)):
        raise SqlError("42501", f"must be owner of {object_name(relation)}")


def check_schema_owner(catalog: Catalog, role: int, name: str) -> None:
    """The same for a schema, which exists."""
    if not catalog.access.owns(role, schema_object(catalog, name)):
        raise SqlError("42501", f"must be owner of schema {name}")


def objects(catalog: Catalog) -> Iterator[tuple[Securable, str]]:
    """Everything that exists and has an owner, with what messages call it."""
    for relation in sorted(catalog.relations.values(), key=lambda r: r.oid):
        yield securable(relation), described(relation)
    for name in catalog.schemas:
        yield schema_object(catalog, name), f"schema {name}"
    yield DATABASE_OBJECT, "database"


def described(relation: Relation) -> str:
    """``table t`` or ``function f(integer)``: an object in a message about what depends on what."""
    kind = LABELS[relation.kind] if relation.routine is None else relation.routine.kind
    return f"{kind} {relation.name}"


def dependency_lines(catalog: Catalog, role: int) -> list[str]:
    """What a role owns and holds, a line each."""
    access, lines = catalog.access, []
    for what, shown in objects(catalog):
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
    for (creator, _, _), acl in access.defaults.items():
        if creator == role or any(role in (i.grantee, i.grantor) for i in acl):
            lines.append(f"owner of default privileges on new objects belonging to role {access.roles[creator].name}")
    return lines
