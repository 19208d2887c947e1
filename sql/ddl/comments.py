"""COMMENT ON, as a change of the catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from sql.catalog.access import CLASS, NAMESPACE, TYPE, database_object
from sql.catalog.catalog import LABELS, Relation, RelationKind
from sql.catalog.comments import CONSTRAINT, POLICY, TRIGGER, living, own_catalog
from sql.catalog.keys import constraint_oid
from sql.catalog.search_path import SearchPathReader, no_schema
from sql.ddl.acting import Actor
from sql.ddl.indexes import index_named
from sql.engine.writer import Writer
from sql.statements.comments import Comment

_PUBLIC: Final = (NAMESPACE, 2200, 0)
"""Schema public: it has a comment from the start, which an empty one hides."""
BUILT_IN: Final = {
    "tablespace": ("pg_default", "pg_global"), "extension": ("plpgsql",),
    "language": ("internal", "c", "sql", "plpgsql"),
}  # fmt: skip
"""The names of what every server has of kinds that cannot be created."""


def comment_on(writer: Writer, names: SearchPathReader, statement: Comment) -> None:
    """Set, replace or remove the comment. Raises the error of an object that is not there."""
    key = _object(names, statement)
    comments = {**living(writer.catalog)}
    comments.pop(key, None)
    if statement.text or key == _PUBLIC:
        comments[key] = statement.text or ""
    writer.catalog = replace(writer.catalog, comments=comments, version=writer.engine.next_version())


def comment_on_database(writer: Writer, actor: Actor, statement: Comment) -> None:
    """The same for a database. Raises 3D000, 42501."""
    access = writer.catalog.access
    database = actor.database_named(statement.name, access)
    if not access.owns(actor.role, database_object(database.oid)):
        raise SqlError("42501", f"must be owner of database {statement.name}")
    writer.set_access(access.with_database(replace(database, comment=statement.text)))


def _object(names: SearchPathReader, statement: Comment) -> tuple[int, int, int]:
    """The key of the object's comment."""
    name = statement.name
    if statement.routine is not None:
        return own_catalog(statement.routine), statement.routine.oid, 0
    match statement.kind:
        case "schema":
            if not names.catalog.has_schema(names.schema(name)):
                raise no_schema(name)
            if names.schema(name) not in names.catalog.schemas:
                raise unsupported("a comment on a schema of the system")
            return NAMESPACE, names.catalog.schemas[names.schema(name)], 0
        case "role" if names.catalog.access.named(name) is not None:
            raise unsupported("a comment on a role")
        case "tablespace" | "extension" | "language" if name in BUILT_IN[statement.kind]:
            raise unsupported(f"a comment on {'an' if statement.kind == 'extension' else 'a'} {statement.kind}")
        case "role" | "tablespace" | "extension" | "language":
            raise SqlError("42704", f'{statement.kind} "{name}" does not exist')
        case "type" | "domain":
            return TYPE, _type(names, statement).oid, 0
        case "column":
            return _column(_relation(names, statement), statement.part)
        case "constraint":
            return CONSTRAINT, _constraint(_relation(names, statement), statement.part), 0
        case "trigger":
            return TRIGGER, _trigger(_relation(names, statement), statement.part), 0
        case "policy":
            return POLICY, _policy(_relation(names, statement), statement.part), 0
        case "domain constraint":
            raise unsupported("a comment on a domain's constraint")
        case "index":
            found = index_named(names, statement.schema_name, name)
            if found is None:
                relation = _relation(names, statement)
                raise SqlError("42809", f'"{relation.name}" is not an index')
            return CLASS, found[1].id, 0
    relation = _relation(names, statement)
    if LABELS[relation.kind] != statement.kind:
        raise SqlError("42809", f'"{relation.name}" is not a {statement.kind}')
    return CLASS, relation.oid, 0


def _relation(names: SearchPathReader, statement: Comment) -> Relation:
    found = names.resolve(statement.schema_name, statement.name)
    if found is None:
        if statement.schema_name is not None and not names.catalog.has_schema(names.schema(statement.schema_name)):
            raise no_schema(statement.schema_name)
        shown = statement.name if statement.schema_name is None else f"{statement.schema_name}.{statement.name}"
        raise SqlError("42P01", f'relation "{shown}" does not exist')
    if found.kind is RelationKind.SYSTEM:
        raise SqlError("42501", f'permission denied: "{found.name}" is a system catalog')
    return found


def _type(names: SearchPathReader, statement: Comment) -> Relation:
    found = names.type(statement.schema_name, statement.name)
    if found is None:
        raise SqlError("42704", f'type "{statement.name}" does not exist')
    return found


def _column(relation: Relation, name: str) -> tuple[int, int, int]:
    if relation.kind in (RelationKind.SEQUENCE, RelationKind.SOURCE, RelationKind.SINK):
        detail = f"This operation is not supported for {LABELS[relation.kind]}s."
        raise SqlError("42809", f'cannot set comment on relation "{relation.name}"', detail)
    for place, column in enumerate(relation.columns):
        if column.name == name:
            return CLASS, relation.oid, place + 1
    raise SqlError("42703", f'column "{name}" of relation "{relation.name}" does not exist')


def _constraint(relation: Relation, name: str) -> int:
    indexes = {i.name: constraint_oid(i) for i in relation.all_indexes if i.constraint}
    checks = {c.name: c.id for c in relation.checks}
    found = (indexes | checks | {k.name: k.id for k in relation.foreign_keys}).get(name)
    if found is None:
        raise SqlError("42704", f'constraint "{name}" for table "{relation.name}" does not exist')
    return found


def _policy(relation: Relation, name: str) -> int:
    for policy in relation.security.policies:
        if policy.name == name:
            return policy.id
    raise SqlError("42704", f'policy "{name}" for table "{relation.name}" does not exist')


def _trigger(relation: Relation, name: str) -> int:
    for trigger in relation.triggers:
        if trigger.name == name:
            return trigger.id
    raise SqlError("42704", f'trigger "{name}" for table "{relation.name}" does not exist')
