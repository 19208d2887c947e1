"""OWNER TO, and REASSIGN OWNED, as changes of the catalog."""

from __future__ import annotations

from ivm.errors import SqlError
from sql.catalog.access import database_object
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.search_path import SearchPathReader
from sql.catalog.securables import check_create, schema_object, securable
from sql.ddl.acting import Actor
from sql.ddl.owned import check_owner, check_schema_owner, databases, objects
from sql.engine.writer import Writer
from sql.statements.role_spec import RoleSpec
from sql.statements.roles import ChangeOwner, ReassignOwned


def set_owner(writer: Writer, actor: Actor, relation: Relation, spec: RoleSpec) -> None:
    """Give a relation, with the sequences that it owns, a type or a function to another role. Raises 42501, 42704,
    0A000."""
    new = actor.of(spec)
    access = writer.catalog.access
    if relation.kind not in (RelationKind.TYPE, RelationKind.FUNCTION):
        check_owner(access, actor.role, relation)
    if access.owner(securable(relation)) == new:
        return
    if relation.sequence is not None and relation.sequence.owner is not None:
        table = next(r for r in writer.catalog.relations.values() if r.oid == relation.sequence.owner[0])
        detail = f'Sequence "{relation.name}" is linked to table "{table.name}".'
        raise SqlError("0A000", "cannot change owner of sequence", detail)
    if not actor.is_superuser:
        check_owner(access, actor.role, relation)
        actor.check_becomes(new)
        check_create(writer.catalog, new, relation.schema_name)
    for each in (relation, *writer.catalog.owned([relation.id])):
        writer.set_access(writer.catalog.access.with_owner(securable(each), new))


def set_schema_owner(writer: Writer, actor: Actor, name: str, spec: RoleSpec) -> None:
    """Give a schema to another role. Raises 42501, 42704."""
    new = actor.of(spec)
    if not actor.is_superuser:
        check_schema_owner(writer.catalog, actor.role, name)
        actor.check_becomes(new)
        actor.check_creates_schemas()
    writer.set_access(writer.catalog.access.with_owner(schema_object(writer.catalog, name), new))


def change_owner(writer: Writer, names: SearchPathReader, actor: Actor, statement: ChangeOwner) -> str:
    """OWNER TO of a type, a domain or the database; the tag. Raises 42704, 42809, 42501, 3D000."""
    target = statement.target
    if target.kind == "database":
        what = database_object(actor.database_named(target.name).oid)
        new = actor.of(statement.role)
        if actor.access.owner(what) != new:
            if not actor.access.owns(actor.role, what):
                raise SqlError("42501", f"must be owner of database {target.name}")
            actor.check_becomes(new)
            if not actor.creates_databases:
                raise SqlError("42501", "permission denied to change owner of database")
            writer.set_access(writer.catalog.access.with_owner(what, new))
        return "ALTER DATABASE"
    found = names.type(target.schema_name, target.name)
    if found is None:
        raise SqlError("42704", f'type "{target.name}" does not exist')
    if found.kind is not RelationKind.TYPE:
        hint = "Use ALTER TABLE instead."
        raise SqlError("42809", f"{target.name} is a table's row type", hint=hint)
    if target.kind == "domain" and not found.domain:
        raise SqlError("42809", f"{target.name} is not a domain")
    set_owner(writer, actor, found, statement.role)
    return f"ALTER {target.kind.upper()}"


def reassign(writer: Writer, names: SearchPathReader, actor: Actor, statement: ReassignOwned) -> None:
    """REASSIGN OWNED: everything of these roles in this database, and databases, to another. Raises 42501,
    42704."""
    new, old = actor.of(statement.new), actor.all_of(statement.roles)
    if not all(actor.access.may_act_as(actor.role, role) for role in (*old, new)):
        raise SqlError("42501", "permission denied to reassign objects")
    for what, _ in (*objects(names), *databases(writer.catalog.access)):
        if writer.catalog.access.owner(what) in old:
            if what.kind == "n":
                actor.check_creates_schemas()
            writer.set_access(writer.catalog.access.with_owner(what, new))
