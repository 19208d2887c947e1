"""MERGE: the target joined with the source, and for each row of that the number of its action and the new row.

The first WHEN whose condition holds decides. All actions' values are the arms of one CASE for each column, so that only
those of the row's own action are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ivm.errors import SqlError
from ivm.words import BOOL, INT4, TEXT
from planner.expr.scalar import And, Case, Coalesce, Column, Literal, Scalar
from planner.logical.nodes import Filter, Finishing, JoinKind, Project, Rel, schema
from planner.logical.traversal import has_subquery
from sql.bind import cte, volatile
from sql.bind.assignments import new_values
from sql.bind.bound_query import rel_columns
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.from_clause import FromItem, bind_merged
from sql.bind.inserted import (
    check_given,
    check_width,
    defaults_of,
    given_value,
    overridden,
    places_of,
    target_positions,
    without_defaults,
)  # fmt: skip
from sql.bind.joins import TRUE, join
from sql.bind.namespace import Namespace, Range, Visible, shift
from sql.bind.operators import negate, operator
from sql.bind.returning import check_steady, returning, target_rows
from sql.bind.row_security import present_checks, row_checks
from sql.bind.scope import MERGE_ACTION, NameScope
from sql.bind.target import Target
from sql.bind.view_targets import bind_target
from sql.statements.statements import Merge, MergePolicies
from sql.syntax.nodes import queries as nodes

_FALSE: Final = Literal(False, BOOL)
_EVENTS: Final = {nodes.MergeInsert: "insert", nodes.MergeUpdate: "update", nodes.MergeDelete: "delete"}


@dataclass(frozen=True, slots=True)
class _Joined:
    """Target and source side by side, each followed by a marker that is NULL where the row has no such side.

    ``width``: of the target's row; ``own``: of that with the layers' columns and the marker.
    """

    rel: Rel
    target: Namespace
    source: Namespace
    width: int
    own: int

    @property
    def both(self) -> Namespace:
        return Namespace((*self.target.visible, *self.source.visible), (*self.target.ranges, *self.source.ranges))


def merge(env: Environment, node: nodes.MergeStatement) -> Merge:
    """MERGE. Raises 42601, 42712, 42P01, and what is wrong with the target, the source, conditions and actions."""
    _check_reachable(node)
    if node.with_ is not None and node.with_.recursive:
        raise SqlError("42601", "WITH RECURSIVE is not supported for MERGE statement")
    if node.with_ is not None:
        env = cte.with_ctes(env, node.with_, None)
    events = [_EVENTS[type(w.action)] for w in node.whens if w.action is not None]
    target = bind_target(env, node.table, f"{events[0] if events else 'update'} merge")
    for event in events[1:] if target.layers else ():
        bind_target(env, node.table, f"{event} merge")
    if "delete" in events:
        target.need("d")
    rel, names, branches, width = target_rows(env, target, node.table, "r")
    source = bind_merged(env, names, node.source)
    _check_names(names, source[1], node)
    joined = _joined(env, node, (rel, names), source, width)
    decided = Project(joined.rel, (*rel_columns(joined.rel), _action(env, node, joined)))
    number = Column(len(schema(decided)) - 1, INT4, False)
    nothing = operator(env, "=", [number, Literal(0, INT4)], 0, "pg_catalog")
    chosen = Filter(decided, negate(nothing))
    changed = _changed_rows(env, target, node, joined, number)
    layout = rel_columns(chosen)
    project = (
        number, *layout[:width], *changed, *layout[width : joined.own - 1], *layout[joined.own : -2],
    )  # fmt: skip
    exprs, columns = returning(env, node.returning, _returned_names(joined))
    actions = tuple(_EVENTS[type(w.action)] if w.action is not None else "" for w in node.whens)
    planned, finishing = _placed(chosen, project, node)
    policies = _policies(env, target, reads=node.returning is not None)
    return Merge(target.table, planned, finishing, actions, width, branches, exprs, columns, target.layers, policies)


def _policies(env: Environment, target: Target, *, reads: bool) -> MergePolicies:
    table, use = target.table, target.base
    return MergePolicies(
        present_checks(env, table, use, "w", "target row"), present_checks(env, table, use, "d", "target row"),
        row_checks(env, table, use, "w", reads=True), row_checks(env, table, use, "a", reads=reads),
    )  # fmt: skip


def _check_reachable(node: nodes.MergeStatement) -> None:
    """Raises 42601 for a WHEN after one without a condition."""
    closed: set[str] = set()
    for when in node.whens:
        if when.match in closed:
            raise SqlError("42601", "unreachable WHEN clause specified after unconditional WHEN clause")
        if when.condition is None:
            closed.add(when.match)


def _check_names(target: Namespace, source: Namespace, node: nodes.MergeStatement) -> None:
    alias = target.ranges[0].alias
    if any(r.alias == alias for r in source.ranges):
        detail = "The name is used both as MERGE target table and data source."
        raise SqlError("42712", f'name "{alias}" specified more than once', detail)


def _joined(env: Environment, node: nodes.MergeStatement, target: FromItem, source: FromItem, width: int) -> _Joined:
    matches = {w.match for w in node.whens}
    kinds = {(False, False): JoinKind.INNER, (True, False): JoinKind.RIGHT, (False, True): JoinKind.LEFT}
    kind = kinds.get(("source" in matches, "target" in matches), JoinKind.FULL)
    left, right = (Project(rel, (*rel_columns(rel), TRUE)) for rel, _ in (target, source))
    own = len(schema(left))
    moved = shift(source[1], own, False)
    both = Namespace((*target[1].visible, *moved.visible), (*target[1].ranges, *moved.ranges))
    on = ExpressionBinder(env, NameScope(both, clause="JOIN conditions"), "JOIN conditions").condition(
        node.on, "JOIN/ON"
    )
    rel = join(kind, left, right, on)
    padded = (kind in (JoinKind.RIGHT, JoinKind.FULL), kind in (JoinKind.LEFT, JoinKind.FULL))
    return _Joined(rel, shift(target[1], 0, padded[0]), shift(source[1], own, padded[1]), width, own)


def _scope(joined: _Joined, match: str) -> NameScope:
    """What a WHEN's expressions may name."""
    match match:
        case "both":
            return NameScope(joined.both, clause="MERGE WHEN")
        case "source":
            return NameScope(joined.source, clause="MERGE WHEN", hidden=joined.target)
        case _:
            return NameScope(joined.target, clause="MERGE WHEN", hidden=joined.source)


