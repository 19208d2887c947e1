"""What relations are made from."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sql.catalog.catalog import FED, STORED, Catalog, RelationKind

_CHANGED_BY_STATEMENTS = (*FED, RelationKind.SYSTEM, RelationKind.SEQUENCE)


def are_still(relations: Iterable[int], changed: Collection[int], catalog: Catalog) -> bool:
    """Whether all of these are tables, none of them among those that have changed."""
    for relation in relations:
        known = catalog.by_id(relation)
        if known is None or known.kind not in _CHANGED_BY_STATEMENTS or relation in changed:
            return False
    return True


def is_apart(relations: Iterable[int], changed: Collection[int], catalog: Catalog) -> bool:
    """Whether none of those that have changed is among these, or is what they are made from."""
    todo, seen = list(relations), set[int]()
    while todo:
        relation = todo.pop()
        if relation in changed:
            return False
        known = catalog.relations.get(relation)
        if relation not in seen and known is not None:
            seen.add(relation)
            todo += (*known.dependencies, *(r.id for r in catalog.below(known)))
    return True


def made_from(relations: Iterable[int], catalog: Catalog, among: Collection[int]) -> frozenset[int]:
    """The tables and materialized views ``among`` some relations that these are, or are made from in the end."""
    found, todo, seen = set[int](), list(relations), set[int]()
    while todo:
        known = catalog.relations.get(todo.pop())
        if known is None or known.id in seen:
            continue
        seen.add(known.id)
        todo += (below.id for below in catalog.below(known))
        if known.id in among and known.kind in STORED:
            found.add(known.id)
        else:
            todo += known.dependencies
    return frozenset(found)
