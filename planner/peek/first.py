"""The first rows of a stored relation: queries whose LIMIT leaves a part of what one relation gives row by row.

Rows are read in pieces, by a range of an arrangement where conditions ask for one, in the order that ORDER BY asks for
where an arrangement has it, until there are enough. Only rows that are shown are computed: an error of one that is not
is none, as in PostgreSQL. Any other query runs as a plan (``planner.peek.run``), then is ordered and cut.

Cost: what is read until enough rows have passed the filter; a whole range or relation if it has to be sorted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ivm.graph import Concat, Errors, Gather, NodeId, Project
from ivm.rows import RowSet, Words
from ivm.stops import poll
from ivm.words import Schema
from planner import gathers
from planner.aggregates.row_reducers import slice_bound
from planner.expr.context import Bounds, Context
from planner.expr.parts import walk
from planner.expr.row_errors import first_error
from planner.expr.scalar import Column, Parameter, Scalar, SortKey
from planner.logical.nodes import Finishing
from planner.logical.traversal import substitute
from planner.memo import by_identity
from planner.peek.order_limit import finish, rows_wanted, sort_order
from planner.peek.ranges import Access, Condition, accesses, conditions, in_order, narrowed
from planner.peek.run import run, written_out
from planner.peek.snapshot import Snapshot, table_rows
from planner.physical.nodes import Map, Plan, Table, TableErrors
from planner.physical.row_programs import MapFilter

_PIECE: Final = 64
"""The updates first looked at if a filter may leave few of them."""
_LARGEST: Final = 1 << 16
"""The most rows of a piece."""


def answer(plan: Plan, snapshot: Snapshot, context: Context, bounds: Bounds, finishing: Finishing) -> RowSet:
    """The result of a one-shot query. Raises as ``run`` and ``finish`` do."""
    first = _first_of(plan, snapshot, finishing, context)
    if first is None:
        wanted = rows_wanted(finishing, context) if plan.grows else None
        return finish(run(plan, snapshot, context, bounds, wanted), finishing, context)
    rows = first.projected(_Reading(first, snapshot, context, bounds).rows(), context)
    return finish(RowSet(rows, plan.schema), replace(finishing, order=(), limit=None, offset=None), context)


def reads_few(plan: Plan, snapshot: Snapshot, finishing: Finishing, context: Context, rows: int) -> bool:
    """Whether a query's LIMIT and the order of an arrangement let it read few rows, at most about ``rows``."""
    first = _first_of(plan, snapshot, finishing, context)
    if first is None or first.end > rows:
        return False
    ways = accesses(first.chain.table, first.chain.asked, snapshot, context)
    if any(way.limited and way.range.left <= rows for way in ways):
        return True
    if first.chain.keep.predicates:
        return False
    ordered = _ordered(first, ways) if first.order else None
    return not first.order or (ordered is not None and ordered.keys == len(first.order) and not ordered.last)


def way(plan: Plan, snapshot: Snapshot, finishing: Finishing, context: Context) -> str | None:
    """What EXPLAIN says of a query that LIMIT cuts; None: nothing, as of one whose parameters decide."""
    chain = chain_of(plan)
    given = [finishing.limit, finishing.offset, *(c.constant[0] for c in (() if chain is None else chain.asked))]
    if any(isinstance(part, Parameter) for expr in given if expr is not None for part in walk(expr)):
        return None
    first = _first_of(plan, snapshot, finishing, context)
    if first is None:
        return None
    if not first.order:
        return "reads until LIMIT has enough rows, and computes only those"
    ordered = _ordered(first, accesses(first.chain.table, first.chain.asked, snapshot, context))
    if ordered is None:
        return "computes only the rows that ORDER BY and LIMIT leave"
    how = "backwards " if ordered.backward else ""
    return f"reads {how}in the order of {list(ordered.access.order[: len(ordered.access.key) or ordered.keys])}" + (
        ", until LIMIT has enough rows, and computes only those"
    )


@dataclass(frozen=True, slots=True)
class Chain:
    """A plan that reads one relation row by row: its rows moved by ``before`` (None: not), those that ``keep`` keeps,
    computed by ``compute``, moved by ``after``. ``exprs``: the result's columns over the rows kept."""

    table: Table
    before: Gather | None
    keep: MapFilter
    compute: MapFilter | None
    after: Gather | None
    exprs: tuple[Scalar, ...]
    asked: tuple[Condition, ...]

    def column(self, expr: Scalar) -> int | None:
        """The relation's column that an expression over the rows kept is, if it is one."""
        if not isinstance(expr, Column):
            return None
        return expr.index if self.before is None else self.before.words[expr.index]


