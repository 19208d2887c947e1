"""Automatic arrangements for repeated statements: a repeated filter by equality over a large table becomes a lookup.

The first runs of such a statement scan. Then the engine arranges the relation by the columns that the filter fixes; all
later plans share the arrangement, which is kept until the relation is dropped. Results do not change.
"""

from __future__ import annotations

from typing import Final

from planner.expr.scalar import Column
from planner.logical.nodes import Filter, Get, Rel
from planner.logical.traversal import children, conjuncts
from planner.lower.constant_keys import best_key, points
from planner.peek.ranges import conditions, served
from sql.catalog.catalog import Catalog, RelationKind
from sql.engine.snapshot import Published, StoredIndexes

Wish = tuple[int, tuple[int, ...]]
"""A relation and the columns to arrange it by."""

SMALL: Final = 5_000
LARGE: Final = 3_000_000
"""The range of row counts in which an arrangement is worth its memory and the pause to create it."""
PATIENCE: Final = 2
"""The number of scans before the arrangement is created."""


def wishes(rel: Rel, published: Published) -> tuple[Wish, ...]:
    """The arrangements that an optimized plan would look up if they existed."""
    found: list[Wish] = []
    todo = [rel]
    while todo:
        node = todo.pop()
        todo += children(node)
        if isinstance(node, Filter) and isinstance(node.input, Get):
            wish = _wish(node, node.input, published)
            if wish is not None:
                found.append(wish)
    return tuple(dict.fromkeys(found))


def _wish(node: Filter, get: Get, published: Published) -> Wish | None:
    if not _storable(published.catalog, get.relation):
        return None
    version, stored = published.version(get.relation), published.stored.get(get.relation)
    if version is None or stored is None or not SMALL <= version.count <= LARGE:
        return None
    found = (p[0] for c in conjuncts(node.predicate) if (p := points(c)) is not None)
    fixed = {e.index for e in found if isinstance(e, Column) and not get.schema[e.index].type.has_equality_class}
    if not fixed or best_key(StoredIndexes(published, one_shot=True), get, conjuncts(node.predicate)) is not None:
        return None
    asked = conditions(get.schema, (node.predicate,))
    if any(fixed <= set(served(get.schema, asked, key)) for key in published.keys(get.relation)):
        return None  # a part of an arrangement in order
    return get.relation, tuple(sorted(fixed))


def _storable(catalog: Catalog, relation: int) -> bool:
    known = catalog.relations.get(relation)
    return known is not None and known.kind in (RelationKind.TABLE, RelationKind.MATERIALIZED_VIEW)
