"""Late materialization: a join arranges a wide table's ids by the join key and fetches the other columns by id.

A maintained join keeps each input arranged by its lookup key. A table with a primary key is arranged by that already;
so the join's own arrangement needs only [key | id], and all views share it, whichever columns they read. The cost is
one more seek for each row found. (Source: *String interning and beyond*, 2018: row identifiers.)

Why the two lookups equal one: at every time, an id in the index stands for exactly one row of the table; and for the
rows that an id stood for before, the products of old and new updates cancel, as in any bilinear join. A table without a
key has no such id: only multiplicities distinguish its equal rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from ivm.graph import NodeId, Project
from planner import gathers
from planner.expr.scalar import Column, Scalar
from planner.logical.fallibility import can_raise
from planner.logical.traversal import keeps_types, own_columns, substitute
from planner.lower.state import Lowering
from planner.options import Late
from planner.physical.layouts import Layout, table_layout
from planner.physical.nodes import Flow, Map, Open, Table
from planner.physical.row_programs import MapFilter

WORTH = 8
"""The words to save for each row, over all new arrangements of a join, for a seek by id to pay: a cache line."""


@dataclass(frozen=True, slots=True)
class Wide:
    """A flow of filtered rows of a table: ``exprs`` are its columns over the table's; ``key`` is the primary key."""

    table: Table
    key: tuple[int, ...]
    predicates: tuple[Scalar, ...]
    exprs: tuple[Scalar, ...]

    @property
    def layout(self) -> Layout:
        """The layout of the table's own arrangement."""
        return table_layout(self.table.schema, self.key)

    def arrangement(self, low: Lowering) -> NodeId:
        """The table's own arrangement, by primary key."""
        layout = self.layout
        return low.builder.arrange(self._rows(low), layout.gather, layout.key_width)

    def column(self, i: int) -> int | None:
        """The table's column that the flow's column is; None: it is computed."""
        expr = self.exprs[i]
        return expr.index if isinstance(expr, Column) else None

    def rank(self, i: int) -> tuple[bool, int]:
        """Sort key that puts the flow's columns in the table's order, computed ones last."""
        column = self.column(i)
        return column is None, i if column is None else column

    def ids(self, low: Lowering, keys: tuple[int, ...]) -> Ids:
        """The rows that a join on these columns arranges: the columns, all computed ones, and the primary key."""
        own = own_columns(self.table.schema)
        # In the table's own types, so that views which read its columns under other types share the arrangement.
        exprs = [e if (c := self.column(i)) is None else own[c] for i, e in enumerate(self.exprs)]
        computed = [e for e in exprs if not isinstance(e, Column)]
        kept = tuple(dict.fromkeys((*(exprs[i] for i in keys), *computed, *(own[k] for k in self.key))))
        flow = low.compute(self._rows(low), self.predicates, kept)
        places = {i: kept.index(e) for i, e in enumerate(exprs) if e in kept}
        return Ids(flow, places, tuple(kept.index(own[k]) for k in self.key))

    def _rows(self, low: Lowering) -> Flow:
        return low.builder.flow(low.builder.add(self.table, gathers.width(self.table.schema)), self.table.schema)


@dataclass(frozen=True, slots=True)
class Ids:
    """Some columns of a wide flow: the position of each, and those of the primary key."""

    flow: Flow
    places: dict[int, int]
    id: tuple[int, ...]


def wide(low: Lowering, flow: Flow) -> Wide | None:
    """The flow as rows of a table; None: it has another source, can fail, or the table has no primary key."""
    if low.indexes.one_shot or low.indexes.planning.late is Late.OFF:
        return None
    if isinstance(flow.source, Open) or flow.gather.drop_if:
        return None
    found = _origin(low, flow.source, flow.gather.words[: len(flow.schema)])
    if found is None or not found.key or any(map(can_raise, (*found.predicates, *found.exprs))):
        return None
    return found


def _origin(low: Lowering, node: NodeId, words: tuple[int, ...]) -> Wide | None:
    """Some words of a node's rows, if they are columns of a table's rows."""
    match low.builder.nodes[node]:
        case Table() as table:
            own = own_columns(table.schema)
            if not all(0 <= w < len(own) for w in words):
                return None
            return Wide(table, low.indexes.primary_key(table.relation), (), tuple(own[w] for w in words))
        case Project(input, gather) if not gather.drop_if and all(0 <= w < len(gather.words) for w in words):
            return _origin(low, input, tuple(gather.words[w] for w in words))
        case Map(input, MapFilter(row, predicates, exprs)):
            return _through(_origin(low, input, tuple(range(len(row)))), predicates, exprs or own_columns(row), words)
    return None


def _through(
    below: Wide | None, predicates: tuple[Scalar, ...], exprs: tuple[Scalar, ...], words: tuple[int, ...]
) -> Wide | None:
    """``below`` after a filter and a projection; None if it does not fit."""
    if below is None or not all(0 <= w < len(exprs) for w in words):
        return None
    shown = tuple(exprs[w] for w in words)
    if not keeps_types(below.exprs, (*predicates, *shown)):
        return None
    tested = (*below.predicates, *(substitute(p, below.exprs) for p in predicates))
    return Wide(below.table, below.key, tested, tuple(substitute(e, below.exprs) for e in shown))


def pays(low: Lowering, found: Wide, whole: Flow, keys: list[tuple[int, ...]]) -> bool:
    """Whether to materialize late what would otherwise be arranged whole by each of these keys."""
    made = [found.ids(low, key) for key in keys]
    if all(len(ids.places) == len(found.exprs) for ids in made):
        return False
    width = gathers.width(whole.schema)
    saved = sum(width - gathers.width(ids.flow.schema) for ids in made)
    return low.indexes.planning.late is Late.ON or saved >= WORTH