def _action(env: Environment, node: nodes.MergeStatement, joined: _Joined) -> Scalar:
    """The number of the WHEN that decides for a row; 0 if none does or it does nothing."""
    columns = rel_columns(joined.rel)
    there = tuple(Coalesce((columns[i], _FALSE), BOOL) for i in (joined.own - 1, len(columns) - 1))
    absent = tuple(Case(((part, _FALSE),), Literal(True, BOOL), BOOL, False) for part in there)
    matches: dict[str, Scalar] = {"both": And(there), "source": absent[0], "target": absent[1]}
    arms: list[tuple[Scalar, Scalar]] = []
    for number, when in enumerate(node.whens, 1):
        met = matches[when.match]
        if when.condition is not None:
            binder = ExpressionBinder(env, _scope(joined, when.match), "MERGE WHEN")
            met = And((met, binder.condition(when.condition, "WHEN")))
        arms.append((met, Literal(number if when.action is not None else 0, INT4)))
    return Case(tuple(arms), Literal(0, INT4), INT4, False)


def _changed_rows(
    env: Environment, target: Target, node: nodes.MergeStatement, joined: _Joined, number: Column
) -> tuple[Scalar, ...]:
    """The new row, by action; NULLs for a deletion."""
    old = rel_columns(joined.rel)[: joined.width]
    arms: list[list[tuple[Scalar, Scalar]]] = [[] for _ in old]
    for n, when in enumerate(node.whens, 1):
        binder = ExpressionBinder(env, _scope(joined, when.match), "MERGE WHEN")
        chosen = operator(env, "=", [number, Literal(n, INT4)], 0, "pg_catalog")
        match when.action:
            case nodes.MergeUpdate():
                new = new_values(binder, target, when.action.assignments)
                for i, column in enumerate(old):
                    arms[i].append((chosen, new.get(i, column)))
            case nodes.MergeInsert():
                for i, expr in enumerate(_inserted(env, target, when.action, binder)):
                    arms[i].append((chosen, expr))
            case _:
                pass
    return tuple(
        Case(tuple(own), Literal(None, c.type), c.type) if own else Literal(None, c.type)
        for own, c in zip(arms, old, strict=True)
    )


def _inserted(
    env: Environment, target: Target, action: nodes.MergeInsert, binder: ExpressionBinder
) -> tuple[Scalar, ...]:
    """The row that WHEN NOT MATCHED adds."""
    columns = target.table.columns
    if action.values is None:
        target.need("a")
        return tuple(defaults_of(env, target, range(len(columns)), action.overriding).values())
    positions = target_positions(target, action.columns)
    extra = action.values[min(len(positions), len(action.values) - 1)].at
    positions = check_width(positions, len(action.values), action.columns, extra)
    target.need("a", positions)
    given = without_defaults(positions, [action.values])
    places = dict(zip(given, places_of(target, given), strict=True))
    exprs: dict[int, Scalar] = {}
    for i, node in zip(positions, action.values, strict=True):
        if i in places:
            column = columns[places[i]]
            check_given(column, action.overriding)
            if not overridden(column, action.overriding):
                exprs[places[i]] = given_value(binder, column, node)
    exprs |= defaults_of(env, target, [i for i in range(len(columns)) if i not in exprs], action.overriding)
    return tuple(exprs[i] for i in range(len(columns)))


def _returned_names(joined: _Joined) -> Namespace:
    """The names in RETURNING: those of the source, then the target's, over the layout of ``Merge.returning``."""
    own = shift(joined.target, 1, True)
    source = shift(joined.source, 0, True)  # the action's name comes before it, the marker no more
    action = Visible(MERGE_ACTION, Column(0, TEXT, False))
    ranges = (*own.ranges, *source.ranges, Range(MERGE_ACTION, (action,)))
    unpadded = tuple(replace(r, padded=False) if r.alias == own.ranges[0].alias else r for r in ranges)
    return Namespace((*source.visible, *own.visible), unpadded)


def _placed(rel: Rel, project: Sequence[Scalar], node: nodes.MergeStatement) -> tuple[Rel, Finishing]:
    """The plan and what is computed after it: all of it if there are volatile functions, but subqueries."""
    if not any(map(volatile.is_volatile, project)):
        return Project(rel, tuple(project)), Finishing()
    for expr in project:
        check_steady(expr, "MERGE", node.at)
    planned = [e for e in project if has_subquery(e)]
    base = len(schema(rel))
    places = {id(e): Column(base + i, e.type, e.nullable) for i, e in enumerate(planned)}
    late = tuple(places.get(id(e), e) for e in project)
    return Project(rel, (*rel_columns(rel), *planned)), Finishing(project=late)
