"""The objects of the catalog as ``Access`` knows them."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from sql.catalog.access import NAMESPACE, Access, Securable
from sql.catalog.catalog import FIRST_USER_ID, INTERNAL_SCHEMAS, LABELS, Catalog, Relation, RelationKind, is_temporary
from sql.catalog.comments import own_catalog

LANGUAGE: Final = 2612
LANGUAGES: Final = {"internal": 12, "c": 13, "sql": 14, "python": 15, "plpgsql": 13552}
"""The oids of the languages."""
TRUSTED: Final = ("sql", "plpgsql")
_KINDS: Final = {
    RelationKind.SEQUENCE: "s",
    RelationKind.FUNCTION: "f",
    RelationKind.TYPE: "T",
    RelationKind.OPERATOR: "o",
}


def securable(relation: Relation) -> Securable:
    """A relation, sequence, type or function."""
    return Securable(own_catalog(relation), relation.oid, _KINDS.get(relation.kind, "r"))


def schema_object(catalog: Catalog, name: str) -> Securable:
    """A schema, which exists."""
    oid = catalog.schemas.get(name)
    return Securable(NAMESPACE, INTERNAL_SCHEMAS[name] if oid is None else oid, "n")


def language(name: str) -> Securable:
    """A language that everybody may be allowed to write functions in."""
    return Securable(LANGUAGE, LANGUAGES[name], "l")


def object_name(relation: Relation) -> str:
    """``table t``: an object in the message that refuses it."""
    if relation.routine is not None:
        routine = relation.routine
        kind = "procedure" if routine.procedure else "aggregate" if routine.aggregate else "function"
        return f"{kind} {routine.name}"
    kind = "table" if relation.id < FIRST_USER_ID and relation.schema_name == "pg_catalog" else LABELS[relation.kind]
    return f"{kind} {relation.name}"


def permission_denied(relation: Relation) -> SqlError:
    return SqlError("42501", f"permission denied for {object_name(relation)}")


def may_use(catalog: Catalog, role: int, schema: str) -> bool:
    """Whether a role may look into a schema. Its own temporary one it may."""
    return is_temporary(schema) or catalog.access.has(role, schema_object(catalog, schema), "U")


def check_use(catalog: Catalog, role: int, schema: str) -> None:
    """Raises 42501 where a role may not look into a schema."""
    if catalog.has_schema(schema) and not may_use(catalog, role, schema):
        raise schema_denied(schema)


def check_create(catalog: Catalog, role: int, schema: str) -> None:
    """Raises 42501 where a role may not create in a schema."""
    if not is_temporary(schema) and not catalog.access.has(role, schema_object(catalog, schema), "C"):
        raise schema_denied(schema)


def schema_denied(schema: str) -> SqlError:
    return SqlError("42501", f"permission denied for schema {schema}")


def sees_below(catalog: Catalog, role: int, view: Relation) -> bool:
    """Whether a role may see every row, whole, of the tables below a view."""
    if catalog.access.is_superuser(role):
        return True
    left, seen = [view.id], {view.id}
    while left:
        relation = catalog.by_id(left.pop())
        if relation is None:
            continue
        below = relation.kind in (RelationKind.TABLE, RelationKind.SYSTEM)
        shown = catalog.access.has(role, securable(relation), "r") and not restricted(catalog.access, role, relation)
        if below and not shown:
            return False
        more = set(relation.dependencies) - seen
        seen |= more
        left += more
    return True


def restricted(access: Access, role: int, table: Relation) -> bool:
    """Whether policies decide which rows of a table a role sees."""
    security, known = table.security, access.roles.get(role)
    if not security.enabled or table.kind is not RelationKind.TABLE or known is None:
        return False
    if known.superuser or known.bypassrls:
        return False
    return security.forced or not access.owns(role, securable(table))
