"""Joins of every kind on any condition.

The matched part is a linear join on the equality keys, followed by the residual predicates. An outer join adds (rows -
rows with a match). The rows with a match are a join with a *set*: the other side's keys if there is no residual, else
the matched rows themselves (equal rows have equal matches, so a set suffices). Both are maintained by differences
alone.
"""

from __future__ import annotations

from dataclasses import replace

from ivm.graph import Gather, Keep, NodeId
from ivm.words import ColumnType, Schema
from planner import gathers
from planner.expr.scalar import Column, Scalar
from planner.gathers import Cell
from planner.logical.fallibility import can_raise
from planner.logical.join_keys import Band, Condition, KeyPair, take_apart
from planner.logical.nodes import Join as JoinRel
from planner.logical.nodes import JoinKind, schema
from planner.logical.traversal import own_columns, shift
from planner.lower.band import band_pairs, joins_bands, with_band, with_match
from planner.lower.filter_pull_up import pulled
from planner.lower.join_graph import attributes, combination
from planner.lower.multiway import End, lower_late_pair, lower_multiway
from planner.lower.sides import Sides
from planner.lower.state import Arranged, Lowering, arrange_flow
from planner.options import Joins
from planner.physical.layouts import arranged, whole_row
from planner.physical.nodes import Flow, Pair
from planner.physical.row_programs import Pad


def lower_join(low: Lowering, join: JoinRel) -> Flow:
    """Lowers a join of any kind that is not lateral."""
    assert not join.lateral, "lateral joins are gone after decorrelation"
    at_once = lower_multiway(low, join) if join.kind is JoinKind.INNER and not _by_bands(low, join) else None
    if at_once is not None:
        return at_once
    condition = take_apart(join.on, len(schema(join.left)))
    better = pulled(low, join, condition.keys)
    if better is not None:
        return low.rel(better)
    left, right = low.rel(join.left), low.rel(join.right)
    if join.kind is JoinKind.INNER:
        return _inner(low, left, right, with_band(low, join, condition))
    if join.kind in (JoinKind.SEMI, JoinKind.ANTI):
        looked_up = _is_looked_up(low, right, tuple(k.right for k in condition.keys))
        some = None if looked_up or low.indexes.planning.joins is Joins.LINEAR else with_match(low, join, condition)
        if some is not None:
            return some if join.kind is JoinKind.SEMI else low.difference(left, some)
        return _semi(low, left, right, with_band(low, join, condition), join.kind)
    return _outer(low, left, right, with_band(low, join, condition), join)


def _by_bands(low: Lowering, join: JoinRel) -> bool:
    """Whether a tree of inner joins has a band and is not cyclic: the paths of a delta join test inequalities late."""
    if low.indexes.planning.joins is not Joins.AUTO or not joins_bands(low, join):
        return False
    joined = combination(join)
    return joined is None or not attributes(joined).cyclic


def _inner(low: Lowering, left: Flow, right: Flow, condition: Condition) -> Flow:
    sides = prepare(low, left, right, condition.keys, ())
    flow = matched(low, sides, condition.band)
    count = len(left.schema)
    rest = (*condition.left, *(shift(p, count) for p in condition.right), *condition.residual)
    return low.compute(flow, rest, None)


def prepare(low: Lowering, left: Flow, right: Flow, keys: tuple[KeyPair, ...], residual: tuple[Scalar, ...]) -> Sides:
    """Both sides with their keys computed, the keys in the order of an existing arrangement if there is one."""
    left_flow, left_keys = low.with_keys(left, tuple(k.left for k in keys))
    right_flow, right_keys = low.with_keys(right, tuple(k.right for k in keys))
    pairs = list(zip(left_keys, right_keys, (k.null_safe for k in keys), strict=True))
    pairs = [
        (a, b, s and (left_flow.schema[a].nullable or right_flow.schema[b].nullable))
        for a, b, s in dict.fromkeys(pairs)
    ]
    pairs = _ordered(low, left_flow, right_flow, pairs)
    return Sides(
        left_flow, right_flow, tuple(a for a, _, _ in pairs), tuple(b for _, b, _ in pairs),
        tuple(s for _, _, s in pairs), residual, len(left.schema), len(right.schema),
    )  # fmt: skip


