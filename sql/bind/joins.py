"""Joins in FROM: the plan of a join, and the namespace that USING and NATURAL make."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL
from planner.expr.scalar import And, Coalesce, Column, Literal, Scalar
from planner.logical.levels import relevel, relevel_rel, unlift
from planner.logical.nodes import Filter, Join, JoinKind, Rel, TableFunction, Values, schema
from sql.bind.asof import asof
from sql.bind.bound_query import UNIT
from sql.bind.coerce import common_type
from sql.bind.environment import Environment
from sql.bind.namespace import Namespace, Visible, shift
from sql.bind.operators import operator
from sql.bind.proctime import locked
from sql.bind.walk import has_subquery, rel_references

TRUE: Final = Literal(True, BOOL)


def check_aliases(left: Namespace, right: Namespace, at: int) -> None:
    """Raises 42712 where both sides have a table of one name."""
    taken = {(r.alias, r.schema_name if r.relation is not None else None) for r in left.ranges}
    for range_ in right.ranges:
        if (range_.alias, range_.schema_name if range_.relation is not None else None) in taken:
            raise SqlError("42712", f'table name "{range_.alias}" specified more than once', position=at + 1)


def join(kind: JoinKind, left: Rel, right: Rel, on: Scalar) -> Rel:
    """The join. ``right`` was bound one level below ``left``: if it refers to ``left``, the join is lateral."""
    used = rel_references(right)
    if any(level == 0 for level, _ in used):
        if kind is JoinKind.LEFT and has_subquery(on):
            # the plan of a lateral join has no subquery in its condition: the condition filters the right side
            width = len(schema(left))
            met = relevel(on, lambda level, i: (0, i - width) if level == 0 and i >= width else (level + 1, i))
            return Join(kind, left, Filter(right, met), TRUE, True)
        function = _function_over(left, right) if kind is JoinKind.INNER else None
        if function is not None:
            return function if on == TRUE else Filter(function, on)
        return Join(kind, left, right, on, True)
    if used:
        right = relevel_rel(right, lambda level, index: (level - 1, index), 1)
    if isinstance(left, Values) and not left.schema and kind is JoinKind.INNER and on == TRUE:
        return right
    return Join(kind, left, right, on)


def _function_over(left: Rel, right: Rel) -> Rel | None:
    """A lateral call of a table function as a TableFunction over the left side; None for any other right side."""
    if not isinstance(right, TableFunction) or right.input != UNIT or any(has_subquery(a) for a in right.args):
        return None
    return replace(right, input=left, args=tuple(unlift(a) for a in right.args))


def as_of_join(word: str, left: Rel, right: Rel, on: Scalar, kind: JoinKind, at: int) -> Rel:
    """An ASOF JOIN (``word`` is "asof") or a join FOR SYSTEM_TIME AS OF PROCTIME()."""
    if rel_references(right):
        right = relevel_rel(right, lambda level, index: (level - 1, index), 1)
    return (asof if word == "asof" else locked)(left, right, on, kind is JoinKind.LEFT, at)


def _side(namespace: Namespace, name: str, side: str, at: int) -> Visible:
    """A column of USING in one side. Raises 42703, 42702."""
    found = [v for v in namespace.visible if v.name == name]
    if not found:
        message = f'column "{name}" specified in USING clause does not exist in {side} table'
        raise SqlError("42703", message, position=at + 1)
    if len(found) > 1:
        message = f'common column name "{name}" appears more than once in {side} table'
        raise SqlError("42702", message, position=at + 1)
    return found[0]


def using_condition(
    env: Environment, using: tuple[str, ...], left: Namespace, right: Namespace, kind: JoinKind, last: str, at: int
) -> tuple[Scalar, tuple[Visible, ...]]:
    """The condition of USING and the merged columns. ``last``: the last column's operator, >= in an ASOF JOIN. Raises
    42701, 42702, 42703, 42804, 42883."""
    if len(set(using)) != len(using):
        name = next(n for n in using if using.count(n) > 1)
        message = f'column name "{name}" appears more than once in USING clause'
        raise SqlError("42701", message, position=at + 1)
    conditions = []
    merged = []
    for name in using:
        a, b = _side(left, name, "left", at), _side(right, name, "right", at)
        a.note()
        b.note()
        sign = last if name == using[-1] else "="
        conditions.append(operator(env, sign, [a.expr, b.expr], at))
        merged.append(_merged(name, a, b, kind, at))
    return conditions[0] if len(conditions) == 1 else And(tuple(conditions)), tuple(merged)


def _merged(name: str, a: Visible, b: Visible, kind: JoinKind, at: int) -> Visible:
    """The column that two columns of USING become. Raises 42804, 0A000."""
    if a.expr.type != b.expr.type:
        common_type([a.expr.type, b.expr.type], "JOIN/USING", [at, at])
    if kind is JoinKind.RIGHT:
        return replace(b, name=name)
    if kind is not JoinKind.FULL:
        return replace(a, name=name)
    if a.expr.type != b.expr.type:
        raise unsupported("FULL JOIN USING columns of different types", position=at + 1)
    return Visible(name, Coalesce((_nullable(a.expr), _nullable(b.expr)), a.expr.type))


def merged_sides(
    using: tuple[str, ...], left: Namespace, right: Namespace, kind: JoinKind, at: int
) -> dict[str, str]:  # fmt: skip
    """For columns of USING that differ in type: the side whose column is the merged one, "" where that is a
    cast (buildMergedJoinVar)."""
    found = {}
    for name in using:
        a, b = _side(left, name, "left", at).expr.type, _side(right, name, "right", at).expr.type
        if a != b:
            common = common_type([a, b], "JOIN/USING", [at, at])
            sides = {"left": a} if kind is JoinKind.LEFT else {"right": b} if kind is JoinKind.RIGHT else {}
            sides = sides or {"left": a, "right": b}
            found[name] = next((side for side, type_ in sides.items() if type_ == common), "")
    return found


def _nullable(expr: Scalar) -> Scalar:
    return Column(expr.index, expr.type, True) if isinstance(expr, Column) else expr


def joined_names(
    left: Namespace, right: Namespace, using: tuple[str, ...], merged: tuple[Visible, ...], kind: JoinKind
) -> Namespace:
    """The namespace of a join: merged columns first, and nullable what the join may pad."""
    left = shift(left, 0, kind in (JoinKind.RIGHT, JoinKind.FULL))
    right = shift(right, 0, kind in (JoinKind.LEFT, JoinKind.FULL))
    rest = (v for v in (*left.visible, *right.visible) if v.name not in using)
    return Namespace((*merged, *rest), (*left.ranges, *right.ranges))
