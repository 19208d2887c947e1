"""Window functions: row_number, rank and dense_rank, and what is reckoned from them; lag, lead and first_value;
aggregates of whole partitions. All others are refused.

An aggregate over (PARTITION BY keys) is the rows joined with their groups: a change costs the change of the group's
aggregate, and the rows of the partition where that is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, assert_never

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL, INT8, ColumnType
from planner.aggregates.table import AGGREGATES, COUNTS, aggregate_overloads
from planner.expr.functions.table import overloads
from planner.expr.scalar import Aggregate, And, Call, Column, Literal, Scalar, SortKey
from planner.logical.fallibility import rel_is_volatile
from planner.logical.join_keys import SAME
from planner.logical.levels import relevel
from planner.logical.nodes import Join, JoinKind, Numbering, Reduce, Rel, TopK, schema
from planner.logical.traversal import aggregate_scalars, with_aggregate_scalars
from sql.bind import neighbours, ordered_sets, shares
from sql.bind.coerce import resolve_unknown
from sql.bind.overloads import no_function
from sql.bind.scope import FUNCTION_BASE, WINDOW_BASE, Neighbour, Scope, WindowCall
from sql.syntax import nodes

if TYPE_CHECKING:
    from sql.bind.expression import Binder
    from sql.bind.routines import Entry

_NUMBERINGS: Final = frozenset(n.value for n in Numbering)
NAMES: Final = _NUMBERINGS | neighbours.NAMES | shares.NAMES
_REFUSED: Final = frozenset({"last_value", "nth_value"})
_READ_AGAIN: Final = "a window of rows that are not the same when they are read again"
_ARGUMENTS: Final = "a window function's arguments"
_KNOWN: Final = "Those that number rows are, lag, lead and first_value, and aggregates of whole partitions."


def window_function(b: Binder, node: nodes.Apply, name: str, entry: Entry | None = None) -> Scalar:
    """A window function: noted in its query, and a placeholder column for its result. ``entry``: the user's aggregate
    that it is. Raises 42P20, 42803, 0A000."""
    from sql.bind.expression import sort_key

    over = node.over
    assert over is not None
    is_aggregate = entry is not None or bool(aggregate_overloads(name))
    if b.inside_aggregate:
        message = "aggregate function calls cannot contain window function calls"
        raise SqlError("42803", message, position=node.at + 1)
    if b.scope.windows is None:
        message = f"window functions are not allowed in {b.scope.clause or b.clause}"
        if b.scope.clause == _ARGUMENTS:
            message = "window function calls cannot be nested"
        raise SqlError("42P20", message, position=node.at + 1)
    if not is_aggregate and name not in NAMES:
        raise _no_window_function(b, node, name)
    _check_call(b, node, name)
    if over.other or (over.order and is_aggregate):
        what = "an aggregate over an ordered window" if is_aggregate else "a window by name or with a frame"
        raise unsupported(what, "An aggregate of the whole partition is.", node.at + 1)
    noted, b.scope.windows = b.scope.windows, None
    clause, b.scope.clause = b.scope.clause, "window definitions"
    try:
        partition = tuple(resolve_unknown(b.env, b.bind(e), node.at) for e in over.partition)
        order = tuple(sort_key(resolve_unknown(b.env, b.bind(i.expr), i.at), i) for i in over.order)
        b.scope.clause = _ARGUMENTS
        if entry is None and name in shares.NAMES:
            return shares.share(b, node, name, partition, order, partial(_noted, noted))
        return _noted(noted, WindowCall(_function(b, node, name, entry), partition, order))
    finally:
        b.scope.windows, b.scope.clause = noted, clause


def _noted(calls: list[WindowCall], call: WindowCall) -> Column:
    """The column that stands for a call."""
    if call not in calls:
        calls.append(call)
    result = _result(call.function)
    return Column(WINDOW_BASE + calls.index(call), result.type, result.nullable)


def _function(b: Binder, node: nodes.Apply, name: str, entry: Entry | None) -> Numbering | Aggregate | Neighbour:
    if entry is None and name in _NUMBERINGS:
        return Numbering(name)
    if entry is None and name in neighbours.NAMES:
        return neighbours.bind(b, node, name)
    return _of_partition(b, node, name, entry)


def _result(function: Numbering | Aggregate | Neighbour) -> ColumnType:
    match function:
        case Numbering():
            return ColumnType(INT8, False)
        case Aggregate():
            return ColumnType(function.type, function.nullable)
        case Neighbour():
            return ColumnType(function.value.type)
        case _:
            assert_never(function)


def _no_window_function(b: Binder, node: nodes.Apply, name: str) -> SqlError:
    if name in ordered_sets.NAMES:
        message = f"OVER is not supported for ordered-set aggregate {name}"
        return SqlError("0A000", message, position=node.at + 1)
    if name in _REFUSED:
        return unsupported(f"{name}() as a window function", _KNOWN, node.at + 1)
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
    if message is not None:
        raise SqlError("0A000", message, position=node.at + 1)


def _of_partition(b: Binder, node: nodes.Apply, name: str, entry: Entry | None) -> Aggregate:
    from sql.bind.calls import called_aggregate

    made = called_aggregate(b, node, name, entry)
    return replace(made, nullable=AGGREGATES[made.function].family not in COUNTS)


def expressions(calls: Sequence[WindowCall]) -> list[Scalar]:
    """What windows are made of."""
    return [e for call in calls for e in (*call.partition, *(k.expr for k in call.order), *_inside(call))]


def _inside(call: WindowCall) -> tuple[Scalar, ...]:
    match call.function:
        case Aggregate() as aggregate:
            return aggregate_scalars(aggregate)
        case Neighbour(value, _, default):
            return value, default
        case _:
            return ()


def numbered(scope: Scope, rel: Rel) -> tuple[Rel, dict[int, int]]:
    """The query's rows with a column for each window function, and where it stands by its placeholder."""
    calls = scope.windows or []
    place: dict[int, int] = {}
    rows = rel
    ordered = [c for c in calls if not isinstance(c.function, Aggregate)]
    for window in dict.fromkeys((c.partition, c.order) for c in ordered):
        mine = {i: c.function for i, c in enumerate(calls) if c in ordered and (c.partition, c.order) == window}
        rel = _ordered(rel, rows, window, mine, place)
    aggregates = [(i, c, c.function) for i, c in enumerate(calls) if isinstance(c.function, Aggregate)]
    for partition in dict.fromkeys(c.partition for _, c, _ in aggregates):
        of = [(i, function) for i, c, function in aggregates if c.partition == partition]
        width = len(schema(rel)) + len(partition)
        place |= {WINDOW_BASE + i: width + n for n, (i, _) in enumerate(of)}
        rel = _beside(rel, Reduce(rows, partition, tuple(function for _, function in of)))
    return rel, place


