"""LIMIT over joins: a plan is run over pieces of the relation that drives it until there are enough rows.

A plan is linear of some relations (``planner.logical.drivers``): its rows for all rows of one are the sum of those for
pieces. If one of these is by far the largest part of what the plan reads, and is not looked up itself, the plan is run
for pieces that grow, in the order of an arrangement if ORDER BY asks for that. A piece in which a row fails is run in
halves, so that rows before it may suffice.

Cost: a small multiple of what is needed for the rows that are given, and of what is read of other relations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import RowSet, Words
from ivm.stops import poll
from ivm.trace.trace import Version
from ivm.words import INT8
from planner import gathers
from planner.expr.context import Bounds, Context
from planner.expr.scalar import Column, Literal, Scalar, SortKey
from planner.logical.drivers import Driver
from planner.logical.nodes import Finishing
from planner.peek.chains import Chain
from planner.peek.first import First, in_order_of
from planner.peek.order_limit import finish, slice_end
from planner.peek.ranges import Access, filters
from planner.peek.run import read_as_rows, run
from planner.peek.snapshot import Snapshot
from planner.physical.layouts import StoredKey
from planner.physical.nodes import Plan, Table
from planner.physical.row_programs import MapFilter

PIECE: Final = 256
"""The least rows of a piece."""
_LARGEST: Final = 1 << 16
SHARE: Final = 8
"""How many times as large as what else is read a relation is at least, if pieces of it are read."""


def answer_in_pieces(
    plan: Plan, snapshot: Snapshot, context: Context, bounds: Bounds, finishing: Finishing
) -> RowSet | None:
    """The result of a query that LIMIT cuts; None: it is better to run the plan once. Raises as ``run`` and ``finish``
    do."""
    driven = driven_by(plan, snapshot, context, finishing)
    if driven is None:
        return None
    end = slice_end(finishing, context)
    assert end is not None
    found: list[Words] = []
    count = 0
    for rows, diffs in driven.pieces(end):
        for part in _made(plan, driven, snapshot, context, bounds, rows, diffs):
            found.append(part)
            count += len(part)
            if count >= end:
                break
        if count >= end:
            break
    whole = np.concatenate(found) if found else np.zeros((0, gathers.width(plan.schema)), np.int64)
    return finish(RowSet(whole, plan.schema), finishing, context)


@dataclass(frozen=True, slots=True)
class Driven:
    """The relation that drives a plan, and how its rows are read."""

    table: Table
    access: Access
    backward: bool

    def pieces(self, end: int) -> Iterator[tuple[Words, Words]]:
        """Its rows and their diffs, in pieces that grow."""
        size = max(PIECE, 2 * end)
        while self.access.range.left:
            poll()
            rows, diffs = self.access.range.take(min(size, _LARGEST), self.backward)
            if self.backward:
                rows, diffs = rows[::-1], diffs[::-1]
            yield self.access.restored(rows), diffs
            size *= 4


def driven_by(plan: Plan, snapshot: Snapshot, context: Context, finishing: Finishing) -> Driven | None:
    """What drives a query that LIMIT cuts; None: nothing does, or to run the plan once is better."""
    if not plan.drivers or finishing.limit is None or plan.scopes:
        return None
    end = slice_end(finishing, context)
    if not end:
        return None
    sizes = _read(plan, snapshot)
    found = [driver for driver in plan.drivers if driver.relation in sizes]
    largest = max(found, key=lambda driver: sizes[driver.relation], default=None)
    if largest is None or snapshot.errors(largest.relation) is not None:
        return None
    size = sizes[largest.relation]
    if SHARE * (sum(sizes.values()) - size) > size or size < SHARE * max(end, PIECE):
        return None
    return _driven(plan, largest, snapshot, context, finishing, end)


def _read(plan: Plan, snapshot: Snapshot) -> dict[int, int]:
    """How many rows are read of each relation of which all are."""
    found: dict[int, int] = {}
    for number in read_as_rows(plan, snapshot):
        node = plan.nodes[number]
        if isinstance(node, Table):
            version = snapshot.version(node.relation)
            found[node.relation] = 0 if version is None else version.count
    return found


def _driven(
    plan: Plan, driver: Driver, snapshot: Snapshot, context: Context, finishing: Finishing, end: int
) -> Driven | None:
    (table,) = (node for node in plan.nodes if isinstance(node, Table) and node.relation == driver.relation)
    found = [asked for by, asked in filters(plan).values() if by == table]
    asked = found[0] if len(found) == 1 else ()
    own: tuple[Scalar, ...] = tuple(Column(i, c.type, c.nullable) for i, c in enumerate(table.schema))
    chain = Chain(table, None, MapFilter(table.schema, ()), None, None, own, asked, None)
    order = tuple(_key(driver, key, own) for key in finishing.order)
    first = First(chain, order, end, frozenset(), snapshot.primary_key(table.relation))
    ways = first.ways(snapshot, context)
    if order:
        ordered = in_order_of(first, ways)
        if ordered is None or not ordered.serves(order):
            return None
        least = min((way.range.left for way in ways if way.limited), default=None)
        if least is not None and SHARE * least < ordered.access.range.left:
            return None
        return Driven(table, ordered.access, ordered.backward)
    whole = [way for way in ways if not way.absent]
    access = min(whole, key=lambda way: way.range.left, default=None)
    return None if access is None else Driven(table, access, backward=False)


def _key(driver: Driver, key: SortKey, own: tuple[Scalar, ...]) -> SortKey:
    """A key of the query's order over the relation's columns; something that is none of them if it is not one."""
    column = driver.columns[key.expr.index] if isinstance(key.expr, Column) else None
    return replace(key, expr=Literal(None, INT8) if column is None else own[column])


def _made(
    plan: Plan, driven: Driven, snapshot: Snapshot, context: Context, bounds: Bounds, rows: Words, diffs: Words
) -> Iterator[Words]:
    """The plan's rows for a piece, in parts if one of its rows fails."""
    if not len(rows):
        return
    piece = _Piece(snapshot, driven.table.relation, (rows, diffs))
    try:
        made = run(plan, piece, context, bounds).rows
    except SqlError as error:
        if len(rows) == 1 or not error.sqlstate.startswith("22"):
            raise
    else:
        yield made
        return
    half = len(rows) // 2
    for part in (slice(0, half), slice(half, None)):
        yield from _made(plan, driven, snapshot, context, bounds, rows[part], diffs[part])


@dataclass(frozen=True, slots=True)
class _Piece:
    """A snapshot in which a relation has some of its rows."""

    whole: Snapshot
    relation: int
    part: tuple[Words, Words]

    @property
    def at(self) -> int:
        return self.whole.at

    def version(self, relation: int) -> Version | None:
        return None if relation == self.relation else self.whole.version(relation)

    def primary_key(self, relation: int) -> tuple[int, ...]:
        return self.whole.primary_key(relation)

    def keys(self, relation: int) -> tuple[tuple[int, ...], ...]:
        return () if relation == self.relation else self.whole.keys(relation)

    def arrangement(self, relation: int, key: StoredKey) -> Version | None:
        return None if relation == self.relation else self.whole.arrangement(relation, key)

    def rows(self, relation: int) -> tuple[Words, Words] | None:
        return self.part if relation == self.relation else self.whole.rows(relation)

    def errors(self, relation: int) -> tuple[Words, Words] | None:
        return self.whole.errors(relation)
