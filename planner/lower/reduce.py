"""GROUP BY: one reduce for all accumulable aggregates, one for each other or DISTINCT one, joined on the key.

Every part has a row for exactly the groups with an input row (FILTER and NULLs are handled inside the values), so an
inner join of the parts is correct. Without keys each part also gets a constant row that adds nothing, so that the one
group always exists.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ivm.graph import Concat, Gather, NodeId, Order
from ivm.words import BOOL, INT8, ColumnType, Schema, Storage
from planner import gathers
from planner.aggregates.accumulable import Accumulation
from planner.aggregates.aggregate_reducers import (
    AccumulateFold,
    BasicFold,
    CountFold,
    ModeFold,
    OrderedFold,
    PercentileFold,
)
from planner.aggregates.components import AggregateCall
from planner.aggregates.function import AggregateKind, NullResult
from planner.aggregates.reducers import is_null, order_words
from planner.aggregates.table import AGGREGATES, COUNT_ROWS, of_pairs, without_filter
from planner.expr.scalar import Aggregate, Call, Column, Literal, Scalar
from planner.gathers import Cell
from planner.logical.aggregates import aggregate_scalars, with_aggregate_scalars
from planner.logical.join_keys import as_type, by_class
from planner.logical.nodes import Reduce, Values, schema
from planner.logical.traversal import (
    column_types,
    columns_of,
    own_columns,
    renumber,
    settle,
)  # fmt: skip
from planner.lower.sets import lower_distinct
from planner.lower.state import Lowering
from planner.physical.arrangement_programs import Keyed, Weigh, Weight
from planner.physical.layouts import whole_row
from planner.physical.nodes import Constants, Flow, Open, Pair
from planner.transform.normal.form import columns_in_order

GroupFold = OrderedFold | BasicFold | PercentileFold | ModeFold


@dataclass(frozen=True, slots=True)
class ArrangedResults:
    """An arrangement [key | vals], and the cells of some aggregates' results in it."""

    node: NodeId
    width: int
    at: tuple[tuple[int, Cell], ...]
    """(the aggregate's position, its cell)."""


def lower_reduce(low: Lowering, rel: Reduce) -> Flow:
    """Lowers GROUP BY, and aggregation without keys."""
    flow = low.rel(rel.input)
    row = schema(rel)
    flow, rel = _computed(low, flow, rel)
    return _reduced(low, flow, _settled(rel, flow.schema), row)


def _reduced(low: Lowering, flow: Flow, rel: Reduce, row: Schema) -> Flow:
    """The groups of a flow, which is ``rel.input`` lowered."""
    keys = tuple(by_class(k) for k in rel.keys)
    shown = [i for i, k in enumerate(rel.keys) if k.type.has_equality_class]
    extra = tuple(Aggregate("any_value(anyelement)", (rel.keys[i],), rel.keys[i].type) for i in shown)
    aggregates = (*rel.aggregates, *extra)
    parts = _parts(low, flow, keys, aggregates)
    joined = _join_parts(low, parts, gathers.width(column_types(keys)))
    return _result(joined, keys, shown, len(rel.aggregates), row)


def _settled(rel: Reduce, row: Schema) -> Reduce:
    """Keys and arguments with the nullability of the input's columns; every part lays out its key by them."""
    aggregates = tuple(
        with_aggregate_scalars(a, tuple(settle(e, row) for e in aggregate_scalars(a))) for a in rel.aggregates
    )
    return replace(rel, keys=tuple(settle(k, row) for k in rel.keys), aggregates=aggregates)


def _computed(low: Lowering, flow: Flow, rel: Reduce) -> tuple[Flow, Reduce]:
    """If the flow's join is not built yet, gathers only the columns that are read."""
    if not isinstance(flow.source, Open):
        return flow, rel
    exprs = (*rel.keys, *(e for a in rel.aggregates for e in aggregate_scalars(a)))
    used = frozenset().union(*(columns_of(e) for e in exprs)) if exprs else frozenset()
    flow, place = low.narrow(flow, used)
    aggregates = tuple(
        with_aggregate_scalars(a, tuple(renumber(e, place.__getitem__) for e in aggregate_scalars(a)))
        for a in rel.aggregates
    )
    return flow, replace(rel, keys=tuple(renumber(k, place.__getitem__) for k in rel.keys), aggregates=aggregates)


