"""SELECT: FROM, WHERE, grouping, the select list, DISTINCT and ORDER BY, put together in Postgres's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL, INT8
from planner.expr.scalar import Call, Coalesce, Column, Literal, Scalar, SortKey
from planner.logical.levels import lift, relevel
from planner.logical.nodes import Distinct, Filter, Join, JoinKind, Project, Rel, TableFunction, TopK, Values, schema
from sql.bind import query as queries
from sql.bind import windows
from sql.bind.coerce import resolve_unknown
from sql.bind.environment import Environment
from sql.bind.expression import Binder, sort_key
from sql.bind.from_clause import bind_from, reads_working_table
from sql.bind.grouping import Grouping
from sql.bind.names import column_name
from sql.bind.routines import lateral
from sql.bind.scope import AGGREGATE_BASE, FUNCTION_BASE, Scope, SetReturning, Visible, find_range_columns
from sql.bind.walk import references
from sql.statements.queries import OutputColumn
from sql.syntax import nodes

UNIT = Values(((),), ())
"""One row without columns: the input of a SELECT without FROM."""


@dataclass(slots=True)
class TargetExpr:
    """A column of the select list, or a hidden one after them that ORDER BY needs."""

    name: str
    expr: Scalar
    table: int = 0
    attribute: int = 0


def bind_select(
    env: Environment, node: nodes.Select, order: Sequence[nodes.OrderItem], outer: Scope | None
) -> queries.Bound:
    """A SELECT with the ORDER BY around it, which may use the columns of FROM."""
    rel, namespace = bind_from(env, node.from_, outer)
    scope = Scope(namespace, outer)
    if node.where is not None:
        scope.clause = "WHERE"
        rel = Filter(rel, Binder(env, scope, "WHERE").condition(node.where, "WHERE"))
    scope.grouped = bool(node.group)
    scope.aggregates, scope.functions, scope.windows, scope.clause = [], [], [], "SELECT"
    targets = bind_targets(env, scope, node.targets)
    width = len(targets)
    keys = [_group_key(env, scope, targets, item) for item in node.group or ()]
    having = None
    if node.having is not None:
        having = _without_functions(env, scope, "HAVING").condition(node.having, "HAVING")
    distinct_on = [_output(env, scope, targets, e, "SELECT DISTINCT ON") for e in node.distinct or ()]
    order_indices = [_order_item(env, scope, targets, item) for item in order]
    grouped = node.group is not None or bool(scope.aggregates) or node.having is not None
    if grouped:
        if scope.aggregates and reads_working_table(env, node.from_):
            message = "aggregate functions are not allowed in a recursive query's recursive term"
            raise SqlError("42P19", message, position=node.at + 1)
        rel = _group(scope, rel, targets, keys, having)
    rel = _windows(scope, rel, targets)
    rel = _set_returning(scope, rel, targets)
    rel = Project(rel, tuple(t.expr for t in targets))
    columns = tuple(OutputColumn(t.name, t.expr.type, t.table, t.attribute) for t in targets[:width])
    bound = queries.Bound(rel, columns, _sort_keys(rel, order, order_indices))
    return _distinct(env, node, bound, distinct_on, (order, order_indices))


def bind_targets(env: Environment, scope: Scope, targets: Sequence[nodes.Target]) -> list[TargetExpr]:
    """The select list with its stars expanded."""
    binder = Binder(env, scope, "SELECT")
    result: list[TargetExpr] = []
    for target in targets:
        if isinstance(target.expr, nodes.Star):
            result += [TargetExpr(v.name, v.expr, v.table, v.attribute) for v in _star(scope, target.expr)]
            continue
        expr = binder.bind(target.expr)
        table, attribute = _origin(scope, expr)
        result.append(TargetExpr(target.alias or column_name(env, target.expr), expr, table, attribute))
    return result


def _origin(scope: Scope, expr: Scalar) -> tuple[int, int]:
    if isinstance(expr, Column):
        for visible in scope.namespace.visible:
            if visible.expr == expr:
                return visible.table, visible.attribute
    return 0, 0


def _star(scope: Scope, star: nodes.Star) -> tuple[Visible, ...]:
    if star.qualifier:
        return find_range_columns(scope, star)
    if not scope.namespace.ranges and not scope.namespace.visible:
        raise SqlError("42601", "SELECT * with no tables specified is not valid", position=star.at + 1)
    for visible in scope.namespace.visible:
        for _, index in references(visible.expr):
            scope.seen.setdefault(index, (star.at, False))
    return scope.namespace.visible


def ordinal(expr: nodes.Expr, count: int, clause: str) -> int | None:
    """The index that a bare integer in ORDER BY or GROUP BY means. Raises 42P10, 42601."""
    if isinstance(expr, nodes.Number):
        if not expr.text.lstrip("-").isdigit():
            raise SqlError("42601", f"non-integer constant in {clause}", position=expr.at + 1)
        index = int(expr.text)
        if not 1 <= index <= count:
            raise SqlError("42P10", f"{clause} position {index} is not in select list", position=expr.at + 1)
        return index - 1
    if isinstance(expr, nodes.String | nodes.Null | nodes.Boolean):
        raise SqlError("42601", f"non-integer constant in {clause}", position=expr.at + 1)
    return None


def _without_functions(env: Environment, scope: Scope, clause: str) -> Binder:
    scope.functions, scope.windows, scope.clause = None, None, clause
    return Binder(env, scope, clause)


def _group_key(env: Environment, scope: Scope, targets: list[TargetExpr], node: nodes.Expr) -> Scalar:
    """GROUP BY takes a name for a column of FROM first, for an output column second."""
    index = ordinal(node, len(targets), "GROUP BY")
    if index is None and isinstance(node, nodes.Name) and len(node.parts) == 1:
        name = node.parts[0]
        if not any(v.name == name for v in scope.namespace.visible):
            index = _by_name(targets, name, "GROUP BY", node.at)
    if index is None:
        saved = scope.aggregates, scope.functions, scope.windows
        scope.aggregates, scope.functions, scope.windows, scope.clause = None, None, None, "GROUP BY"
        expr = Binder(env, scope, "GROUP BY").typed(node)
        scope.aggregates, scope.functions, scope.windows = saved
        return expr
    target = targets[index]
    target.expr = resolve_unknown(env, target.expr, node.at)
    used = {i for level, i in references(target.expr) if level == 0}
    if any(i >= AGGREGATE_BASE for i in used):
        raise SqlError("42803", "aggregate functions are not allowed in GROUP BY", position=node.at + 1)
    if windows.has_window(used):
        raise SqlError("42P20", "window functions are not allowed in GROUP BY", position=node.at + 1)
    if any(i >= FUNCTION_BASE for i in used):
        raise unsupported("GROUP BY a set-returning function", position=node.at + 1)
    return target.expr


def _by_name(targets: Sequence[TargetExpr], name: str, clause: str, at: int) -> int | None:
    found = [i for i, t in enumerate(targets) if t.name == name]
    if not found:
        return None
    if any(targets[i].expr != targets[found[0]].expr for i in found):
        raise SqlError("42702", f'{clause} "{name}" is ambiguous', position=at + 1)
    return found[0]


def _output(env: Environment, scope: Scope, targets: list[TargetExpr], node: nodes.Expr, clause: str) -> int:
    """The index of an ORDER BY or DISTINCT ON expression among the targets; a new hidden one if need be."""
    named = "ORDER BY" if clause == "ORDER BY" else "SELECT DISTINCT ON"
    index = ordinal(node, len(targets), named)
    if index is None and isinstance(node, nodes.Name) and len(node.parts) == 1:
        index = _by_name(targets, node.parts[0], named, node.at)
    if index is not None:
        targets[index].expr = resolve_unknown(env, targets[index].expr, node.at)
        return index
    expr = Binder(env, scope, clause).typed(node)
    for i, target in enumerate(targets):
        if target.expr == expr:
            return i
    targets.append(TargetExpr("", expr))
    return len(targets) - 1


def _order_item(env: Environment, scope: Scope, targets: list[TargetExpr], item: nodes.OrderItem) -> int:
    scope.clause = "ORDER BY"
    if scope.functions is None:
        scope.functions = []
    if scope.windows is None:
        scope.windows = []
    return _output(env, scope, targets, item.expr, "ORDER BY")


def _sort_keys(rel: Project, order: Sequence[nodes.OrderItem], indices: Sequence[int]) -> tuple[SortKey, ...]:
    keys = []
    for item, index in zip(order, indices, strict=True):
        expr = rel.exprs[index]
        keys.append(sort_key(Column(index, expr.type, expr.nullable), item))
    return tuple(keys)


def _group(scope: Scope, rel: Rel, targets: list[TargetExpr], keys: list[Scalar], having: Scalar | None) -> Rel:
    unique: list[Scalar] = []
    for key in keys:
        if key not in unique:
            unique.append(key)
    grouping = Grouping(scope, unique, scope.aggregates or [])
    functions = [a for f in scope.functions or () for a in f.args]
    conditions = [having] if having is not None else []
    over = windows.expressions(scope.windows or [])
    grouping.prepare([*(t.expr for t in targets), *functions, *conditions, *over])
    rel = grouping.apply(rel)
    if having is not None:
        rel = Filter(rel, grouping.rewrite(having))
    for target in targets:
        target.expr = grouping.rewrite(target.expr)
    if scope.windows:
        scope.windows = [windows.regrouped(call, grouping.rewrite) for call in scope.windows]
    if scope.functions:
        scope.functions = [replace(f, args=tuple(grouping.rewrite(a) for a in f.args)) for f in scope.functions]
    return rel


def _windows(scope: Scope, rel: Rel, targets: list[TargetExpr]) -> Rel:
    """The select list's window functions."""
    if not scope.windows:
        return rel
    rel, place = windows.numbered(scope, rel)
    for target in targets:
        target.expr = windows.placed(target.expr, place)
    if scope.functions:
        scope.functions = [replace(f, args=tuple(windows.placed(a, place) for a in f.args)) for f in scope.functions]
    return rel