def _ordered(
    rel: Rel, rows: Rel, window: tuple[tuple[Scalar, ...], tuple[SortKey, ...]],
    mine: dict[int, Numbering | Aggregate | Neighbour], place: dict[int, int],
) -> Rel:  # fmt: skip
    """``rel`` with columns for the functions of a window, by number; ``place`` learns where they stand."""
    numbers = [f for f in mine.values() if isinstance(f, Numbering)]
    found = {i: f for i, f in mine.items() if isinstance(f, Neighbour)}
    if any(f.offset is not None for f in found.values()) and Numbering.ROW_NUMBER not in numbers:
        numbers.append(Numbering.ROW_NUMBER)
    own = TopK(rows, *window, None, None, tuple(numbers))
    if found and rel_is_volatile(own):
        raise unsupported(_READ_AGAIN)
    width = len(schema(rel))
    place |= {WINDOW_BASE + i: width + numbers.index(f) for i, f in mine.items() if isinstance(f, Numbering)}
    if numbers:
        rel = replace(own, input=rel)
    for offset in dict.fromkeys(f.offset for f in found.values()):
        wanted = {i: f for i, f in found.items() if f.offset == offset}
        place |= {WINDOW_BASE + i: len(schema(rel)) + n for n, i in enumerate(wanted)}
        if offset is None:
            rel = neighbours.with_first(rel, rows, *window, tuple(wanted.values()))
        else:
            at = width + numbers.index(Numbering.ROW_NUMBER)
            rel = neighbours.with_number(rel, own, at, tuple(wanted.values()))
    return rel


def _beside(rel: Rel, groups: Reduce) -> Rel:
    """Each row with its group; the rows begin with those that the groups are of."""
    if rel_is_volatile(groups):
        raise unsupported(_READ_AGAIN)
    width = len(schema(rel))
    keys = [Column(width + i, e.type, e.nullable) for i, e in enumerate(groups.keys)]
    same = tuple(Call(SAME, (e, k), BOOL, False) for e, k in zip(groups.keys, keys, strict=True))
    condition = And(same) if len(same) > 1 else same[0] if same else Literal(True, BOOL)
    return Join(JoinKind.INNER, rel, groups, condition)


def placed(expr: Scalar, place: dict[int, int]) -> Scalar:
    """The expression over the numbered rows."""
    return relevel(expr, lambda level, index: (level, place.get(index, index) if level == 0 else index))


def has_window(indexes: set[int]) -> bool:
    """Whether one of the columns stands for a window function."""
    return any(WINDOW_BASE <= i < FUNCTION_BASE for i in indexes)


def regrouped(call: WindowCall, rewrite: Callable[[Scalar], Scalar]) -> WindowCall:
    """The call over a query's groups."""
    function = call.function
    if isinstance(function, Aggregate):
        function = with_aggregate_scalars(function, tuple(rewrite(e) for e in aggregate_scalars(function)))
    elif isinstance(function, Neighbour):
        function = replace(function, value=rewrite(function.value), default=rewrite(function.default))
    return replace(
        call,
        function=function,
        partition=tuple(rewrite(e) for e in call.partition),
        order=tuple(replace(k, expr=rewrite(k.expr)) for k in call.order),
    )
