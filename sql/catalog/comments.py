"""Comments on objects, as pg_description shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sql.catalog.access import CLASS, DATABASE, FUNCTION, NAMESPACE, TYPE
from sql.catalog.catalog import Catalog, Relation, RelationKind
from sql.catalog.keys import constraint_oid

CONSTRAINT: Final = 2606
OPERATOR: Final = 2617
TRIGGER: Final = 2620
POLICY: Final = 3256
"""The oids of the system catalogs in which objects have their own oids: the first part of a comment's key."""
CATALOGS: Final = {
    "pg_class": CLASS, "pg_type": TYPE, "pg_proc": FUNCTION, "pg_constraint": CONSTRAINT, "pg_namespace": NAMESPACE,
    "pg_database": DATABASE, "pg_operator": OPERATOR, "pg_trigger": TRIGGER, "pg_policy": POLICY,
}  # fmt: skip
_OWN: Final = {RelationKind.TYPE: TYPE, RelationKind.FUNCTION: FUNCTION, RelationKind.OPERATOR: OPERATOR}


def own_catalog(relation: Relation) -> int:
    """The system catalog in which a relation, type or function is listed."""
    return _OWN.get(relation.kind, CLASS)


def living(catalog: Catalog) -> dict[tuple[int, int, int], str]:
    """The comments on objects that exist: by the object's catalog, its oid, and the number of a column or 0. Dropped
    objects leave theirs behind, since oids are never given again."""
    if not catalog.comments:
        return {}
    known = {key for relation in catalog.relations.values() for key in _objects(relation)}
    known |= {(NAMESPACE, oid, 0) for oid in catalog.schemas.values()}
    return {key: text for key, text in catalog.comments.items() if key in known}


def _objects(relation: Relation) -> Iterator[tuple[int, int, int]]:
    yield own_catalog(relation), relation.oid, 0
    for number in range(len(relation.columns)):
        yield CLASS, relation.oid, number + 1
    for index in relation.all_indexes:
        yield CLASS, index.id, 0
        yield CONSTRAINT, constraint_oid(index), 0
    for check in relation.checks:
        yield CONSTRAINT, check.id, 0
    for key in relation.foreign_keys:
        yield CONSTRAINT, key.id, 0
    for trigger in relation.triggers:
        yield TRIGGER, trigger.id, 0
    for policy in relation.security.policies:
        yield POLICY, policy.id, 0