def _parts(
    low: Lowering, flow: Flow, keys: tuple[Scalar, ...], aggregates: tuple[Aggregate, ...]
) -> list[ArrangedResults]:
    together: list[tuple[int, Aggregate]] = []
    parts: list[ArrangedResults] = []
    distinct: dict[tuple[Scalar, ...], list[tuple[int, Aggregate]]] = {}
    for i, aggregate in enumerate(aggregates):
        match AGGREGATES[aggregate.function].kind:
            case AggregateKind.ACCUMULABLE:
                plain = of_pairs(without_filter(aggregate))
                if plain.distinct and plain.args:
                    distinct.setdefault(plain.args, []).append((i, plain))
                else:
                    together.append((i, plain))
            case AggregateKind.ORDERED:
                parts.append(_grouped(low, flow, keys, i, OrderedFold(without_filter(aggregate))))
            case AggregateKind.BASIC:
                parts.append(_grouped(low, flow, keys, i, BasicFold(aggregate)))
            case AggregateKind.RANKED:
                parts.append(_grouped(low, flow, keys, i, PercentileFold(aggregate)))
            case AggregateKind.MODE:
                parts.append(_mode(low, flow, keys, i, without_filter(aggregate)))
    parts += [_distinct(low, flow, keys, args, some) for args, some in distinct.items()]
    if keys and together and all(a.function == COUNT_ROWS for _, a in together):
        parts.insert(0, _counted(low, flow, keys, [i for i, _ in together]))
    elif together or not parts:
        parts.insert(0, _accumulated(low, flow, keys, together))
    return parts


def _accumulated(
    low: Lowering, flow: Flow, keys: tuple[Scalar, ...], some: list[tuple[int, Aggregate]]
) -> ArrangedResults:
    args = columns_in_order(tuple(arg for _, a in some for arg in a.args))
    place = {arg: i for i, arg in enumerate(args)}
    calls = tuple(
        AggregateCall(a.function, tuple(place[x] for x in a.args), tuple(x.type for x in a.args)) for _, a in some
    )
    layout = Accumulation(tuple(dict.fromkeys(calls)), always=not keys)
    program = Weigh(flow.schema, keys, args, layout)
    node = low.builder.map(flow, program)
    if not keys:
        empty = _constant(low, (0,) * program.out_width)
        weighed = low.builder.map(empty, Weight(program.out_width, layout.empty_weights))
        node = low.builder.add(Concat((node, weighed)), program.out_width)
    arranged = low.builder.arrange_raw(node, program.key_width)
    fold = AccumulateFold(layout)
    grouped = low.builder.group(arranged, program.key_width, fold)
    at = gathers.cells(layout.schema, program.key_width)
    cell = dict(zip(layout.calls, at, strict=False))
    cells = tuple((i, cell[c]) for (i, _), c in zip(some, calls, strict=True))
    return ArrangedResults(grouped, program.key_width + fold.out_width, cells)


def _counted(low: Lowering, flow: Flow, keys: tuple[Scalar, ...], places: list[int]) -> ArrangedResults:
    """Only count(*): arranges the keys alone; their diffs are the counts."""
    keyed = low.coerce(low.compute(flow, (), keys), column_types(keys))
    layout = whole_row(keyed.schema)
    arranged = low.builder.arrange(keyed, layout.gather, layout.key_width)
    grouped = low.builder.group(arranged, layout.key_width, CountFold())
    return ArrangedResults(grouped, layout.key_width + 1, tuple((i, Cell(layout.key_width)) for i in places))


def _constant(low: Lowering, words: tuple[int, ...]) -> Flow:
    row: Schema = (ColumnType(INT8, False),) * len(words)
    node = low.builder.add(Constants((tuple(Literal(w, INT8) for w in words),), row), len(words))
    return low.builder.flow(node, row)


def _mode(low: Lowering, flow: Flow, keys: tuple[Scalar, ...], position: int, aggregate: Aggregate) -> ArrangedResults:
    """mode(): counts by (key, value), then the first by (count descending, value). No group is scanned."""
    value = as_type(aggregate.args[0], aggregate.type)
    counts = Reduce(Values((), flow.schema), (*keys, value), (Aggregate("count(*)", (), INT8, False),))
    counted = _reduced(low, flow, counts, schema(counts))
    own = own_columns(counted.schema)
    found, count = own[-2], own[-1]
    null = is_null(found) if found.nullable else Literal(False, BOOL)
    rarity = Call("~(int8)", (count,), INT8, False)
    ordered = order_words(replace(aggregate.order[0], expr=found))
    words = ((null, Order.WORD), (rarity, Order.WORD), *ordered, (found, Order.WORD))
    return _grouped(low, counted, own[: len(keys)], position, ModeFold(words))