def _ordered(low: Lowering, left: Flow, right: Flow, pairs: list[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
    for flow, side in ((right, 1), (left, 0)):
        stored = low.table_of(flow)
        if stored is None:
            continue
        table, columns = stored
        by_column = {columns[p[side]]: p for p in pairs}
        # a relation without a primary key is arranged by its whole rows
        looked = low.indexes.one_shot or low.indexes.primary_key(table.relation)
        rows = () if looked else (tuple(range(len(table.schema))),)
        for key in (*rows, *low.indexes.keys(table.relation)):
            if len(by_column) == len(pairs) and frozenset(key) == frozenset(by_column):
                return [by_column[c] for c in key]
    return sorted(pairs)


def matched(low: Lowering, sides: Sides, band: Band | None = None) -> Flow:
    """Pairs of rows with equal keys, and in the band, before any residual: left's columns, then right's."""
    if band is not None:
        return band_pairs(low, sides, band)
    late = _late(low, sides, End(sides.right, sides.right_keys, sides.right_columns))
    if late is not None:
        return late
    left = arrange_flow(low, sides.left, sides.left_keys, sides.null_safe)
    right = arrange_flow(low, sides.right, sides.right_keys, sides.null_safe)
    assert left.key_width == right.key_width
    shifted = _behind(left, right)
    pair = Pair(left.node, right.node, left.width + right.width - right.key_width)
    row = (*sides.left.schema[: sides.left_columns], *sides.right.schema[: sides.right_columns])
    at = (*left.at[: sides.left_columns], *shifted[: sides.right_columns])
    return Flow(pair, gathers.trusted_row(at, row), row)


def _late(low: Lowering, sides: Sides, right: End) -> Flow | None:
    """The same pairs by late materialization; None where that does not pay."""
    if any(sides.null_safe):
        return None
    return lower_late_pair(low, End(sides.left, sides.left_keys, sides.left_columns), right)


def _behind(left: Arranged, right: Arranged) -> tuple[Cell, ...]:
    """The cells of right's columns in [key | left val | right val]."""
    by = left.width - left.key_width

    def place(word: int) -> int:
        return word if word < right.key_width else word + by

    return tuple(Cell(place(c.word), None if c.null is None else (place(c.null[0]), c.null[1])) for c in right.at)


def _semi(low: Lowering, left: Flow, right: Flow, condition: Condition, kind: JoinKind) -> Flow:
    condition = _late_filter(low, right, safe_sides(condition, len(left.schema)), len(left.schema))
    right = low.compute(right, condition.right, None)
    tested = low.compute(left, condition.left, None)
    with_match = _with_match(low, tested, right, condition)
    if kind is JoinKind.SEMI:
        return with_match
    return low.difference(left, with_match)


def safe_sides(condition: Condition, left_width: int) -> Condition:
    """Moves one-sided predicates that can raise to the residual: they must not see rows without a match."""
    raising = [p for p in condition.left if can_raise(p)]
    raising += [shift(p, left_width) for p in condition.right if can_raise(p)]
    if not raising:
        return condition
    return replace(
        condition,
        left=tuple(p for p in condition.left if not can_raise(p)),
        right=tuple(p for p in condition.right if not can_raise(p)),
        residual=(*raising, *condition.residual),
    )


def _late_filter(low: Lowering, right: Flow, condition: Condition, left_width: int) -> Condition:
    """One-shot: tests conditions on a looked-up right side on the pairs, not on all of its rows."""
    if not condition.right or not _is_looked_up(low, right, tuple(k.right for k in condition.keys)):
        return condition
    moved = tuple(shift(p, left_width) for p in condition.right)
    return replace(condition, right=(), residual=(*moved, *condition.residual))


def _is_looked_up(low: Lowering, flow: Flow, keys: tuple[Scalar, ...]) -> bool:
    stored = low.table_of(flow)
    if not low.indexes.one_shot or stored is None or not keys or not all(isinstance(k, Column) for k in keys):
        return False
    columns = {stored[1][k.index] for k in keys if isinstance(k, Column)}
    return any(set(key) == columns for key in low.indexes.keys(stored[0].relation))


def _with_match(low: Lowering, left: Flow, right: Flow, condition: Condition) -> Flow:
    """The left rows that have a match."""
    sides = prepare(low, left, right, condition.keys, condition.residual)
    if condition.of_keys:
        return joined_with_set(low, sides)
    pairs = low.compute(matched(low, sides, condition.band), condition.residual, own_columns(left.schema))
    return _rows_in(low, left, low.distinct_rows(pairs))


def joined_with_set(low: Lowering, sides: Sides) -> Flow:
    """The left rows whose keys are among the right ones."""
    keys = low.builder.move(sides.right, sides.right_keys)
    right_keys = tuple(Column(k, sides.right.schema[k].type) for k in sides.right_keys)
    if _is_looked_up(low, sides.right, right_keys) and not any(sides.null_safe):
        keys = _keys_met(low, sides)
    columns = tuple(range(len(sides.right_keys)))
    of_keys = key_only(low, keys, columns, sides.null_safe)
    if not any(sides.null_safe):
        some = low.builder.flow(of_keys.node, tuple(ColumnType(c.type, False) for c in keys.schema))
        late = _late(low, sides, End(some, columns, len(columns)))
        if late is not None:
            return low.builder.move(late, tuple(range(sides.left_columns)))
    left = arrange_flow(low, sides.left, sides.left_keys, sides.null_safe)
    assert left.key_width == of_keys.key_width
    row = sides.left.schema[: sides.left_columns]
    return Flow(Pair(left.node, of_keys.node, left.width), gathers.trusted_row(left.at[: sides.left_columns], row), row)


def _keys_met(low: Lowering, sides: Sides) -> Flow:
    """One-shot: the left side's keys that the looked-up right side has."""
    left = low.builder.move(sides.left, sides.left_keys)
    some = key_only(low, left, tuple(range(len(sides.left_keys))), sides.null_safe)
    right = arrange_flow(low, sides.right, sides.right_keys, sides.null_safe)
    row = tuple(replace(sides.right.schema[k], nullable=False) for k in sides.right_keys)
    return Flow(Pair(some.node, right.node, right.width), Gather(tuple(range(len(row)))), row)


def key_only(low: Lowering, keys: Flow, columns: tuple[int, ...], null_safe: tuple[bool, ...]) -> Arranged:
    """The set of a flow's keys, in the layout of ``arrange_flow``."""
    layout = arranged(keys.schema, columns, null_safe)
    gather = Gather(
        layout.gather.words[: layout.key_width],
        tuple(b for b in layout.gather.bits if b[2] < layout.key_width),
        layout.gather.drop_if,
    )
    node = low.threshold(low.builder.arrange(keys, gather, layout.key_width), Keep.DISTINCT)
    return Arranged(node, layout.key_width, layout.key_width, layout.at)


def _rows_in(low: Lowering, flow: Flow, rows: Flow) -> Flow:
    """The flow's rows, with their multiplicities, that are in a set of whole rows."""
    gather = whole_row(flow.schema).gather
    left = low.builder.arrange(flow, gather, len(gather.words))
    right = low.builder.arrange(rows, gather, len(gather.words))
    return Flow(Pair(left, right, len(gather.words)), gather, flow.schema)


def _outer(low: Lowering, left: Flow, right: Flow, condition: Condition, join: JoinRel) -> Flow:
    row = schema(join)
    count = len(left.schema)
    keep_left = join.kind in (JoinKind.LEFT, JoinKind.FULL)
    keep_right = join.kind in (JoinKind.RIGHT, JoinKind.FULL)
    condition = safe_sides(condition, count)
    if not keep_right:
        condition = _late_filter(low, right, condition, count)
    tested_left, tested_right = low.compute(left, condition.left, None), low.compute(right, condition.right, None)
    sides = prepare(low, tested_left, tested_right, condition.keys, condition.residual)
    pairs = low.compute(matched(low, sides, condition.band), condition.residual, None)
    if condition.band is not None:
        pairs = low.builder.flow(low.builder.force(pairs), pairs.schema)  # read twice, searched once
    parts: list[NodeId] = [low.builder.force(low.coerce(pairs, row))]
    if keep_left:
        some = _matched_rows(low, sides, pairs, tested_left, 0, condition)
        parts.append(padded(low, low.difference(left, some), row, 0))
    if keep_right:
        some = _matched_rows(low, _swap(sides), pairs, tested_right, count, condition)
        parts.append(padded(low, low.difference(right, some), row, count))
    return low.builder.flow(low.builder.concat(tuple(parts)), row)


def _swap(sides: Sides) -> Sides:
    return Sides(
        sides.right, sides.left, sides.right_keys, sides.left_keys, sides.null_safe, (), sides.right_columns,
        sides.left_columns,
    )  # fmt: skip


def _matched_rows(low: Lowering, sides: Sides, pairs: Flow, tested: Flow, first: int, condition: Condition) -> Flow:
    """The rows with a match of one side: ``sides.left``, whose columns start at ``first`` in ``pairs``."""
    if condition.of_keys:
        return joined_with_set(low, sides)
    columns = tuple(range(first, first + len(tested.schema)))
    return _rows_in(low, tested, low.distinct_rows(low.builder.move(pairs, columns, tested.schema)))


def padded(low: Lowering, flow: Flow, row: Schema, first: int) -> NodeId:
    """One side's rows as rows of the join, with NULLs in the other side's columns."""
    own = gathers.cells(flow.schema)
    width = len(row)
    sources: list[Cell | None] = [None] * width
    nulls = []
    for i in range(width):
        if first <= i < first + len(own):
            sources[i] = own[i - first]
        else:
            nulls.append((width + i // 64, i % 64))
    gather = gathers.row_of(sources, row)
    return low.builder.map(flow, Pad(gather, tuple(nulls)))
