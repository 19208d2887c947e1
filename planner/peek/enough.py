"""Nodes of which what reads them needs only some rows, in a query that runs once: min and max without groups, LIMIT
inside, EXISTS, and count(*) of a whole relation.

The least value is the first one in its order; a set without columns has its only row as soon as there is one. Where a
node's input is made of chains (``planner.peek.chains``), it is given what ``planner.peek.first`` finds of them instead
of all of their rows. What reads it computes the same of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from ivm.graph import Arrange, Concat, Errors, Keep, NodeId, Project, Threshold
from ivm.rows import Words
from ivm.words import BOOL, INT8
from planner.aggregates.aggregate_reducers import OrderedFold
from planner.aggregates.function import Extreme
from planner.aggregates.row_reducers import TopFold, slice_bound
from planner.aggregates.table import AGGREGATES, COUNT_ROWS
from planner.expr.context import Bounds, Context
from planner.expr.functions.boolean import IS_NOT_NULL
from planner.expr.scalar import Call, Column, Literal, Scalar, SortKey
from planner.memo import by_identity
from planner.peek.chains import Chain, chains_at
from planner.peek.first import First, in_order_of, in_turn
from planner.peek.ranges import in_order
from planner.peek.snapshot import Snapshot
from planner.physical.arrangement_programs import Keyed, Weigh
from planner.physical.nodes import Constants, Group, Map, Plan, Table
from planner.physical.row_programs import MapFilter
from planner.physical.uses import uses

Counted = tuple[Words, Words]
"""Rows and the diff of each."""
_ONE: Final = Literal(1, INT8)


@dataclass(frozen=True, slots=True)
class _Some:
    """The first rows of chains in an order by their columns, after which there are no others to be seen.

    ``served``: only if arrangements have that order. ``present``: of each chain, the columns whose NULLs it has not.
    """

    chains: tuple[Chain, ...]
    order: tuple[SortKey, ...] = ()
    count: Scalar | None = _ONE
    offset: Scalar | None = None
    served: bool = False
    present: tuple[frozenset[int], ...] = ()

    @property
    def passed(self) -> list[NodeId]:
        """The nodes that compute the chains' rows."""
        return [chain.mapped for chain in self.chains if chain.mapped is not None]

    def rows(self, snapshot: Snapshot, context: Context, bounds: Bounds) -> Counted | None:
        """None: it is better to read all rows."""
        count = slice_bound(self.count, "LIMIT", context)
        if count is None:
            return None
        end = count + (slice_bound(self.offset, "OFFSET", context) or 0)
        versions = [snapshot.version(chain.table.relation) for chain in self.chains]
        if _SMALL_PART * end > sum(version.count for version in versions if version is not None):
            return None
        present = self.present or (frozenset(),) * len(self.chains)
        found = [
            First.of(c, self.order, end, snapshot, p) for c, p in zip(self.chains, present, strict=True)
        ]  # fmt: skip
        parts = [part for part in found if part is not None]
        if len(parts) < len(found) or (self.served and not all(_served(p, snapshot, context) for p in parts)):
            return None
        rows = np.concatenate(in_turn(parts, 0, end, snapshot, context, bounds))
        return rows, np.ones(len(rows), np.int64)


_SMALL_PART: Final = 2
"""Of how many rows, at least, one that is read on its own pays."""


def _served(first: First, snapshot: Snapshot, context: Context) -> bool:
    ordered = in_order_of(first, first.ways(snapshot, context))
    return ordered is not None and ordered.serves(first.order)


@dataclass(frozen=True, slots=True)
class _Number:
    """A row without columns, as often as a relation has rows."""

    table: Table
    passed: list[NodeId] = field(default_factory=list)

    def rows(self, snapshot: Snapshot, context: Context, bounds: Bounds) -> Counted | None:
        version = snapshot.version(self.table.relation)
        total = None if version is None else version.total(snapshot.at)
        if total is None or total < 0 or snapshot.errors(self.table.relation) is not None:
            return None
        return np.zeros((min(total, 1), 1), np.int64), np.full(min(total, 1), total)


