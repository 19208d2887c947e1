"""Window functions: numberings and what is computed from them (``sql.bind.distribution``); values of other rows
(``sql.bind.picks``); aggregates, over frames or whole partitions.

An aggregate over (PARTITION BY keys) alone is a join of the rows with their groups. Cost of a change: that of the
group's aggregate, and where its result changes, the rows of the partition. What depends on the order is a ``TopK`` with
``numbers`` or ``framed``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, assert_never

from ivm.errors import SqlError
from ivm.words import BOOL, INT8, ColumnType
from planner.aggregates.function import AggregateKind, NullResult
from planner.aggregates.table import AGGREGATES, ORDERED_SETS, aggregate_overloads
from planner.expr.functions.compare import NOT_DISTINCT
from planner.expr.functions.library import overloads
from planner.expr.scalar import Aggregate, And, Call, Column, Literal, Scalar, SortKey
from planner.logical.aggregates import aggregate_scalars, with_aggregate_scalars
from planner.logical.frames import Bound, Exclusion, Frame, Framed, FrameMode, Pick, Picked
from planner.logical.levels import relevel
from planner.logical.nodes import Join, JoinKind, Numbering, Project, Reduce, Rel, TopK, schema
from sql.bind import distribution, picks
from sql.bind.aggregates import called_aggregate
from sql.bind.arrival import numbered, ordered_aggregates
from sql.bind.bound_query import rel_columns
from sql.bind.coerce import resolve_unknown
from sql.bind.environment import Binder
from sql.bind.order_by import sort_key
from sql.bind.overloads import no_function
from sql.bind.routine_resolution import RoutineOverload
from sql.bind.scope import FUNCTION_BASE, WINDOW_ARGUMENTS, WINDOW_BASE, WindowCall
from sql.bind.volatile import is_volatile
from sql.bind.window_frames import bind_frame, complete
from sql.syntax.nodes import queries as nodes

_NUMBERINGS: Final = frozenset(n.value for n in Numbering)
NAMES: Final = _NUMBERINGS | picks.NAMES | distribution.NAMES
_AS_PICKS: Final = {Numbering.ROW_NUMBER: Pick.ROW_NUMBER, Numbering.RANK: Pick.RANK}
Window = tuple[tuple[Scalar, ...], tuple[SortKey, ...]]
"""The partition and the order."""


def window_function(b: Binder, node: nodes.Apply, name: str, overload: RoutineOverload | None = None) -> Scalar:
    """A placeholder for a window function's result; the call is added to the scope. ``overload``: the user-defined
    aggregate that is called. Raises 42P20, 42704, 42803, 42809, 42883, 0A000."""
    assert node.over is not None
    is_aggregate = overload is not None or bool(aggregate_overloads(name))
    if b.inside_aggregate:
        message = "aggregate function calls cannot contain window function calls"
        raise SqlError("42803", message, position=node.at + 1)
    if b.scope.windows is None:
        message = f"window functions are not allowed in {b.scope.clause or b.clause}"
        if b.scope.clause == WINDOW_ARGUMENTS:
            message = "window function calls cannot be nested"
        raise SqlError("42P20", message, position=node.at + 1)
    if not is_aggregate and name not in NAMES:
        raise _no_window_function(b, node, name)
    _check_call(b, node, name)
    over = complete(node.over, b.scope.named)
    collected, b.scope.windows = b.scope.windows, None
    clause, b.scope.clause = b.scope.clause, "window definitions"
    try:
        (partition, order), frame = bind_window(b, over, node.at)
        b.scope.clause = WINDOW_ARGUMENTS
        if overload is None and name in distribution.NAMES:
            return distribution.distribution_function(b, node, name, partition, order, partial(_placeholder, collected))
        function = _function(b, node, name, overload, frame, order)
        if isinstance(function, Aggregate):
            order = ()
        return _placeholder(collected, WindowCall(function, partition, order))
    finally:
        b.scope.windows, b.scope.clause = collected, clause


def bind_window(b: Binder, over: nodes.Over, at: int) -> tuple[Window, Frame]:
    """A complete window's partition, order and frame."""
    partition = tuple(resolve_unknown(b.env, b.bind(e), at) for e in over.partition)
    order = tuple(sort_key(resolve_unknown(b.env, b.bind(i.expr), i.at), i) for i in over.order)
    return (partition, order), bind_frame(b, over, order)


def check_named(b: Binder, windows: Sequence[tuple[str, nodes.Over]]) -> None:
    """Binds the windows of WINDOW, which may have errors although no function uses them."""
    collected, b.scope.windows = b.scope.windows, None
    clause, b.scope.clause = b.scope.clause, "window definitions"
    for name, over in windows:
        bind_window(b, b.scope.named[name], over.at)
    b.scope.windows, b.scope.clause = collected, clause


