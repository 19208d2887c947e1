"""The result of a one-shot query: its plan's rows, ordered, cut and projected.

Of a plan that only reads stored relations row by row, LIMIT leaves what ``planner.peek.first`` finds. Any other plan
runs (``planner.peek.run``) before it is ordered and cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ivm.rows import RowSet
from planner.aggregates.row_reducers import slice_bound
from planner.expr.context import Bounds, Context
from planner.expr.parts import walk
from planner.expr.scalar import Parameter
from planner.logical.nodes import Finishing
from planner.peek.chains import chains_of
from planner.peek.first import First, in_order_of, in_turn
from planner.peek.order_limit import finish, rows_wanted
from planner.peek.pieces import answer_in_pieces, driven_by
from planner.peek.run import run
from planner.peek.snapshot import Snapshot
from planner.physical.nodes import Plan


def answer(plan: Plan, snapshot: Snapshot, context: Context, bounds: Bounds, finishing: Finishing) -> RowSet:
    """The result of a one-shot query. Raises as ``run`` and ``finish`` do."""
    cut = _cut_of(plan, snapshot, finishing, context)
    if cut is None:
        found = answer_in_pieces(plan, snapshot, context, bounds, finishing)
        if found is not None:
            return found
        wanted = rows_wanted(finishing, context) if plan.grows else None
        return finish(run(plan, snapshot, context, bounds, wanted), finishing, context)
    together = bool(finishing.order) and len(cut.parts) > 1
    parts = in_turn(cut.parts, 0 if together else cut.start, cut.end, snapshot, context, bounds)
    shown = finishing if together else replace(finishing, order=(), limit=None, offset=None)
    return finish(RowSet(np.concatenate(parts), plan.schema), shown, context)


def reads_few(plan: Plan, snapshot: Snapshot, finishing: Finishing, context: Context, rows: int) -> bool:
    """Whether a query's LIMIT and the order of an arrangement let it read few rows, at most about ``rows``."""
    cut = _cut_of(plan, snapshot, finishing, context)
    return cut is not None and sum(_about(part, snapshot, context, rows) for part in cut.parts) <= rows


def way(plan: Plan, snapshot: Snapshot, finishing: Finishing, context: Context) -> str | None:
    """What EXPLAIN says of a query that LIMIT cuts; None: nothing, as of one whose parameters decide."""
    chains = chains_of(plan)
    given = [finishing.limit, finishing.offset, *(c.constant[0] for chain in chains for c in chain.asked)]
    if any(isinstance(part, Parameter) for expr in given if expr is not None for part in walk(expr)):
        return None
    cut = _cut_of(plan, snapshot, finishing, context)
    if cut is None:
        driven = driven_by(plan, snapshot, context, finishing)
        return None if driven is None else "runs for parts of a relation until LIMIT has enough rows"
    if not finishing.order:
        return "reads until LIMIT has enough rows, and computes only those"
    ways = [in_order_of(part, part.ways(snapshot, context)) for part in cut.parts]
    ordered = [one for one in ways if one is not None]
    if len(ordered) < len(ways):
        return "computes only the rows that ORDER BY and LIMIT leave"
    how = "backwards " if ordered[0].backward else ""
    orders = dict.fromkeys(str(list(o.access.order[: len(o.access.key) or o.keys])) for o in ordered)
    return f"reads {how}in the order of {', '.join(orders)}, until LIMIT has enough rows, and computes only those"


@dataclass(frozen=True, slots=True)
class _Cut:
    """The rows from ``start`` on, up to the end of each of the parts, which together are the plan's rows."""

    parts: tuple[First, ...]
    start: int
    end: int


def _cut_of(plan: Plan, snapshot: Snapshot, finishing: Finishing, context: Context) -> _Cut | None:
    """What a query asks for of chains; None: it is not made of chains, has no LIMIT, or is over something else than
    stored relations without errors."""
    chains = () if finishing.limit is None or plan.grows or plan.limits else chains_of(plan)
    if not chains:
        return None
    limit = slice_bound(finishing.limit, "LIMIT", context)
    if limit is None:
        return None
    start = slice_bound(finishing.offset, "OFFSET", context) or 0
    found = [First.of(chain, finishing.order, start + limit, snapshot) for chain in chains]
    parts = tuple(part for part in found if part is not None)
    return _Cut(parts, start, start + limit) if len(parts) == len(found) else None


def _about(first: First, snapshot: Snapshot, context: Context, rows: int) -> int:
    """About how many rows are read, more than ``rows`` if that many or not known."""
    ways = first.ways(snapshot, context)
    limited = min((way.range.left for way in ways if way.limited), default=rows + 1)
    if limited <= rows or first.chain.keep.predicates:
        return limited
    ordered = in_order_of(first, ways) if first.order else None
    served = ordered is not None and ordered.serves(first.order)
    return first.end if not first.order or served else rows + 1