def _grouped(low: Lowering, flow: Flow, keys: tuple[Scalar, ...], position: int, fold: GroupFold) -> ArrangedResults:
    order = fold.order
    as_bytes = any(o is not Order.WORD for o in order)
    program = Keyed(flow.schema, keys, fold.exprs)
    whole = (Order.WORD,) * program.key_width + order if as_bytes else ()
    moved = _moved(flow.schema, keys, fold.exprs) if keys else None
    if moved is not None:
        arranged = low.builder.arrange(flow, moved, program.key_width, whole)
        return _part(low, arranged, program.key_width, position, fold)
    node = low.builder.map(flow, program)
    if not keys:
        empty = _constant(low, (0, *fold.empty_row))
        node = low.builder.add(Concat((node, low.builder.force(empty))), program.out_width)
    arranged = low.builder.arrange_raw(node, program.key_width, whole)
    return _part(low, arranged, program.key_width, position, fold)


def _moved(row: Schema, keys: tuple[Scalar, ...], words: tuple[Scalar, ...]) -> Gather | None:
    """``Keyed`` as a gather; None if it computes anything."""
    if not all(isinstance(k, Column) for k in keys):
        return None
    at = gathers.cells(row)
    gather = gathers.columns(row, [k.index for k in keys if isinstance(k, Column)], column_types(keys))
    copied, bits = list(gather.words), list(gather.bits)
    for word in words:
        match word:
            case Call(function="order_prefix", args=(Column(index=i, type=type_),)) | Column(index=i, type=type_) if (
                type_.storage is Storage.DIRECT and not type_.has_equality_class
            ):
                copied.append(at[i].word)
            case Call(function="is null", args=(Column(index=i),)):
                null = at[i].null
                if null is not None:
                    bits.append((*null, len(copied), 0))
                copied.append(-1)
            case Literal(value=False):
                copied.append(-1)
            case _:
                return None
    return Gather(tuple(copied), tuple(bits))


def _part(low: Lowering, arranged: NodeId, key_width: int, position: int, fold: GroupFold) -> ArrangedResults:
    grouped = low.builder.group(arranged, key_width, fold)
    start = key_width
    cell = Cell(start, (start + 1, 0) if fold.out_width > 1 else None)
    return ArrangedResults(grouped, start + fold.out_width, ((position, cell),))


def _distinct(
    low: Lowering, flow: Flow, keys: tuple[Scalar, ...], args: tuple[Scalar, ...], some: list[tuple[int, Aggregate]]
) -> ArrangedResults:
    """DISTINCT: the set of (key, argument by equality class) first; sums show one value of each class."""
    if all(AGGREGATES[a.function].null_result is NullResult.NEVER for _, a in some):
        args = tuple(by_class(a) for a in args)
    once = lower_distinct(low, low.compute(flow, (), (*keys, *args)))
    own = own_columns(once.schema)
    new_keys, new_args = own[: len(keys)], own[len(keys) :]
    plain = [(i, replace(a, args=new_args, distinct=False)) for i, a in some]
    return _accumulated(low, once, new_keys, plain)


def _join_parts(low: Lowering, parts: list[ArrangedResults], key_width: int) -> tuple[Flow, dict[int, Cell]]:
    """All parts' results beside the key, and the cell of each."""
    first, *rest = parts
    at = dict(first.at)
    node, width = first.node, first.width
    for part in rest:
        total = width + part.width - key_width
        by = width - key_width
        at |= {i: gathers.moved(c, by) for i, c in part.at}
        pair = Flow(Pair(node, part.node, total), gathers.identity(total), (ColumnType(INT8, False),) * total)
        if part is rest[-1]:
            return pair, at
        node, width = low.builder.arrange_raw(low.builder.force(pair), key_width), total
    return low.builder.raw(node), at


def _result(
    joined: tuple[Flow, dict[int, Cell]], keys: tuple[Scalar, ...], shown: list[int], count: int, row: Schema
) -> Flow:
    flow, at = joined
    cells = list(gathers.cells(column_types(keys)))
    for position, key in enumerate(shown):
        cells[key] = at[count + position]
    cells += [at[i] for i in range(count)]
    return Flow(flow.source, gathers.compose(flow.gather, gathers.trusted_row(cells, row)), row)