def _placeholder(calls: list[WindowCall], call: WindowCall) -> Column:
    if call not in calls:
        calls.append(call)
    result = _result(call.function)
    return Column(WINDOW_BASE + calls.index(call), result.type, result.nullable)


def _function(
    b: Binder, node: nodes.Apply, name: str, overload: RoutineOverload | None, frame: Frame, order: tuple[SortKey, ...]
) -> Numbering | Aggregate | Framed:
    if overload is None and name in _NUMBERINGS:
        return Numbering(name)
    if overload is None and name in picks.NAMES:
        picked = picks.bind(b, node, name)
        return Framed(picked, frame if picked.pick.is_framed else Frame())
    made = _aggregate(b, node, name, overload)
    ordered = bool(order) and AGGREGATES[made.function].kind is AggregateKind.BASIC
    return made if _is_whole(frame, bool(order)) and not ordered else Framed(made, frame)


def _is_whole(frame: Frame, ordered: bool) -> bool:
    """Whether the frame is every row's whole partition."""

    def open_end(bound: Bound) -> bool:
        all_peers = frame.mode is FrameMode.RANGE and not ordered and bound.offset is None
        return bound.unbounded or all_peers

    return frame.exclusion is Exclusion.NO_OTHERS and open_end(frame.start) and open_end(frame.end)


def _result(function: Numbering | Aggregate | Framed) -> ColumnType:
    match function:
        case Numbering():
            return ColumnType(INT8, False)
        case Aggregate():
            return ColumnType(function.type, function.nullable)
        case Framed():
            return function.column
        case _:
            assert_never(function)


def _no_window_function(b: Binder, node: nodes.Apply, name: str) -> SqlError:
    """The error for OVER after what is no window function."""
    if name in ORDERED_SETS:
        message = f"OVER is not supported for ordered-set aggregate {name}"
        return SqlError("0A000", message, position=node.at + 1)
    if not overloads(name):
        return no_function(name, [b.bind(a).type for a in node.args], node.at)
    message = f"OVER specified, but {name} is not a window function nor an aggregate function"
    return SqlError("42809", message, position=node.at + 1)


def _check_call(b: Binder, node: nodes.Apply, name: str) -> None:
    message = None
    if name in _NUMBERINGS and (node.args or node.star):
        raise no_function(name, [b.bind(a).type for a in node.args], node.at)
    if node.distinct:
        message = "DISTINCT is not implemented for window functions"
    elif node.order:
        message = "aggregate ORDER BY is not implemented for window functions"
    elif node.filter is not None and name in NAMES:
        message = "FILTER is not implemented for non-aggregate window functions"
    elif node.ignore_nulls and name not in picks.NAMES:
        message = f"function {name} does not allow RESPECT/IGNORE NULLS"
    if message is not None:
        raise SqlError("0A000", message, position=node.at + 1)


def _aggregate(b: Binder, node: nodes.Apply, name: str, overload: RoutineOverload | None) -> Aggregate:
    made = called_aggregate(b, node, name, overload)
    return replace(made, nullable=AGGREGATES[made.function].null_result is not NullResult.NEVER)


def expressions(calls: Sequence[WindowCall]) -> list[Scalar]:
    """All expressions in window functions."""
    return [e for call in calls for e in (*call.partition, *(k.expr for k in call.order), *_inside(call))]


def _inside(call: WindowCall) -> tuple[Scalar, ...]:
    match call.function:
        case Aggregate() as aggregate:
            return aggregate_scalars(aggregate)
        case Framed() as framed:
            return framed.scalars
        case _:
            return ()


def with_windows(rel: Rel, calls: Sequence[WindowCall]) -> tuple[Rel, Callable[[Scalar], Scalar]]:
    """The query's rows with a column for each window function, and what replaces the placeholders in an expression."""
    place: dict[int, int] = {}
    rel, calls = _as_they_arrive(*_with_keys(rel, calls))
    rows = rel
    ordered = [c for c in calls if not isinstance(c.function, Aggregate)]
    for window in dict.fromkeys((c.partition, c.order) for c in ordered):
        mine = {i: c.function for i, c in enumerate(calls) if c in ordered and (c.partition, c.order) == window}
        rel = _ordered(rel, window, mine, place)
    aggregates = [(i, c, c.function) for i, c in enumerate(calls) if isinstance(c.function, Aggregate)]
    for partition in dict.fromkeys(c.partition for _, c, _ in aggregates):
        of = [(i, function) for i, c, function in aggregates if c.partition == partition]
        width = len(schema(rel)) + len(partition)
        place |= {WINDOW_BASE + i: width + n for n, (i, _) in enumerate(of)}
        rel = _beside(rel, Reduce(rows, partition, tuple(function for _, function in of)))
    return rel, lambda expr: relevel(expr, lambda level, i: (level, place.get(i, i) if level == 0 else i))