@by_identity
def chain_of(plan: Plan) -> Chain | None:
    """The plan in this form, if it has it."""
    moves: list[Gather | None] = [None]
    mapping: Map | None = None
    node = plan.nodes[plan.rows]
    number = plan.rows
    while not isinstance(node, Table):
        if isinstance(node, Project) and not node.gather.drop_if and moves[-1] is None:
            moves[-1] = node.gather
        elif isinstance(node, Map) and isinstance(node.program, MapFilter) and mapping is None:
            mapping, mapped = node, number
            moves.append(None)
        else:
            return None
        number = node.input
        node = plan.nodes[number]
    if not _fails_alone(plan, node, None if mapping is None else mapped):
        return None
    if mapping is None:
        keep = MapFilter(node.schema, ())
        exprs = _moved(tuple(_own(node.schema)), moves[0], plan.schema)
        return None if exprs is None else Chain(node, None, keep, None, moves[0], exprs, ())
    assert isinstance(mapping.program, MapFilter)
    return _mapped(plan, node, mapping.program, moves)


def _mapped(plan: Plan, table: Table, program: MapFilter, moves: list[Gather | None]) -> Chain | None:
    after, before = moves
    below = _moved(tuple(_own(table.schema)), before, program.schema)
    made = tuple(_own(program.schema)) if program.exprs is None else program.exprs
    exprs = _moved(made, after, plan.schema)
    if below is None or exprs is None:
        return None
    keep = MapFilter(program.schema, program.predicates)
    compute = None if program.exprs is None else MapFilter(program.schema, (), program.exprs)
    asked = conditions(program.schema, program.predicates) if before is None else ()
    return Chain(table, before, keep, compute, after, exprs, asked)


def _own(schema: Schema) -> list[Scalar]:
    return [Column(i, column.type, column.nullable) for i, column in enumerate(schema)]


def _moved(exprs: tuple[Scalar, ...], gather: Gather | None, target: Schema) -> tuple[Scalar, ...] | None:
    """Columns moved by a gather to those of ``target``; None: it does something else."""
    if gather is None:
        return exprs
    places = gather.words[: len(target)]
    return tuple(exprs[p] for p in places) if all(0 <= p < len(exprs) for p in places) else None


def _fails_alone(plan: Plan, table: Table, mapped: NodeId | None) -> bool:
    """Whether the plan's errors are those of the relation and of the program over its rows."""
    if plan.errors is None:
        return True
    node = plan.nodes[plan.errors]
    parts = [plan.nodes[i] for i in node.inputs] if isinstance(node, Concat) else [node]
    own = [TableErrors(table.relation)] if mapped is None else [TableErrors(table.relation), Errors(mapped)]
    return all(part in own for part in parts)


@dataclass(frozen=True, slots=True)
class _First:
    """Which rows of a chain are asked for: from ``start`` to ``end``, in the order of keys over the rows kept.
    ``unique``: the columns of the primary key."""

    chain: Chain
    order: tuple[SortKey, ...]
    unique: tuple[int, ...]
    start: int
    end: int

    def projected(self, rows: Words, context: Context) -> Words:
        """The rows kept as the plan's rows. Raises the error of one."""
        chain = self.chain
        if chain.compute is not None:
            made = chain.compute.run(rows, context)
            if made.errors is not None and len(made.errors):
                raise first_error(made.errors, context.dictionary)
            rows = made.rows
        return rows if chain.after is None else gathers.apply(chain.after, rows)[0]


def _first_of(plan: Plan, snapshot: Snapshot, finishing: Finishing, context: Context) -> _First | None:
    """What a query asks for of a chain; None: it is no chain, has no LIMIT, or is over something else than a stored
    relation without errors."""
    chain = None if finishing.limit is None or plan.grows or plan.limits else chain_of(plan)
    if chain is None:
        return None
    relation = chain.table.relation
    limit = slice_bound(finishing.limit, "LIMIT", context)
    if limit is None or snapshot.version(relation) is None or snapshot.errors(relation) is not None:
        return None
    start = slice_bound(finishing.offset, "OFFSET", context) or 0
    order = tuple(replace(key, expr=substitute(key.expr, chain.exprs)) for key in finishing.order)
    return _First(chain, order, snapshot.primary_key(relation), start, start + limit)


@dataclass(frozen=True, slots=True)
class _Ordered:
    """An access in the order of the first ``keys`` keys of an ORDER BY. ``last``: rows that it has not come behind all
    others."""

    access: Access
    backward: bool
    keys: int
    last: bool


def _ordered(first: _First, ways: list[Access]) -> _Ordered | None:
    """The way that is in the order asked for by the most keys, and leaves the least; None: none is."""
    found = [ordered for access in ways if (ordered := _order_of(first, access)) is not None]
    return max(found, key=lambda o: (o.keys, -o.access.range.left), default=None)


