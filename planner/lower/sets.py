"""DISTINCT and the set operations, by counts of whole rows.

Types whose equal values can differ (1.0 and 1.00) are counted by equality class and shown as one of the values.
"""

from __future__ import annotations

from ivm.graph import Gather, Keep, NodeId
from ivm.words import INT8, ColumnType, Schema
from planner import gathers
from planner.aggregates.row_reducers import FirstRow, SetFold
from planner.expr.scalar import Literal, Scalar
from planner.logical.join_keys import by_class, has_classes
from planner.logical.nodes import SetKind, SetOperation, schema
from planner.logical.traversal import own_columns
from planner.lower.state import Lowering
from planner.physical.arrangement_programs import Keyed, Repeat
from planner.physical.layouts import whole_row
from planner.physical.nodes import Flow, Pair


def lower_distinct(low: Lowering, flow: Flow) -> Flow:
    """Each row once."""
    if not has_classes(flow.schema):
        return low.distinct_rows(flow)
    keys = tuple(by_class(c) for c in own_columns(flow.schema))
    program = Keyed(flow.schema, keys, (), rows=True)
    node = low.builder.map(flow, program)
    arranged = low.builder.arrange_raw(node, program.key_width)
    grouped = low.builder.group(arranged, program.key_width, FirstRow(gathers.width(flow.schema)))
    return _tail(grouped, program.key_width, flow.schema)


def _tail(node: NodeId, skip: int, row: Schema) -> Flow:
    return Flow(node, Gather(tuple(range(skip, skip + gathers.width(row)))), row)


def lower_set_operation(low: Lowering, rel: SetOperation) -> Flow:
    """UNION, INTERSECT and EXCEPT, each ALL or distinct."""
    row = schema(rel)
    left, right = low.rel(rel.left), low.rel(rel.right)
    wide = tuple(ColumnType(a.type, a.nullable or b.nullable) for a, b in zip(left.schema, right.schema, strict=True))
    left, right = low.coerce(left, wide), low.coerce(right, wide)
    if rel.kind is SetKind.UNION:
        both = low.builder.concat((low.builder.force(left), low.builder.force(right)))
        flow = low.builder.flow(both, wide)
        return low.coerce(flow if rel.all else lower_distinct(low, flow), row)
    if has_classes(wide):
        fold = SetFold(rel.kind is SetKind.INTERSECT, rel.all, gathers.width(wide))
        return low.coerce(_by_class(low, fold, left, right, wide), row)
    return low.coerce(_counted(low, rel, left, right), row)


def _counted(low: Lowering, rel: SetOperation, left: Flow, right: Flow) -> Flow:
    if rel.kind is SetKind.INTERSECT and not rel.all:
        gather = whole_row(left.schema).gather
        one, two = low.builder.force(low.distinct_rows(left)), low.builder.force(low.distinct_rows(right))
        return Flow(Pair(one, two, len(gather.words)), gather, left.schema)
    if rel.kind is SetKind.EXCEPT and not rel.all:
        left, right = low.distinct_rows(left), low.distinct_rows(right)
    more = _positive_difference(low, left, right)
    if rel.kind is SetKind.EXCEPT:
        return more
    return low.difference(left, more)


def _positive_difference(low: Lowering, left: Flow, right: Flow) -> Flow:
    """Each row max(left count - right count, 0) times."""
    flow = low.difference(left, right)
    gather = whole_row(flow.schema).gather
    arrangement = low.builder.arrange(flow, gather, len(gather.words))
    return low.builder.flow(low.threshold(arrangement, Keep.POSITIVE), flow.schema)


def except_by_class(low: Lowering, left: Flow, right: Flow) -> Flow:
    """EXCEPT ALL by equality class."""
    return _by_class(low, SetFold(False, True, gathers.width(left.schema)), left, right, left.schema)


def _by_class(low: Lowering, fold: SetFold, left: Flow, right: Flow, row: Schema) -> Flow:
    """Groups by the row's equality class, with values (side, row); the fold computes the result's counts."""
    keys = tuple(by_class(c) for c in own_columns(row))
    sides = []
    width = gathers.width(row)
    for number, flow in enumerate((left, right)):
        side: tuple[Scalar, ...] = (Literal(number, INT8),)
        program = Keyed(row, keys, side, rows=True)
        sides.append(low.builder.map(flow, program))
    arranged = low.builder.arrange_raw(low.builder.concat(tuple(sides)), width)
    grouped = low.builder.group(arranged, width, fold)
    return low.builder.flow(low.builder.map(low.builder.raw(grouped), Repeat(width, width)), row)