def _with_keys(rel: Rel, calls: Sequence[WindowCall]) -> tuple[Rel, Sequence[WindowCall]]:
    """The rows with columns for the partitions' expressions that call volatile functions, which are read twice."""
    found = tuple(dict.fromkeys(e for call in calls for e in call.partition if is_volatile(e)))
    if not found:
        return rel, calls
    own = rel_columns(rel)
    place = {e: Column(len(own) + i, e.type, e.nullable) for i, e in enumerate(found)}
    moved = [regrouped(call, lambda e: place.get(e, e)) for call in calls]
    return Project(rel, (*own, *found)), moved


def _as_they_arrive(rel: Rel, calls: Sequence[WindowCall]) -> tuple[Rel, Sequence[WindowCall]]:
    """The rows with numbers if they arrive in an order: for row_number() and aggregates like array_agg without one."""
    aggregates = [c.function for c in calls if isinstance(c.function, Aggregate)]
    numberings = [c for c in calls if c.function is Numbering.ROW_NUMBER and not c.order]
    rel, found = ordered_aggregates(rel, (), aggregates)
    ordered = iter(found)
    calls = [replace(c, function=next(ordered)) if isinstance(c.function, Aggregate) else c for c in calls]
    rows = numbered(rel) if numberings else None
    if rows is None:
        return rel, calls
    return rows[0], [replace(c, order=rows[1]) if c in numberings else c for c in calls]


def _ordered(
    rel: Rel, window: Window, mine: dict[int, Numbering | Aggregate | Framed], place: dict[int, int]
) -> Rel:  # fmt: skip
    """``rel`` with columns for the functions of one window. ``mine``: them by number; ``place`` gets their columns.

    Beside other functions a row number is one of them, so that it numbers equal rows as they see them."""
    framed = {i: f for i, f in mine.items() if isinstance(f, Framed)}
    for i, f in mine.items():
        if framed and isinstance(f, Numbering) and f in _AS_PICKS:
            framed[i] = Framed(Picked(_AS_PICKS[f], ()), Frame())
    if framed:
        distinct = tuple(dict.fromkeys(framed.values()))
        width = len(schema(rel))
        place |= {WINDOW_BASE + i: width + distinct.index(f) for i, f in framed.items()}
        rel = TopK(rel, *window, None, None, framed=distinct)
    numbers = {i: f for i, f in mine.items() if i not in framed and isinstance(f, Numbering)}
    if numbers:
        kinds = tuple(dict.fromkeys(numbers.values()))
        width = len(schema(rel))
        place |= {WINDOW_BASE + i: width + kinds.index(f) for i, f in numbers.items()}
        rel = TopK(rel, *window, None, None, kinds)
    return rel


def _beside(rel: Rel, groups: Reduce) -> Rel:
    """The rows joined with their groups. ``rel`` begins with the columns that the keys of ``groups`` are over."""
    width = len(schema(rel))
    keys = [Column(width + i, e.type, e.nullable) for i, e in enumerate(groups.keys)]
    same = tuple(Call(NOT_DISTINCT, (e, k), BOOL, False) for e, k in zip(groups.keys, keys, strict=True))
    condition = And(same) if len(same) > 1 else same[0] if same else Literal(True, BOOL)
    return Join(JoinKind.INNER, rel, groups, condition)


def has_window(indexes: set[int]) -> bool:
    """Whether one of the columns is a placeholder for a window function."""
    return any(WINDOW_BASE <= i < FUNCTION_BASE for i in indexes)


def regrouped(call: WindowCall, rewrite: Callable[[Scalar], Scalar]) -> WindowCall:
    """The call with its expressions rewritten, from a query's rows to its groups."""
    function = call.function
    if isinstance(function, Aggregate):
        function = with_aggregate_scalars(function, tuple(rewrite(e) for e in aggregate_scalars(function)))
    elif isinstance(function, Framed):
        function = function.with_scalars(tuple(rewrite(e) for e in function.scalars))
    return replace(
        call,
        function=function,
        partition=tuple(rewrite(e) for e in call.partition),
        order=tuple(replace(k, expr=rewrite(k.expr)) for k in call.order),
    )
