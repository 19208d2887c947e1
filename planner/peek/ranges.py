"""Which rows of a stored relation a filter asks for, as a range of an arrangement.

The rows of an arrangement are in the order of their words, and so of the columns that come first in its layout, as far
as the order of words is that of values. Conditions that fix the first of them to constants, and then limit the next
one, ask for a part that is found by binary search. The filter is applied to its rows as to any others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_FLOOR
from functools import lru_cache
from typing import Final

from ivm.graph import Gather, NodeId
from ivm.rows import Words
from ivm.trace.ranges import EVERYTHING, Bound, Range
from ivm.trace.trace import Version
from ivm.words import Kind, Schema, SqlType, Storage
from planner import gathers
from planner.expr.comparison import Comparison
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluate
from planner.expr.functions.library import comparison_of, is_volatile
from planner.expr.ordering import decode_words
from planner.expr.parts import walk
from planner.expr.scalar import Call, Column, Scalar
from planner.logical.join_keys import comparable, is_constant
from planner.logical.traversal import conjuncts
from planner.memo import by_identity
from planner.peek.snapshot import Snapshot
from planner.physical.layouts import table_layout
from planner.physical.nodes import Map, Plan, Table
from planner.physical.row_programs import MapFilter

_INTEGERS: Final = frozenset({Kind.INT2, Kind.INT4, Kind.INT8})
_ORDERED: Final = _INTEGERS | {
    Kind.BOOL, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.OID, Kind.ENUM, Kind.NUMERIC,
}  # fmt: skip
_FEW: Final = 64
"""Updates of which a part is not worth a search."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What a filter demands of a column: a comparison with a constant, which a NULL does not meet."""

    column: int
    comparison: Comparison
    constant: tuple[Scalar]


@dataclass(frozen=True, slots=True)
class Access:
    """Rows of an arrangement by the columns ``key``: all, or (``limited``) those in a range of it.

    ``restore``: to the relation's layout; ``order``: the columns by which they are in order, behind ``fixed`` that are
    the same in all of them; ``strict``: those of which it has no NULLs, and ``absent`` those of them that may be NULL
    in rows that are asked for.
    """

    key: tuple[int, ...]
    range: Range
    restore: Gather
    order: tuple[int, ...]
    strict: frozenset[int]
    absent: frozenset[int]
    limited: bool
    fixed: int

    def restored(self, rows: Words) -> Words:
        """Arranged rows in the relation's layout."""
        return gathers.apply(self.restore, rows)[0]


def in_order(type_: SqlType) -> bool:
    """Whether values are in the order of their words."""
    return type_.kind in _ORDERED and type_.storage is Storage.DIRECT


@by_identity
def filters(plan: Plan) -> dict[NodeId, tuple[Table, tuple[Condition, ...]]]:
    """The conditions of each program that filters the rows of a stored relation, if it has any."""
    found = {}
    for number, node in enumerate(plan.nodes):
        if isinstance(node, Map) and isinstance(node.program, MapFilter) and node.program.predicates:
            table = plan.nodes[node.input]
            if isinstance(table, Table) and (asked := conditions(table.schema, node.program.predicates)):
                found[NodeId(number)] = table, asked
    return found


def conditions(schema: Schema, predicates: Iterable[Scalar]) -> tuple[Condition, ...]:
    """The conditions on single columns that rows must meet, among others."""
    parts = (part for predicate in predicates for part in conjuncts(predicate))
    return tuple(found for part in parts if (found := _condition(schema, part)) is not None)


def _condition(schema: Schema, predicate: Scalar) -> Condition | None:
    compared = _compared(predicate)
    if compared is None:
        return None
    column, comparison, value = compared
    type_ = schema[column.index].type
    if any(is_volatile(part) for part in walk(value)):
        return None
    if comparison is not Comparison.EQUAL or type_.kind is Kind.NUMERIC:
        same = type_.kind is value.type.kind or (type_.kind in _INTEGERS and value.type.kind in _INTEGERS)
        if not in_order(type_) or not same or type_.enum is not value.type.enum:
            return None
    return Condition(column.index, comparison, (value,))


