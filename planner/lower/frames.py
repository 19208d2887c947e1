"""Window functions over frames: rows arranged by (keys, order, row), with the functions' arguments as columns."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import unsupported
from ivm.graph import NodeId, Order
from ivm.words import ColumnType
from planner import gathers
from planner.aggregates.function import AggregateKind
from planner.aggregates.reducers import counts_not, order_words
from planner.aggregates.table import AGGREGATES, of_pairs, without_filter
from planner.expr.functions.casts.registry import CAST
from planner.expr.parts import walk
from planner.expr.scalar import Aggregate, Call, Column, Literal, Scalar, SortKey
from planner.frames.fold import FramedFold
from planner.frames.plan import Layout, WindowPlan
from planner.logical.frames import Framed, FrameMode, Picked
from planner.logical.join_keys import by_class
from planner.logical.nodes import TopK
from planner.logical.traversal import own_columns, settle
from planner.lower.state import Lowering
from planner.physical.arrangement_programs import Keyed, Repeat
from planner.physical.nodes import Flow


def lower_framed(low: Lowering, rel: TopK, order: list[SortKey]) -> Flow:
    """``rel``'s rows with the results of its framed functions. ``order``: the window's, with its tie breaks. Raises
    0A000 for an offset that is a column of an outer query."""
    if any(isinstance(part, Column) for f in rel.framed for e in f.frame.offsets for part in walk(e)):
        raise unsupported("a frame's offset that depends on a row of an outer query", "Give it as a constant.")
    flow = low.rel(rel.input)
    own = own_columns(flow.schema)
    framed = tuple(_ready(f.with_scalars(tuple(settle(e, flow.schema) for e in f.scalars))) for f in rel.framed)
    ranged = any(f.frame.mode is FrameMode.RANGE and f.frame.offsets for f in framed)
    sorted_by = replace(rel.order[0], expr=settle(rel.order[0].expr, flow.schema)) if ranged else None
    wanted = [e for f in framed for e in _arguments(f) if not _stays(f, e)]
    wanted += [] if sorted_by is None else [sorted_by.expr]
    extra = tuple(dict.fromkeys(e for e in wanted if not _is_own(e, own)))
    wide = low.compute(flow, (), (*own, *extra)) if extra else flow
    columns = own_columns(wide.schema)

    def column(expr: Scalar) -> Scalar:
        return (
            columns[expr.index] if isinstance(expr, Column) and expr in own else columns[len(own) + extra.index(expr)]
        )

    keys = tuple(by_class(k) for k in rel.keys)
    words = [w for key in order for w in order_words(key)]
    program = Keyed(wide.schema, keys, tuple(e for e, _ in words), rows=True)
    arranged = _arranged(low, wide, program, tuple(o for _, o in words))
    peers = sum(len(order_words(key)) for key in rel.order)
    by = None if sorted_by is None else replace(sorted_by, expr=column(sorted_by.expr))
    layout = Layout(len(words), peers, wide.schema, by, ranged and rel.order[0].expr.nullable)
    offsets = [f.frame.offsets for f in framed]
    plan = WindowPlan(layout, tuple(
        f.with_scalars((*(e if _stays(f, e) else column(e) for e in _arguments(f)), *given))
        for f, given in zip(framed, offsets, strict=True)
    ))  # fmt: skip
    fold = FramedFold(plan)
    grouped = low.builder.group(arranged, program.key_width, fold)
    repeated = low.builder.map(low.builder.raw(grouped), Repeat(program.key_width, fold.out_width - 1))
    cells = gathers.cells(wide.schema)[: len(own)] + gathers.cells(plan.columns, gathers.width(wide.schema))
    row = (*flow.schema, *(ColumnType(f.column.type, f.column.nullable) for f in rel.framed))
    return Flow(repeated, gathers.trusted_row(cells, row), row)


def _arranged(low: Lowering, flow: Flow, program: Keyed, words: tuple[Order, ...]) -> NodeId:
    node = low.builder.map(flow, program)
    order: tuple[Order, ...] = ()
    if any(o is not Order.WORD for o in words):
        order = (Order.WORD,) * program.key_width + words + (Order.WORD,) * gathers.width(flow.schema)
    return low.builder.arrange_raw(node, program.key_width, order)


def _is_own(expr: Scalar, own: tuple[Column, ...]) -> bool:
    return isinstance(expr, Column) and expr in own


def _stays(framed: Framed, arg: Scalar) -> bool:
    """Whether an argument is no column: a literal that is not a row's value."""
    function = framed.function
    return isinstance(function, Picked) and isinstance(arg, Literal) and arg is not function.args[0]


def _arguments(framed: Framed) -> tuple[Scalar, ...]:
    return framed.scalars[: len(framed.scalars) - len(framed.frame.offsets)]


def _ready(framed: Framed) -> Framed:
    """The function without FILTER, as ``planner.frames.plan`` wants it."""
    aggregate = framed.function
    if not isinstance(aggregate, Aggregate):
        return framed
    match AGGREGATES[aggregate.function].kind:
        case AggregateKind.ACCUMULABLE:
            aggregate = of_pairs(without_filter(aggregate))
        case AggregateKind.ORDERED:
            aggregate = without_filter(aggregate)
            (arg,) = aggregate.args
            if arg.type.storage is not aggregate.type.storage:
                aggregate = replace(aggregate, args=(Call(CAST, (arg,), aggregate.type, arg.nullable),))
        case _:
            aggregate = replace(aggregate, args=(*aggregate.args, counts_not(aggregate)), filter=None)
    return replace(framed, function=aggregate)
