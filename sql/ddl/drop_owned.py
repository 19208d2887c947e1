"""DROP OWNED: what roles own is dropped, and what they hold is revoked."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError
from sql.catalog.access import Access
from sql.catalog.acl import Acl
from sql.catalog.catalog import Relation
from sql.catalog.search_path import SearchPathReader
from sql.catalog.securables import schema_object, securable
from sql.ddl.acting import Actor
from sql.ddl.alter_views import rebuild_views
from sql.ddl.create import closed
from sql.ddl.dependents import dependents_error, tell_cascade
from sql.ddl.owned import described
from sql.ddl.policies import drop_policies, without_roles
from sql.engine.writer import Writer
from sql.statements.results import Notify
from sql.statements.roles import DropOwned


def drop_owned(writer: Writer, names: SearchPathReader, notify: Notify, actor: Actor, statement: DropOwned) -> None:
    """Raises 42501; 2BP01 where others' objects depend on one, without CASCADE."""
    roles = set(actor.all_of(statement.roles))
    if not all(actor.access.may_act_as(actor.role, role) for role in roles):
        raise SqlError("42501", "permission denied to drop objects")
    writer.set_access(_without(writer.catalog.access, roles))
    without_roles(writer, roles)
    catalog, access = writer.catalog, writer.catalog.access
    schemas = [name for name in catalog.schemas if access.owner(schema_object(catalog, name)) in roles]
    inside = {r.id for r in catalog.inside(schemas)}
    owned = {r.id: r for r in catalog.relations.values() if access.owner(securable(r)) in roles}
    others = [r for r in catalog.relations.values() if r.id in inside and r.id not in owned]
    dependents = catalog.dependents({*owned, *inside})
    left = [r for r in (*others, *dependents) if r.id not in owned]
    if left and not statement.cascade:
        lines = [_line(names, schemas, r, owned) for r in left]
        raise dependents_error("desired object(s)", lines, several=True)
    going = {*owned, *(r.id for r in left)}
    drop_policies(writer, names, going, "desired object(s)", notify, cascade=statement.cascade)
    tell_cascade(notify, [described(r, names) for r in left])
    gone = sorted((*owned.values(), *left), key=lambda r: r.oid)
    ids, _ = closed(writer, names, gone)
    above = [r for i in ids for r in catalog.above(catalog.relations[i])]
    writer.drop_schemas(schemas, sorted(ids))
    rebuild_views(writer, [r for r in above if r.id in writer.catalog.relations])


def _line(names: SearchPathReader, schemas: list[str], relation: Relation, owned: dict[int, Relation]) -> str:
    if relation.schema_name in schemas:
        return f"{described(relation, names)} depends on schema {relation.schema_name}"
    needed = next((owned[i] for i in relation.dependencies if i in owned), None)
    needed = needed or next(r for r in owned.values() if r.oid in relation.parents)
    return f"{described(relation, names)} depends on {described(needed, names)}"


def _without(access: Access, roles: set[int]) -> Access:
    """Without what the roles hold, have granted, and have as default privileges."""

    def kept(acl: Acl) -> Acl:
        return tuple(i for i in acl if i.grantee not in roles and i.grantor not in roles)

    acls = {what: acl if access.owner(what) in roles else kept(acl) for what, acl in access.acls.items()}
    defaults = {key: kept(acl) for key, acl in access.defaults.items() if key[0] not in roles}
    access = access.changed(acls=acls, defaults=defaults)
    for database in access.shared.databases.values():
        acl = database.acl
        if acl is not None and database.owner not in roles:
            left = kept(acl)
            access = access if left == acl else access.with_database(replace(database, acl=left))
    return access