def _compared(predicate: Scalar) -> tuple[Column, Comparison, Scalar] | None:
    """A column and what it is compared with, in words that are equal where the values are if that is the question."""
    comparison = comparison_of(predicate)
    if not isinstance(predicate, Call) or comparison is None or comparison is Comparison.NOT_EQUAL:
        return None
    sides = list(predicate.args)
    if comparison is Comparison.EQUAL:
        numbers = all(s.type.kind is Kind.NUMERIC for s in sides)
        equality = None if numbers else comparable(predicate)
        if equality is not None:
            sides = list(equality[:2])
        elif not numbers:
            return None
    for (left, right), how in ((sides, comparison), (sides[::-1], comparison.commutator)):
        if isinstance(left, Column) and is_constant(right):
            return left, how, right
    return None


def served(schema: Schema, asked: tuple[Condition, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """The columns of an arrangement by ``key`` that conditions limit its order by; (): it does not serve them."""
    arrangement = _arrangements(schema)(key)
    order, strict = arrangement.order, arrangement.strict
    limited = {condition.column for condition in asked}
    fixed = {condition.column for condition in asked if condition.comparison is Comparison.EQUAL}
    if not strict <= limited:
        return ()
    free = next((k for k, column in enumerate(order) if column not in fixed), len(order))
    last = order[free : free + 1]
    return (*order[:free], *(column for column in last if column in limited and in_order(schema[column].type)))


def narrowest(table: Table, asked: tuple[Condition, ...], snapshot: Snapshot, context: Context) -> Access | None:
    """The arrangement's range with the fewest updates; None: no condition limits any."""
    found = [access for access in accesses(table, asked, snapshot, context) if access.limited]
    return min(found, key=lambda access: access.range.left, default=None)


def accesses(
    table: Table, asked: tuple[Condition, ...], snapshot: Snapshot, context: Context,
    present: frozenset[int] = frozenset(),
) -> list[Access]:  # fmt: skip
    """How the rows that conditions ask for may be read: by each arrangement that is in order. One that lacks NULLs of a
    column that no condition limits, and that is not among ``present``, lacks some of them."""
    limits = _limits(table.schema, asked, context) or {}
    found = (_access(table, key, limits, snapshot, present) for key in snapshot.keys(table.relation))
    return [access for access in found if access is not None]


def narrowed(table: Table, asked: tuple[Condition, ...], snapshot: Snapshot, context: Context) -> Access | None:
    """The same, if it is much less than the relation."""
    found = narrowest(table, asked, snapshot, context)
    whole = snapshot.version(table.relation)
    return found if found is not None and whole is not None and 2 * found.range.left <= whole.count + _FEW else None


@dataclass(frozen=True, slots=True)
class _Limits:
    """What a column's word must be: from ``low`` to ``high``, where these are given."""

    low: int | None
    high: int | None


def _limits(schema: Schema, asked: tuple[Condition, ...], context: Context) -> dict[int, _Limits] | None:
    """By column. None: a constant cannot be computed, which the filter will report if it has a row."""
    found: dict[int, _Limits] = {}
    for condition in asked:
        limits = _limits_of(schema[condition.column].type, condition, context)
        if limits is None:
            return None
        known = found.get(condition.column, _Limits(None, None))
        low = max((b for b in (known.low, limits.low) if b is not None), default=None)
        high = min((b for b in (known.high, limits.high) if b is not None), default=None)
        found[condition.column] = _Limits(low, high)
    return found


_NOTHING: Final = _Limits(1, 0)
_WORDS: Final = range(-(2**63), 2**63)


def _limits_of(type_: SqlType, condition: Condition, context: Context) -> _Limits | None:
    vectors, failures = evaluate(condition.constant, (), 1, context)
    if failures is not None:
        return None
    (vector,), comparison = vectors, condition.comparison
    if vector.nulls is not None and vector.nulls[0]:
        return _NOTHING
    word, exact = int(vector.words[0]), True
    if type_.kind is Kind.NUMERIC:
        value = decode_words(condition.constant[0].type, vector.words, context.dictionary)[0]
        if not value.is_finite():
            return None
        scaled = value.scaleb(type_.scale or 0)
        least = scaled.to_integral_value(ROUND_FLOOR)
        word, exact = int(least), least == scaled
    limits = _compared_with(comparison, word, exact)
    known = (b for b in (limits.low, limits.high) if b is not None)
    return limits if all(b in _WORDS for b in known) else None


def _compared_with(comparison: Comparison, word: int, exact: bool) -> _Limits:
    """``word``: the constant's, or if that is not ``exact``, of the next lesser value."""
    match comparison:
        case Comparison.EQUAL:
            return _Limits(word, word) if exact else _NOTHING
        case Comparison.LESS:
            return _Limits(None, word - exact)
        case Comparison.NOT_GREATER:
            return _Limits(None, word)
        case Comparison.GREATER:
            return _Limits(word + 1, None)
        case _:
            return _Limits(word + (not exact), None)


def _access(
    table: Table, key: tuple[int, ...], limits: dict[int, _Limits], snapshot: Snapshot, present: frozenset[int]
) -> Access | None:
    """None: the snapshot has the arrangement not, or not in order."""
    version = snapshot.arrangement(table.relation, key) if key else snapshot.version(table.relation)
    layers = None if version is None else version.layers()
    if layers is None:
        return None
    arrangement = _arrangements(table.schema)(key)
    order, strict = arrangement.order, arrangement.strict
    absent = strict - limits.keys() - present
    if absent and _has_all(version, snapshot.version(table.relation), snapshot.at):
        absent = frozenset()
    prefix, low, high = _bounds(table.schema, order, {} if absent else limits)
    limited = low is not EVERYTHING or high is not EVERYTHING
    span = Range(layers, snapshot.at, low, high)
    return Access(key, span, arrangement.restore, order, strict, absent, limited, prefix)


def _has_all(version: Version | None, whole: Version | None, at: int) -> bool:
    """Whether an arrangement without NULLs has all rows: then no row has one."""
    if version is None or whole is None:
        return False
    count = version.total(at)
    return count is not None and count == whole.total(at)


def _bounds(schema: Schema, order: tuple[int, ...], limits: dict[int, _Limits]) -> tuple[int, Bound, Bound]:
    """How many columns have one value, and the bounds of the range."""
    prefix: list[int] = []
    low = high = EVERYTHING
    for column in order:
        limit = limits.get(column)
        if limit is None:
            break
        if limit.low is not None and limit.low == limit.high:
            prefix.append(limit.low)
            low = high = Bound(tuple(prefix), included=True)
            continue
        if in_order(schema[column].type):
            low = low if limit.low is None else Bound((*prefix, limit.low), included=True)
            high = high if limit.high is None else Bound((*prefix, limit.high), included=True)
        break
    return len(prefix), low, high


@dataclass(frozen=True, slots=True)
class _Arrangement:
    """``order``: the columns of an arrangement's rows as they come in its layout; ``strict``: those whose NULLs it has
    not; ``restore``: to the relation's layout."""

    order: tuple[int, ...]
    strict: frozenset[int]
    restore: Gather


@by_identity
def _arrangements(schema: Schema) -> Callable[[tuple[int, ...]], _Arrangement]:
    """Those of a relation, by their keys. Its columns may be more than a thousand: they are not compared."""

    def of(key: tuple[int, ...]) -> _Arrangement:
        layout = table_layout(schema, key)
        columns = {cell.word: column for column, cell in reversed(list(enumerate(layout.at)))}
        dropped = frozenset(layout.gather.drop_if)
        strict = frozenset(k for k in key if (cell := gathers.cells(schema)[k].null) is not None and cell in dropped)
        return _Arrangement(tuple(columns[word] for word in sorted(columns)), strict, layout.restore(schema))

    return lru_cache(256)(of)


def rows_of(access: Access) -> tuple[Words, Words]:
    """All rows of an access, in the relation's layout, and their diffs."""
    rows, diffs = access.range.rest()
    return access.restored(rows), diffs
