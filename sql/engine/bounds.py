"""The bounds of partitions as conditions, by which plans skip them."""

from __future__ import annotations

from planner.expr.scalar import Scalar
from planner.logical.traversal import renumber
from planner.lower.pruning import Bound
from planner.memo import by_identity
from sql.bind.partitions import conditions
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.partitioning import PartitionBound


def bound_of(catalog: Catalog, table: Relation) -> Bound:
    """What the bounds of a partition, and of the partitioned tables that it is in, say of its rows."""
    names = [c.name for c in table.columns]
    holds: list[Scalar] = []
    fails: list[Scalar] = []
    child = table
    while child.bound is not None:
        parent = next(r for r in catalog.above(child) if r.oid in child.parents)

        def place(i: int, columns: tuple[str, ...] = tuple(c.name for c in parent.columns)) -> int:
            return names.index(columns[i])

        if child.bound.kind == "default":
            siblings = (catalog.relations[i].bound for i in parent.children)
            fails += [renumber(_condition(parent, b), place) for b in siblings if b is not None and b.kind != "default"]
        else:
            holds.append(renumber(_condition(parent, child.bound), place))
        child = parent
    return Bound(tuple(holds), tuple(fails))


def _condition(parent: Relation, bound: PartitionBound) -> Scalar:
    known = _known(parent)
    if bound not in known:
        (known[bound],) = conditions(parent, (bound,))
    return known[bound]


@by_identity
def _known(parent: Relation) -> dict[PartitionBound, Scalar]:
    """The memo of conditions: binding one costs more than planning a query."""
    del parent
    return {}