@by_identity
def some(plan: Plan) -> dict[NodeId, _Some | _Number]:
    """The nodes that need some rows of their input only."""
    found: dict[NodeId, _Some | _Number] = {}
    for node in plan.nodes:
        match node:
            case Group(fold=OrderedFold() | TopFold()):
                found |= _of_group(plan, node)
            case Threshold(keep=Keep.DISTINCT):
                found |= _of_set(plan, node)
            case _:
                pass
    for number, node in enumerate(plan.nodes):
        if isinstance(node, Map) and isinstance(node.program, Weigh) and (counted := _number(plan, node, node.program)):
            found[NodeId(number)] = counted
    return found


def given(plan: Plan, snapshot: Snapshot, context: Context, bounds: Bounds) -> dict[NodeId, Counted]:
    """What takes the place of such nodes' inputs."""
    found = {number: one.rows(snapshot, context, bounds) for number, one in some(plan).items()}
    return {number: rows for number, rows in found.items() if rows is not None}


def passed(plan: Plan, numbers: frozenset[NodeId]) -> frozenset[NodeId]:
    """The nodes that compute the rows of which nodes are given some."""
    known = some(plan)
    return frozenset(below for number in numbers for below in known[number].passed)


def _of_group(plan: Plan, group: Group) -> dict[NodeId, _Some | _Number]:
    arranged = plan.nodes[group.input]
    if not isinstance(arranged, Arrange) or not _only_use(plan, group.input):
        return {}
    number = arranged.input
    node = plan.nodes[number]
    if isinstance(node, Concat) and len(node.inputs) == 2 and isinstance(plan.nodes[node.inputs[1]], Constants):
        if not _only_use(plan, number):
            return {}
        number = node.inputs[0]
        node = plan.nodes[number]
    if not isinstance(node, Map) or not isinstance(node.program, Keyed) or node.program.keys:
        return {}
    chains = chains_at(plan, node.input, node.program.schema)
    if not chains or not _only_use(plan, number):
        return {}
    if isinstance(group.fold, TopFold):
        return {number: _Some(chains, group.fold.order, group.fold.count, group.fold.offset)}
    assert isinstance(group.fold, OrderedFold)
    extreme = _extreme(group.fold, chains)
    return {} if extreme is None else {number: extreme}


def _extreme(fold: OrderedFold, chains: tuple[Chain, ...]) -> _Some | None:
    """The first row by the argument of min or max that is not NULL."""
    extreme, value = AGGREGATES[fold.aggregate.function].extreme, fold.aggregate.args[0]
    if extreme is None or fold.aggregate.filter is not None:
        return None
    if not isinstance(value, Column) or not in_order(value.type):
        return None
    known, present = [], []
    for chain in chains:
        own = chain.exprs[value.index]
        column = chain.column(own)
        if column is None:
            return None
        present.append(frozenset({column}))
        known.append(_without_nulls(chain, own) if chain.table.schema[column].nullable else chain)
    order = SortKey(value, extreme is Extreme.GREATEST)
    return _Some(tuple(known), (order,), served=True, present=tuple(present))


def _without_nulls(chain: Chain, value: Scalar) -> Chain:
    predicate = Call(IS_NOT_NULL, (value,), BOOL, False)
    return replace(chain, keep=MapFilter(chain.keep.schema, (*chain.keep.predicates, predicate)))


def _of_set(plan: Plan, threshold: Threshold) -> dict[NodeId, _Some | _Number]:
    """A set of rows without columns."""
    arranged = plan.nodes[threshold.input]
    if not isinstance(arranged, Arrange) or not _only_use(plan, threshold.input):
        return {}
    gather = arranged.gather
    if gather.bits or gather.drop_if:
        return {}
    chains = chains_at(plan, arranged.input, ())
    alike = all(word < 0 for word in gather.words) or all(map(_without_columns, chains))
    return {threshold.input: _Some(chains)} if chains and alike else {}


def _without_columns(chain: Chain) -> bool:
    return chain.compute is not None and not chain.compute.exprs and chain.after is None


def _number(plan: Plan, node: Map, program: Weigh) -> _Number | None:
    """Of a Map that only counts the rows of a relation."""
    if program.keys or program.args or any(call.function != COUNT_ROWS for call in program.layout.calls):
        return None
    below = plan.nodes[node.input]
    while isinstance(below, Project) and not below.gather.drop_if:
        below = plan.nodes[below.input]
    return _Number(below) if isinstance(below, Table) else None


def _only_use(plan: Plan, number: NodeId) -> bool:
    """Whether one node reads another, but for its errors."""
    above = uses(plan).get(number, ())
    return sum(not isinstance(plan.nodes[use], Errors) for use in above) == 1
