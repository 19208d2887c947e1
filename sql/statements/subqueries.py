"""Which data-modifying statements read relations besides their source."""

from __future__ import annotations

from planner.logical.traversal import has_subquery
from sql.statements.statements import DataChange, Insert


def reads_subqueries(statement: DataChange) -> bool:
    """Whether the expressions over its rows need a snapshot, apart from its own ``source``."""
    exprs = list(statement.returning or ())
    conflict = statement.conflict if isinstance(statement, Insert) else None
    if conflict is not None:
        exprs += [*(conflict.changed or ()), *(() if conflict.where is None else (conflict.where,))]
    return any(map(has_subquery, exprs))
