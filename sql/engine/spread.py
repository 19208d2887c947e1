"""How a materialized view that Spark maintains is divided into parts."""

from __future__ import annotations

from typing import Final

from ivm.errors import unsupported
from planner.distributed.scatter import Spread
from planner.logical.nodes import Rel
from planner.lower.plan import lower
from planner.lower.state import KnownIndexes
from planner.options import Joins, Late, Planning
from planner.transform.pipeline import maintained
from sql.catalog.catalog import FED, Catalog

LINEAR: Final = Planning(joins=Joins.LINEAR, late=Late.OFF)
"""Multi-way joins look up by several keys, and no part has the rows for all of them."""


def spread_of(rel: Rel, catalog: Catalog, parts: int) -> Spread:
    """How to compute the rows in this many parts. It depends on the definition alone. 0A000: they cannot be divided."""
    plan = lower(maintained(rel), KnownIndexes(planning=LINEAR))
    spread = Spread.of(plan, parts)
    for relation in spread.tables:
        known = catalog.by_id(relation)
        if known is None or known.kind not in FED:
            name = "a relation of the system" if known is None else known.name
            raise unsupported(
                f"reading {name}, which is no table, in a materialized view that Spark is to maintain",
                hint="Write its query in the place of a materialized view.",
            )
    return spread
