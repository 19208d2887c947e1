"""Windows by name, and frames (parse_clause.c's transformWindowDefinitions)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import FLOAT8, INT8, INTERVAL, NUMERIC, Kind, SqlType
from planner.expr.scalar import Scalar, SortKey
from planner.logical.frames import CURRENT, FOLLOWING_ALL, PRECEDING_ALL, Bound, Exclusion, Frame, FrameMode
from sql.bind.coerce import cast, castable, type_name
from sql.bind.environment import Binder
from sql.bind.walk import has_subquery, references
from sql.syntax.nodes import queries as nodes

_EXCLUSIONS: Final = {
    "no": Exclusion.NO_OTHERS, "current": Exclusion.CURRENT_ROW, "group": Exclusion.GROUP, "ties": Exclusion.TIES,
}  # fmt: skip
_MOMENTS: Final = (Kind.DATE, Kind.TIME, Kind.TIMETZ, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)
_OFFSETS: Final[dict[Kind, SqlType]] = {
    Kind.INT2: INT8, Kind.INT4: INT8, Kind.INT8: INT8, Kind.FLOAT4: FLOAT8, Kind.FLOAT8: FLOAT8, Kind.NUMERIC: NUMERIC,
    **dict.fromkeys(_MOMENTS, INTERVAL),
}  # fmt: skip
"""The type of RANGE's offset for each type of the order (PostgreSQL's in_range functions)."""


def named(windows: tuple[tuple[str, nodes.Over], ...]) -> dict[str, nodes.Over]:
    """The windows of WINDOW, each complete. Raises 42P20, 42704."""
    found: dict[str, nodes.Over] = {}
    for name, over in windows:
        if name in found:
            raise SqlError("42P20", f'window "{name}" is already defined', position=over.at + 1)
        found[name] = complete(over, found)
    return found


def complete(over: nodes.Over, windows: Mapping[str, nodes.Over]) -> nodes.Over:
    """A window with what it takes from the one that it names. Raises 42P20, 42704."""
    if over.name is None:
        return over
    base = windows.get(over.name)
    at = over.at + 1
    if base is None:
        raise SqlError("42704", f'window "{over.name}" does not exist', position=at)
    if over.bare:
        return base
    if over.partition:
        raise SqlError("42P20", f'cannot override PARTITION BY clause of window "{over.name}"', position=at)
    if over.order and base.order:
        raise SqlError("42P20", f'cannot override ORDER BY clause of window "{over.name}"', position=at)
    if base.frame is not None:
        alone = not over.order and over.frame is None
        hint = "Omit the parentheses in this OVER clause." if alone else None
        raise SqlError(
            "42P20", f'cannot copy window "{over.name}" because it has a frame clause', hint=hint, position=at
        )
    return replace(over, partition=base.partition, order=over.order or base.order, name=None)


def bind_frame(b: Binder, over: nodes.Over, order: tuple[SortKey, ...]) -> Frame:
    """The frame of a complete window. Raises 42P20, 42P10, 42804, 0A000."""
    clause = over.frame
    if clause is None:
        return Frame()
    mode = FrameMode(clause.mode)
    if mode is FrameMode.GROUPS and not order:
        raise SqlError("42P20", "GROUPS mode requires an ORDER BY clause", position=over.at + 1)
    offsets = any(bound.offset is not None for bound in (clause.start, clause.end))
    if mode is FrameMode.RANGE and offsets and len(order) != 1:
        message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"
        raise SqlError("42P20", message, position=over.at + 1)
    start, end = (_bound(b, mode, bound, order) for bound in (clause.start, clause.end))
    return Frame(mode, start, end, _EXCLUSIONS[clause.exclude])


def _bound(b: Binder, mode: FrameMode, bound: nodes.FrameBound, order: tuple[SortKey, ...]) -> Bound:
    if bound.unbounded:
        return FOLLOWING_ALL if bound.following else PRECEDING_ALL
    if bound.offset is None:
        return CURRENT
    what, at = mode.value.upper(), bound.offset.at
    saved = b.clause, b.scope.clause, b.scope.aggregates
    b.clause, b.scope.clause, b.scope.aggregates = f"window {what}", "window definitions", None
    expr = b.bind(bound.offset)
    b.clause, b.scope.clause, b.scope.aggregates = saved
    if has_subquery(expr):
        raise unsupported(f"a subquery in the offset of {what}", "Write the number itself.", at + 1)
    if any(level == 0 for level, _ in references(expr)):
        raise SqlError("42P10", f"argument of {what} must not contain variables", position=at + 1)
    if mode is FrameMode.RANGE:
        return Bound(bound.following, False, _distance(b, expr, order[0].expr.type, at))
    if expr.type.kind is not Kind.UNKNOWN and not castable(expr.type, INT8, "assignment"):
        message = f"argument of {what} must be type bigint, not type {type_name(expr.type)}"
        raise SqlError("42804", message, position=at + 1)
    return Bound(bound.following, False, cast(b.env, expr, INT8, "assignment", at))


def _distance(b: Binder, expr: Scalar, column: SqlType, at: int) -> Scalar:
    """RANGE's offset, as the type that is added to the order's values."""
    wanted = _OFFSETS.get(column.kind)
    refused = "RANGE with offset PRECEDING/FOLLOWING is not supported for column type " + type_name(column)
    if wanted is None:
        raise SqlError("0A000", refused, position=at + 1)
    if expr.type.kind is not Kind.UNKNOWN and not castable(expr.type, wanted, "implicit"):
        message = f"{refused} and offset type {type_name(expr.type)}"
        raise SqlError("0A000", message, hint="Cast the offset value to an appropriate type.", position=at + 1)
    return cast(b.env, expr, wanted, "implicit", at)
