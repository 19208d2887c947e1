"""As-of joins: both sides arranged by (key, point) in the point's order, so that finding a match is one seek.

``<=`` and ``<`` are ``>=`` and ``>`` in descending order. Rows with a NULL key or point have no match: they are not
arranged, and an outer join adds the left ones to the result.
"""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError
from ivm.graph import AsOf as AsOfNode
from ivm.graph import Gather, NodeId, Order
from ivm.words import BOOL, INT8, ColumnType, Schema, Storage
from planner import gathers
from planner.aggregates.reducers import order_words, value_words
from planner.expr.functions.boolean import IS_NULL
from planner.expr.scalar import Call, Column, Literal, Or, Scalar, SortKey
from planner.logical.nodes import AsOf, schema
from planner.logical.traversal import own_columns
from planner.lower.join import padded
from planner.lower.state import Lowering
from planner.lower.topk import tie_breaks
from planner.physical.arrangement_programs import Keyed
from planner.physical.nodes import Flow

OrderWords = list[tuple[Scalar, Order]]


def lower_asof(low: Lowering, rel: AsOf) -> Flow:
    """The matched rows, and for an outer join the left rows without a match. 0A000: in a loop."""
    left, right = low.rel(rel.left), low.rel(rel.right)
    row = schema(rel)
    columns = own_columns(right.schema)
    used = [columns[b] for b in (*(b for _, b, _ in rel.keys), rel.points[1])]
    ties = [word for key in tie_breaks(right.schema, used) for word in order_words(key)]
    nothing: tuple[int, ...] | None = None
    if rel.outer:
        right = low.coerce(right, tuple(ColumnType(c.type, True) for c in right.schema))
    one, keys, points = _arranged(low, left, tuple((a, same) for a, _, same in rel.keys), rel.points[0], rel.later, [])
    two, *others = _arranged(low, right, tuple((b, same) for _, b, same in rel.keys), rel.points[1], rel.later, ties)
    assert others == [keys, points], "both sides have their keys and points in as many words"
    if any(low.builder.scope_of[node] is not None for node in (one, two)):
        raise SqlError("0A000", "ASOF JOIN in a recursive term is not supported", _IN_LOOPS)
    front, behind = keys + points, keys + points + len(ties)
    if rel.outer:
        nothing = none(behind, right.schema)
    width = front + gathers.width(left.schema)
    own = gathers.cells(left.schema, front)
    partners = tuple(gathers.moved(c, width - keys) for c in gathers.cells(right.schema, behind))
    gather = gathers.trusted_row((*own, *partners), row)
    node = low.builder.add(AsOfNode(one, two, gather, front, rel.strict, nothing), gathers.width(row))
    alone = _without_key(low, left, rel) if rel.outer else None
    parts = (node,) if alone is None else (node, padded(low, alone, row, 0))
    return low.builder.flow(low.builder.concat(parts), row)


def _arranged(
    low: Lowering, flow: Flow, keys: tuple[tuple[int, bool], ...], point: int, later: bool, ties: OrderWords
) -> tuple[NodeId, int, int]:
    """Arranges [key | point | ties | row]; returns (node, words of the key, words of the point)."""
    own = own_columns(flow.schema)
    front: OrderWords = []
    for column, null_safe in keys:
        if null_safe:
            front.append((Call(IS_NULL, (own[column],), BOOL, False), Order.WORD))
        front.append((own[column], Order.WORD))
    front = front or [(Literal(0, INT8), Order.WORD)]
    at = value_words(SortKey(own[point], later)) if later or not _is_plain(own[point]) else [(own[point], Order.WORD)]
    words = [*front, *at, *ties]
    dropped = {column for column, null_safe in keys if not null_safe} | {point}
    raw, gather = in_front(low, flow, tuple(e for e, _ in words))
    nulls = gathers.cells(flow.schema, len(words))
    drops = [gather.words[cell[0]] for i in dropped if (cell := nulls[i].null) is not None]
    bits = [cell[1] for i in dropped if (cell := nulls[i].null) is not None]
    gather = replace(gather, drop_if=tuple(sorted(zip(drops, bits, strict=True))))
    order: tuple[Order, ...] = ()
    if any(o is not Order.WORD for _, o in words):
        order = (*(o for _, o in words), *(Order.WORD,) * gathers.width(flow.schema))
    return low.builder.arrange(raw, gather, len(front), order), len(front), len(at)


def in_front(low: Lowering, flow: Flow, words: tuple[Scalar, ...]) -> tuple[Flow, Gather]:
    """(flow, gather) for [a word for each expression | the row]. Columns and literals need only the gather."""
    if all(isinstance(e, Column | Literal) for e in words):
        front = (e.index if isinstance(e, Column) else -1 for e in words)
        return flow, Gather((*front, *range(gathers.width(flow.schema))))
    program = Keyed(flow.schema, (), words, rows=True)
    raw = low.builder.raw(low.builder.map(flow, program))
    return raw, Gather(tuple(range(program.key_width, program.out_width)))


def _is_plain(expr: Scalar) -> bool:
    """Whether words sort as the values do, and equal values have equal words."""
    return expr.type.storage is Storage.DIRECT and not expr.type.has_equality_class


def none(behind: int, row: Schema) -> tuple[int, ...]:
    """A right row of NULLs, behind ``behind`` zero words."""
    words = [0] * (behind + gathers.width(row))
    for cell in gathers.cells(row, behind):
        assert cell.null is not None
        word, bit = cell.null
        words[word] |= -(2**63) if bit == 63 else 1 << bit
    return tuple(words)


def _without_key(low: Lowering, left: Flow, rel: AsOf) -> Flow | None:
    """The left rows with a NULL key or point; None: there can be none."""
    own = own_columns(left.schema)
    used = [own[a] for a, _, same in rel.keys if not same] + [own[rel.points[0]]]
    nulls = tuple(dict.fromkeys(Call(IS_NULL, (c,), BOOL, False) for c in used if c.nullable))
    if not nulls:
        return None
    return low.compute(left, (nulls[0] if len(nulls) == 1 else Or(nulls),), None)


_IN_LOOPS = (
    "A recursive term may read a view that has an ASOF JOIN. In the loop itself times are only partially ordered, and "
    "each row's match would have to be looked for again in every round in which a row of its key changes."
)