def _set_returning(scope: Scope, rel: Rel, targets: list[TargetExpr]) -> Rel:
    """The select list's set-returning functions, side by side."""
    functions = scope.functions or []
    if not functions:
        return rel
    width = len(schema(rel))
    if any(f.routine is not None for f in functions):
        rel = Join(JoinKind.INNER, rel, _routine(functions), Literal(True, BOOL), True)
    elif len({f.function for f in functions} | {""}) == 2 and (
        len(functions) == 1 or functions[0].function == "unnest"
    ):
        args = tuple(a for f in functions for a in f.args)
        columns = tuple(c for f in functions for c in f.columns)
        rel = TableFunction(rel, functions[0].function, args, columns)
    else:
        rel = Join(JoinKind.INNER, rel, _in_lockstep(functions), Literal(True, BOOL), True)

    def place(level: int, index: int) -> tuple[int, int]:
        if level == 0 and FUNCTION_BASE <= index < AGGREGATE_BASE:
            return level, width + index - FUNCTION_BASE
        return level, index

    for target in targets:
        target.expr = relevel(target.expr, place)
    return rel


def _routine(functions: Sequence[SetReturning]) -> Rel:
    """The rows of a user's function, for a lateral join."""
    function = functions[0]
    if len(functions) > 1 or function.routine is None:
        raise unsupported("a user's function beside another set-returning one", position=functions[0].at + 1)
    entry, body = function.routine
    return lateral(body, entry, tuple(lift(a) for a in function.args))


