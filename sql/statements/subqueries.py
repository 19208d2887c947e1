"""Which data-modifying statements read relations besides their source."""

from __future__ import annotations

from planner.logical.traversal import has_subquery
from sql.statements.statements import DataChange, Delete, Insert, Merge


def reads_subqueries(statement: DataChange) -> bool:
    """Whether the expressions over its rows need a snapshot, apart from its own ``source``."""
    exprs = list(statement.returning or ())
    layers = () if isinstance(statement, Delete) else statement.layers
    if isinstance(statement, Insert) and statement.conflict is not None:
        layers = (*layers, *statement.conflict.present, *statement.conflict.updated)
    if isinstance(statement, Merge):
        asked = statement.policies
        layers = (*layers, *asked.updates, *asked.deletes, *asked.updated, *asked.inserted)
    for layer in layers:
        exprs += [*layer.exprs, *(() if layer.condition is None else (layer.condition,))]
    conflict = statement.conflict if isinstance(statement, Insert) else None
    if conflict is not None:
        exprs += [*(conflict.changed or ()), *(() if conflict.where is None else (conflict.where,))]
    return any(map(has_subquery, exprs))
