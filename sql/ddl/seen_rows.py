"""The rows that a materialized view's owner may see: no definition changes them while the view depends on them.

A view is maintained with the row-level policies of its owner as one condition more of its query, bound again from the
catalog as its query is. So the catalog must go on meaning the same rows.
"""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError, unsupported
from planner.logical.nodes import Rel
from sql.bind.uses import Applied, Asking
from sql.catalog.catalog import Catalog, Relation, RelationKind
from sql.catalog.securables import securable
from sql.engine.definition import definition_rel
from sql.engine.writer import Writer


def check_seen(writer: Writer, before: Catalog) -> None:
    """Raises 2BP01 if a view's owner would see other rows than before. Cost: nothing unless roles, privileges, owners,
    policies or options have changed; then each materialized view of a table with policies is bound twice."""
    after = writer.catalog
    if after.access is before.access and not _secured_otherwise(before, after):
        return
    secured = {r.oid for c in (before, after) for r in c.relations.values() if r.security.enabled}
    if not secured:
        return
    known = {r.oid: r for r in before.relations.values() if r.kind is RelationKind.MATERIALIZED_VIEW}
    for view in [r for r in after.relations.values() if r.kind is RelationKind.MATERIALIZED_VIEW and r.oid in known]:
        old = known[view.oid]
        oids = {r.oid for r in map(after.by_id, view.dependencies) if r is not None}
        if secured.isdisjoint(oids):
            continue
        owner = after.access.owner(securable(view))
        was, now = _seen(old, before, before.access.owner(securable(old))), _seen(view, after, owner)
        if now is None or (was is not None and was[0] != now[0] and was[1] != now[1]):
            role = before.access.roles[before.access.owner(securable(old))].name
            message = f'this would change the rows of materialized view {view.name}, which shows what "{role}" may see'
            raise SqlError("2BP01", message, hint="Drop the view first, and create it again afterwards.")
        if view.viewer not in (0, owner):
            writer.redefine(replace(view, viewer=owner))


def check_replaced(catalog: Catalog, old: Relation, view: Relation, role: int) -> None:
    """Raises 0A000 where one role replaces another's view, and policies restrict either."""
    owner = catalog.access.owner(securable(old))
    if owner == role:
        return
    seen = _seen(view, catalog, owner)
    if view.viewer or seen is None or seen[0]:
        hint = f'SET ROLE "{catalog.access.roles[owner].name}" before.'
        raise unsupported("replacing another role's materialized view of tables with policies", hint)


def _seen(view: Relation, catalog: Catalog, role: int) -> tuple[tuple[Applied, ...], Rel] | None:
    """The policies that apply to a role in a view's definition, and its plan with them; None if it has none."""
    asking = Asking.for_view(catalog.access, role)
    try:
        rel = definition_rel(view, catalog, asking)
    except SqlError:
        return None
    return tuple(asking.applied), rel


def _secured_otherwise(before: Catalog, after: Catalog) -> bool:
    """Whether a relation that there was has other policies or options. Cost: a look at each relation."""
    changed = [r for i, r in after.relations.items() if before.relations.get(i) is not r]
    return any((old := _before(before, r)) and (old.security, old.options) != (r.security, r.options) for r in changed)


def _before(before: Catalog, relation: Relation) -> Relation | None:
    known = before.relations.get(relation.id)
    if known is not None or not relation.first_id:
        return known
    return next((r for r in before.relations.values() if r.oid == relation.oid), None)
