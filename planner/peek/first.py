"""The first rows of chains (``planner.peek.chains``): what LIMIT, min and max, and EXISTS ask for.

Rows are read in pieces, by a range of an arrangement where conditions ask for one, in the order that is asked for where
an arrangement has it, until there are enough. Only rows that are given are computed: an error of one that is not is
none, as in PostgreSQL.

Cost: what is read until enough rows have passed the filter; a whole range or relation if it has to be sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ivm.rows import RowSet, Words
from ivm.stops import poll
from planner import gathers
from planner.expr.context import Bounds, Context
from planner.expr.row_errors import first_error
from planner.expr.scalar import SortKey
from planner.logical.traversal import substitute
from planner.peek.chains import Chain
from planner.peek.multiplicity import written_out
from planner.peek.order_limit import first_in_order, sort_order
from planner.peek.ranges import Access, accesses, in_order, narrowed
from planner.peek.snapshot import Snapshot, rows_to_read

_PIECE: Final = 64
"""The updates first looked at if a filter may leave few of them."""
_LARGEST: Final = 1 << 16
"""The most rows of a piece."""


@dataclass(frozen=True, slots=True)
class First:
    """The first ``end`` rows of a chain in the order of keys over the rows kept.

    ``present``: the relation's columns whose NULLs the chain does not keep. ``unique``: those of the primary key.
    """

    chain: Chain
    order: tuple[SortKey, ...]
    end: int
    present: frozenset[int]
    unique: tuple[int, ...]

    @staticmethod
    def of(
        chain: Chain, order: tuple[SortKey, ...], end: int, snapshot: Snapshot, present: frozenset[int] = frozenset()
    ) -> First | None:
        """Those in an order by the chain's columns; None: it is over something else than a stored relation without
        errors."""
        relation = chain.table.relation
        if snapshot.version(relation) is None or snapshot.errors(relation) is not None:
            return None
        keys = tuple(replace(key, expr=substitute(key.expr, chain.exprs)) for key in order)
        return First(chain, keys, end, present, snapshot.primary_key(relation))

    def ways(self, snapshot: Snapshot, context: Context) -> list[Access]:
        """How the rows may be read."""
        return accesses(self.chain.table, self.chain.asked, snapshot, context, self.present)

    @property
    def width(self) -> int:
        """The words of the chain's rows."""
        chain = self.chain
        if chain.after is not None:
            return len(chain.after.words)
        return (chain.keep if chain.compute is None else chain.compute).out_width

    def projected(self, rows: Words, context: Context) -> Words:
        """The rows kept as the chain's rows. Raises the error of one."""
        chain = self.chain
        if chain.compute is not None:
            made = chain.compute.run(rows, context)
            if made.errors is not None and len(made.errors):
                raise first_error(made.errors, context.dictionary)
            rows = made.rows
        return rows if chain.after is None else gathers.apply(chain.after, rows)[0]


@dataclass(frozen=True, slots=True)
class Ordered:
    """An access in the order of the first ``keys`` keys of an ORDER BY. ``last``: rows that it has not come behind all
    others."""

    access: Access
    backward: bool
    keys: int
    last: bool

    def serves(self, order: tuple[SortKey, ...]) -> bool:
        """Whether the access has all rows in the whole order."""
        return self.keys == len(order) and not self.last


def in_order_of(first: First, ways: list[Access]) -> Ordered | None:
    """The way that is in the order asked for by the most keys, and leaves the least; None: none is."""
    found = [one for access in ways if (one := _order_of(first, access)) is not None]
    return max(found, key=lambda o: (o.keys, -o.access.range.left), default=None)


def _order_of(first: First, access: Access) -> Ordered | None:
    chain, schema = first.chain, first.chain.table.schema
    limited = {condition.column for condition in chain.asked} | first.present
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
    return Ordered(access, bool(backward), count, last) if count and whole else None


def in_turn(
    parts: Sequence[First], start: int, end: int, snapshot: Snapshot, context: Context, bounds: Bounds
) -> list[Words]:
    """The rows of parts: without an order, those from ``start`` to ``end`` of one after the other; otherwise the first
    ones of each, and ``start`` counts if there is one part. Raises the error of a row that is given, and of one that
    comes before the last of them."""
    found = [np.zeros((0, parts[0].width), np.int64)]
    left, ordered = end, bool(parts[0].order)
    for part in parts:
        if not left:
            break
        rows = _Reading(replace(part, end=left), snapshot, context, bounds).rows()
        found.append(part.projected(rows[start:], context))
        if not ordered:
            start, left = max(start - len(rows), 0), left - len(rows)
    return found


@dataclass(slots=True)
class _Reading:
    """Finds the rows that are asked for."""

    first: First
    snapshot: Snapshot
    context: Context
    bounds: Bounds

    def rows(self) -> Words:
        """The rows kept, ordered and cut. Raises the error of one that comes before the last of them."""
        first = self.first
        if not first.end:
            return np.zeros((0, gathers.width(first.chain.keep.schema)), np.int64)
        ways = first.ways(self.snapshot, self.context)
        limited = min((w for w in ways if w.limited), key=lambda w: w.range.left, default=None)
        if not first.order:
            access = limited or next((w for w in ways if not w.absent), None)
            found = self._whole() if access is None else self._until(access, backward=False, keys=0)
            return found[: first.end]
        ordered = in_order_of(first, ways)
        if ordered is not None and self._pays(ordered, limited):
            rows = self._until(ordered.access, ordered.backward, ordered.keys)
            if not ordered.last or len(rows) >= first.end:
                return self._sorted(rows)
        return self._sorted(self._whole())

    def _pays(self, ordered: Ordered, limited: Access | None) -> bool:
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
            rows, diffs = rows_to_read(table, self.snapshot)
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
            found = RowSet(rows, first.chain.keep.schema)
            rows = rows[first_in_order(found, first.order, first.end, self.context)]
        return rows[: first.end]
