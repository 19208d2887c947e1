"""ORDER BY with LIMIT inside a view, and table functions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from ivm.graph import Apart, Consolidate, NodeId, Order
from ivm.words import Kind, Schema, Storage
from planner import gathers
from planner.aggregates.reducers import order_words
from planner.aggregates.row_reducers import NumberedRows, TopFold
from planner.expr.scalar import Column, Literal, Scalar, SortKey
from planner.logical.apart import UNIT, own_number, sets_apart
from planner.logical.frames import Frame, Framed, Pick, Picked
from planner.logical.join_keys import by_class
from planner.logical.nodes import Numbering, TableFunction, TopK, schema
from planner.logical.traversal import column_types, own_columns
from planner.lower.frames import lower_framed
from planner.lower.late_materialization import WORTH
from planner.lower.late_topk import LateTopK, late_topk
from planner.lower.state import Lowering
from planner.options import Late
from planner.physical.arrangement_programs import Keyed, Number, Repeat
from planner.physical.nodes import Flow
from planner.physical.row_programs import MapFilter
from planner.physical.table_programs import Expand


def lower_topk(low: Lowering, rel: TopK) -> Flow:
    """Arranges by (keys, order, row) and takes the first rows of each group. Ties break by the row's values."""
    rel = rel if low.indexes.one_shot else _searched(rel)
    if rel.framed:
        return lower_framed(low, rel, _full_order(rel, schema(rel.input)))
    late = late_topk(low, rel)
    if late is not None and (low.indexes.planning.late is Late.ON or _saved(rel, late) >= WORTH):
        return low.coerce(low.rel(late.rows), schema(rel))
    flow = low.coerce(low.rel(rel.input), schema(rel.input)) if rel.numbers else low.rel(rel.input)
    keys = tuple(by_class(k) for k in rel.keys)
    words = [w for key in _full_order(rel, flow.schema) for w in order_words(key)]
    program = Keyed(flow.schema, keys, tuple(e for e, _ in words), rows=True)
    node = low.builder.map(flow, program)
    key_width = program.key_width
    order: tuple[Order, ...] = ()
    if any(o is not Order.WORD for _, o in words):
        order = (Order.WORD,) * key_width + tuple(o for _, o in words) + (Order.WORD,) * gathers.width(flow.schema)
    arranged = low.builder.arrange_raw(node, key_width, order)
    row_words = gathers.width(flow.schema)
    if rel.numbers:
        peers = sum(len(order_words(key)) for key in rel.order)
        return _numbered(low, rel, arranged, key_width, (len(words), row_words, peers))
    fold = TopFold(len(words), row_words, rel.limit, rel.offset, column_types(keys), rel.order)
    grouped = low.builder.group(arranged, key_width, fold)
    counted = low.builder.raw(grouped)
    return low.builder.flow(low.builder.map(counted, Repeat(key_width, row_words)), flow.schema)


_AS_PICKS: Final = {Numbering.ROW_NUMBER: Pick.ROW_NUMBER, Numbering.RANK: Pick.RANK}


def _searched(rel: TopK) -> TopK:
    """Numbers of all rows as functions over frames, which are searched for what a change does to them."""
    if not rel.numbers or rel.limit is not None or not all(n in _AS_PICKS for n in rel.numbers):
        return rel
    framed = tuple(Framed(Picked(_AS_PICKS[n], ()), Frame()) for n in rel.numbers)
    return replace(rel, numbers=(), framed=framed)


def _numbered(
    low: Lowering, rel: TopK, arranged: NodeId, key_width: int, words: tuple[int, int, int]
) -> Flow:  # fmt: skip
    """Window functions that number rows. ``words``: of the order, of the row, and of the order without tie breaks."""
    limit = rel.limit.value if isinstance(rel.limit, Literal) and isinstance(rel.limit.value, int) else None
    fold = NumberedRows(*words, limit, rel.limit_of)
    grouped = low.builder.group(arranged, key_width, fold)
    program = Number(key_width, schema(rel.input), rel.numbers)
    return low.builder.flow(low.builder.map(low.builder.raw(grouped), program), schema(rel))


def _saved(rel: TopK, late: LateTopK) -> int:
    """The words saved for each row in the worst case, where every row is among the first: ids are then kept twice."""
    return _width(rel) - _width(late.first) - gathers.width(schema(late.first))


def _width(rel: TopK) -> int:
    """The words of a ranked row without its key."""
    row = schema(rel.input)
    return sum(len(order_words(key)) for key in _full_order(rel, row)) + gathers.width(row)


def _full_order(rel: TopK, row: Schema) -> list[SortKey]:
    """The ORDER BY, then the columns that it omits, unless the row's own words sort as they do."""
    return [*rel.order, *tie_breaks(row, {k.expr for k in rel.order})]


def tie_breaks(row: Schema, used: Collection[Scalar]) -> list[SortKey]:
    """An order of rows that are equal in ``used``, by their other columns; [] if the rows' own words sort so."""
    rest = [c for c in own_columns(row) if c not in used and c.type.kind is not Kind.UNKNOWN]
    if all(c.type.storage is Storage.DIRECT and not c.nullable for c in rest):
        return []
    return [SortKey(c) for c in rest]


def lower_table_function(low: Lowering, rel: TableFunction) -> Flow:
    """Each row with the rows that the function returns for it."""
    if sets_apart(rel):
        return _lower_apart(low, rel)
    flow = low.rel(rel.input)
    program = Expand(flow.schema, rel.function, rel.args, rel.columns, rel.ordinality, schema(rel))
    return low.builder.flow(low.builder.map(flow, program), schema(rel))


def _lower_apart(low: Lowering, rel: TableFunction) -> Flow:
    """Equal rows numbered, then the expressions over each. A row of constants needs no number but its node's own."""
    row = schema(rel.input)
    flow, number = low.coerce(low.rel(rel.input), row), rel.args[0]
    if rel.input != UNIT:
        once = low.builder.add(Consolidate(low.builder.force(flow)), gathers.width(row))
        node = low.builder.add(Apart(once, own_number(rel)), gathers.width(row) + 1)
        numbered = (*row, rel.columns[0])
        cells = (*gathers.cells(row), gathers.Cell(gathers.width(row)))
        flow = Flow(node, gathers.row_of(cells, numbered), numbered)
        number = Column(len(row), numbered[-1].type, True)
    program = MapFilter(flow.schema, (), (*own_columns(row), number, *rel.args[1:]))
    return low.retyped(low.builder.flow(low.builder.map(flow, program), program.output), schema(rel))