def _in_lockstep(functions: Sequence[SetReturning]) -> Rel:
    """The functions' rows side by side by their numbers, the shorter ones padded with NULL; for a lateral join."""
    rel: Rel | None = None
    for count, function in enumerate(functions):
        args = tuple(lift(a) for a in function.args)
        one = TableFunction(UNIT, function.function, args, function.columns, True)
        if rel is None:
            rel = one
            continue
        equal = Call("=(int8,int8)", (Column(count, INT8), Column(count + 2, INT8)), BOOL, True)
        joined = Join(JoinKind.FULL, rel, one, equal)
        columns = schema(joined)
        values = [Column(i, columns[i].type, True) for i in (*range(count), count + 1)]
        number = Coalesce((Column(count, INT8), Column(count + 2, INT8)), INT8)
        rel = Project(joined, (*values, number))
    assert rel is not None
    return rel


def _distinct(
    env: Environment, node: nodes.Select, bound: queries.Bound, on: Sequence[int],
    ordering: tuple[Sequence[nodes.OrderItem], Sequence[int]],
) -> queries.Bound:  # fmt: skip
    items, order = ordering
    if node.distinct is None:
        return bound
    if node.distinct == ():
        if any(i >= bound.width for i in order):
            message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
            first = next(item for item, i in zip(items, order, strict=True) if i >= bound.width)
            raise SqlError("42P10", message, position=first.at + 1)
        bound = queries.settle(env, bound)
        return queries.Bound(Distinct(bound.rel), bound.columns, bound.order)
    if any(i not in on for i in order[: len(set(on))]) and set(order[: len(set(on))]) != set(on):
        message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"
        raise SqlError("42P10", message, position=node.distinct[0].at + 1)
    bound = queries.settle(env, bound)
    columns = schema(bound.rel)
    keys = tuple(Column(i, columns[i].type, columns[i].nullable) for i in dict.fromkeys(on))
    rel = TopK(bound.rel, keys, bound.order, Literal(1, INT8), None)
    return queries.Bound(rel, bound.columns, bound.order)