def _order_of(first: _First, access: Access) -> _Ordered | None:
    chain, schema = first.chain, first.chain.table.schema
    limited = {condition.column for condition in chain.asked}
    fixed = frozenset(access.order[: access.fixed])
    places = list(access.order[access.fixed :])
    backward: bool | None = None
    count, last = 0, False
    for key in first.order:
        column = chain.column(key.expr)
        if column is not None and column in fixed:
            count += 1
            continue
        if column is None or not places or places[0] != column or backward is (not key.descending):
            break
        if not in_order(schema[column].type) or key.expr.type != schema[column].type:
            break
        if column in access.absent:
            if count or key.nulls_first:
                break
            last = True
        elif schema[column].nullable and column not in limited | access.strict:
            break  # NULLs are among zeros
        backward = key.descending
        places.pop(0)
        count += 1
        if access.key and access.key == first.unique and not set(places) & set(access.key):
            count = len(first.order)  # no two rows are alike in the primary key
            break
    whole = not access.absent or (last and len(access.absent) == 1)
    return _Ordered(access, bool(backward), count, last) if count and whole else None


@dataclass(slots=True)
class _Reading:
    """Finds the rows that are asked for."""

    first: _First
    snapshot: Snapshot
    context: Context
    bounds: Bounds

    def rows(self) -> Words:
        """The rows kept, ordered and cut. Raises the error of one that comes before the last of them."""
        first = self.first
        if not first.end:
            return np.zeros((0, gathers.width(first.chain.keep.schema)), np.int64)
        ways = accesses(first.chain.table, first.chain.asked, self.snapshot, self.context)
        limited = min((w for w in ways if w.limited), key=lambda w: w.range.left, default=None)
        if not first.order:
            access = limited or next((w for w in ways if not w.absent), None)
            found = self._whole() if access is None else self._until(access, backward=False, keys=0)
            return found[first.start : first.end]
        ordered = _ordered(first, ways)
        if ordered is not None and self._pays(ordered, limited):
            rows = self._until(ordered.access, ordered.backward, ordered.keys)
            if not ordered.last or len(rows) >= first.end:
                return self._sorted(rows)
        return self._sorted(self._whole())

    def _pays(self, ordered: _Ordered, limited: Access | None) -> bool:
        """Whether reading in order until there are enough is less than sorting all that conditions leave."""
        if limited is None or limited is ordered.access:
            return True
        matching = max(limited.range.left, 1)
        return self.first.end * ordered.access.range.left // matching < matching

    def _whole(self) -> Words:
        """All rows kept."""
        table = self.first.chain.table
        access = narrowed(table, self.first.chain.asked, self.snapshot, self.context)
        if access is None:
            rows, diffs = table_rows(table, self.snapshot)
        else:
            self.bounds.check(8 * access.range.left * (gathers.width(table.schema) + 4))
            rows, diffs = access.range.rest()
            rows = access.restored(rows)
        return self._kept(rows, diffs, None)

    def _until(self, access: Access, backward: bool, keys: int) -> Words:
        """Rows kept, from one end of an access on, until there are enough; with them those that the first ``keys`` keys
        of the order do not tell from the last."""
        found: list[Words] = []
        count, enough = 0, self.first.end
        size = enough + 1 if not self.first.chain.keep.predicates else max(_PIECE, enough + 1)
        while access.range.left and (count < enough or self._tied(found, keys)):
            poll()
            size = min(size, _LARGEST)
            rows, diffs = access.range.take(size, backward)
            self.bounds.check(rows.nbytes)
            if backward:
                rows, diffs = rows[::-1], diffs[::-1]
            kept = self._kept(access.restored(rows), diffs, enough - count)
            found.append(kept)
            count += len(kept)
            size *= 4
        return np.concatenate(found) if found else np.zeros((0, gathers.width(self.first.chain.keep.schema)), np.int64)

    def _tied(self, found: list[Words], keys: int) -> bool:
        """Whether rows that come next may be equal to the last one needed by the keys of the order, of which others
        decide."""
        if keys == len(self.first.order):
            return False
        rows, schema = np.concatenate(found), self.first.chain.keep.schema
        pair = rows[[self.first.end - 1, -1]]
        orders = (sort_order(RowSet(p, schema), self.first.order[:keys], self.context) for p in (pair, pair[::-1]))
        return all(order[0] == 0 for order in orders)

    def _kept(self, rows: Words, diffs: Words, enough: int | None) -> Words:
        """The rows that the filter keeps, each as often as it is there. An error is raised unless there are ``enough``
        rows before it."""
        chain, source = self.first.chain, None
        if chain.before is not None:
            rows = gathers.apply(chain.before, rows)[0]
        if chain.keep.predicates:
            made = chain.keep.run(np.ascontiguousarray(rows), self.context)
            rows, source = made.rows, made.source
            diffs = diffs if source is None else diffs[source]
            if made.errors is not None and len(made.errors):
                assert made.error_source is not None
                before = source is not None and int((source < made.error_source.min()).sum())
                if enough is None or before < enough:
                    raise first_error(made.errors, self.context.dictionary)
                rows, diffs = rows[:before], diffs[:before]
        return written_out(rows, diffs, self.bounds)

    def _sorted(self, rows: Words) -> Words:
        first = self.first
        if len(rows) > 1:
            rows = rows[sort_order(RowSet(rows, first.chain.keep.schema), first.order, self.context)]
        return rows[first.start : first.end]
