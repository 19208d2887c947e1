"""SELECT: FROM, WHERE, grouping, the select list, DISTINCT and ORDER BY, in Postgres's order of evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ivm.errors import SqlError
from ivm.words import INT8
from planner.expr.scalar import Column, Literal, Scalar, SortKey
from planner.logical.nodes import Distinct, Filter, Project, Rel, TopK, schema
from sql.bind import rows, windows
from sql.bind.arrival import ordered_aggregates
from sql.bind.bound_query import BoundQuery
from sql.bind.coerce import resolve_unknown
from sql.bind.comparable import check_equality
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.from_clause import bind_from, reads_working_table
from sql.bind.grouping import Grouping
from sql.bind.grouping_sets import Keys, has_sets, key_sets, may_be_empty
from sql.bind.locking import locked_rows
from sql.bind.names import column_name
from sql.bind.namespace import Visible, nullable
from sql.bind.order_by import ordinal, sort_key
from sql.bind.scope import AGGREGATE_BASE, GROUPING_BASE, NameScope, find_range_columns, note_star
from sql.bind.set_returning import arguments, called, reached, with_set_returning
from sql.bind.subquery import resolve_columns
from sql.bind.walk import references
from sql.bind.window_frames import named
from sql.statements.queries import OutputColumn
from sql.syntax.nodes import queries as nodes


@dataclass(slots=True)
class TargetExpr:
    """A column of the select list, or a hidden one that ORDER BY or DISTINCT ON needs.

    ``table`` and ``attribute``: as in ``OutputColumn``. ``output``: the column that it is if it is not rewritten.
    """

    name: str
    expr: Scalar
    table: int = 0
    attribute: int = 0
    output: OutputColumn | None = None

    @property
    def column(self) -> OutputColumn:
        """Of the result."""
        known = self.output
        if known is not None and known.type is self.expr.type:
            return known
        return OutputColumn(self.name, self.expr.type, self.table, self.attribute)


def bind_select(
    env: Environment,
    node: nodes.Select,
    order: Sequence[nodes.OrderItem],
    outer: NameScope | None,
    locking: Sequence[nodes.Locking] = (),
) -> BoundQuery:
    """A SELECT with the ORDER BY of the query around it, which may use the columns of FROM, and what it locks."""
    rel, namespace = bind_from(env, node.from_, outer)
    scope = NameScope(namespace, outer)
    if node.where is not None:
        scope.clause = "WHERE"
        rel = Filter(rel, ExpressionBinder(env, scope, "WHERE").condition(node.where, "WHERE"))
    items = node.group or ()
    scope.several = has_sets(items)
    if scope.several:
        scope.namespace = nullable(scope.namespace)
    scope.grouped = not may_be_empty(items)
    scope.aggregates, scope.functions, scope.windows, scope.clause = [], [], [], "SELECT"
    scope.named = named(node.windows)
    targets = bind_targets(env, scope, node.targets)
    width = len(targets)
    keys = _keys(env, scope, targets, node)
    having = None if node.having is None else _having(env, scope, node.having)
    distinct_on = [_output(env, scope, targets, e, "SELECT DISTINCT ON") for e in node.distinct or ()]
    order_indices = [_order_item(env, scope, targets, item) for item in order]
    windows.check_named(ExpressionBinder(env, scope, "SELECT"), node.windows)
    grouped = node.group is not None or bool(scope.aggregates or scope.groupings) or node.having is not None
    kept = () if order or grouped or node.distinct is not None or scope.windows else namespace.order
    kept_indices = [_placed(targets, key.expr) for key in kept]
    for present, what in ((grouped, "aggregate functions"), (scope.windows, "window functions"),
                          (scope.functions, "set-returning functions in the target list")):  # fmt: skip
        if locking and present:
            raise SqlError("0A000", f"{locking[0].clause} is not allowed with {what}", position=locking[0].at + 1)
    locks = locked_rows(env, namespace, locking, lambda expr: _placed(targets, expr, width)) if locking else ()
    if grouped:
        if scope.aggregates and reads_working_table(env, node.from_):
            message = "aggregate functions are not allowed in a recursive query's recursive term"
            raise SqlError("42P19", message, position=node.at + 1)
        rel, scope.aggregates = ordered_aggregates(rel, namespace.order, scope.aggregates or [])
        rel = _group(scope, rel, targets, keys, having)
    rel = _with_windows(scope, rel, targets)
    sorting = [targets[i].expr for i in (*distinct_on, *order_indices)]
    late = bool(node.distinct and order and called(t.expr for t in targets)) and not called(sorting)
    if late:
        _check_distinct_on(node, distinct_on, order_indices)
        rel = _distinct_rows(rel, sorting[: len(distinct_on)], _sort_keys(sorting[len(distinct_on) :], order))
    rel = _with_functions(scope, rel, targets)
    rel = Project(rel, tuple([t.expr for t in targets]))
    columns = tuple([t.column for t in targets[:width]])
    keys_kept = (replace(k, expr=e) for k, e in zip(kept, _own(rel, kept_indices), strict=True))
    bound = BoundQuery(rel, columns, (*_sort_keys(_own(rel, order_indices), order), *keys_kept), locks=locks)
    return bound if late else _distinct(env, node, bound, distinct_on, (order, order_indices))


def bind_targets(env: Environment, scope: NameScope, targets: Sequence[nodes.Target]) -> list[TargetExpr]:
    """The select list with its stars expanded."""
    binder = ExpressionBinder(env, scope, scope.clause)
    result: list[TargetExpr] = []
    for target in targets:
        if isinstance(target.expr, nodes.Star):
            fields = env.parameters.fields(target.expr.qualifier) if target.expr.qualifier else None
            if fields is not None:
                result += [TargetExpr(name, value, 0, 0) for name, value in fields]
                continue
            qualifier, at = target.expr.qualifier, target.expr.at
            argument = rows.argument(env, scope, qualifier, at) if qualifier else None
            if argument is not None:
                result += [TargetExpr(name, expr) for name, expr in rows.all_fields(argument, target.expr.at)]
                continue
            columns = _star(scope, target.expr)
            if env.notes is not None:
                env.notes.star(scope, target.expr.at, [(v.name, v.expr) for v in columns])
            result += [TargetExpr(v.name, v.expr, v.table, v.attribute, v.output) for v in columns]
            continue
        if isinstance(target.expr, nodes.AllFields):
            found = rows.all_fields(binder.typed(target.expr.expr), target.expr.at)
            result += [TargetExpr(name, expr) for name, expr in found]
            continue
        expr = binder.bind(target.expr)
        name = target.alias or column_name(env, target.expr)
        if env.notes is not None:
            env.notes.titles[target.at] = name
        result.append(_target(scope, name, expr))
    return result


def _target(scope: NameScope, name: str, expr: Scalar) -> TargetExpr:
    """The column of the select list; a column of a table also says which."""
    visible = scope.namespace.meant(expr) if isinstance(expr, Column) else None
    if visible is None:
        return TargetExpr(name, expr)
    return TargetExpr(name, expr, visible.table, visible.attribute, visible.output if visible.name == name else None)


def _star(scope: NameScope, star: nodes.Star) -> tuple[Visible, ...]:
    if star.qualifier:
        return find_range_columns(scope, star)
    if not scope.namespace.ranges and not scope.namespace.visible:
        raise SqlError("42601", "SELECT * with no tables specified is not valid", position=star.at + 1)
    columns = tuple([visible for visible in scope.namespace.visible if not visible.hidden])
    note_star(scope, columns, star.at, False)
    return columns


def _having(env: Environment, scope: NameScope, node: nodes.Expr) -> Scalar:
    """HAVING, which may hold aggregates, but no set-returning and window functions."""
    functions, windows_ = scope.functions, scope.windows
    scope.functions, scope.windows, scope.clause = None, None, "HAVING"
    having = ExpressionBinder(env, scope, "HAVING").condition(node, "HAVING")
    scope.functions, scope.windows = functions, windows_
    return having


def _keys(env: Environment, scope: NameScope, targets: list[TargetExpr], node: nodes.Select) -> Keys:
    """The keys of GROUP BY and its sets. Raises 42803, 42P20, 54001, 54011."""
    found: list[tuple[Scalar, int | None]] = []

    def position(item: nodes.Expr) -> int:
        expr, target = _group_key(env, scope, targets, item)
        if env.notes is not None and target is not None:
            env.notes.output(item, target)
        check_equality(expr.type, item.at)
        key = expr, target if scope.several else None
        if key not in found:
            found.append(key)
        return found.index(key)

    sets = key_sets(node.group or (), node.group_distinct, position)
    named = tuple((target, i) for i, (_, target) in enumerate(found) if target is not None)
    return Keys(tuple(expr for expr, _ in found), named, sets)


def _group_key(
    env: Environment, scope: NameScope, targets: list[TargetExpr], node: nodes.Expr
) -> tuple[Scalar, int | None]:
    """A key of GROUP BY, and the column of the select list that it is. A name means a column of FROM, or else of the
    select list. Raises 42803, 42P20."""
    index = ordinal(node, len(targets), "GROUP BY")
    if index is None and isinstance(node, nodes.Name) and len(node.parts) == 1:
        name = node.parts[0]
        if not any(v.name == name for v in scope.namespace.visible):
            index = _by_name(targets, name, "GROUP BY", node.at)
    if index is None:
        saved = scope.aggregates, scope.windows
        scope.aggregates, scope.windows, scope.clause = None, None, "GROUP BY"
        expr = ExpressionBinder(env, scope, "GROUP BY").typed(node)
        scope.aggregates, scope.windows = saved
        return expr, next((i for i, t in enumerate(targets) if t.expr == expr), None)
    target = targets[index]
    target.expr = resolve_unknown(env, target.expr, node.at)
    used = {i for level, i in references(target.expr) if level == 0}
    if any(i >= AGGREGATE_BASE for i in used):
        what = "grouping operations" if any(i >= GROUPING_BASE for i in used) else "aggregate functions"
        raise SqlError("42803", f"{what} are not allowed in GROUP BY", position=node.at + 1)
    if windows.has_window(used):
        raise SqlError("42P20", "window functions are not allowed in GROUP BY", position=node.at + 1)
    return target.expr, index


def _by_name(targets: Sequence[TargetExpr], name: str, clause: str, at: int) -> int | None:
    """The index of the select list's column of that name. Raises 42702."""
    found = [i for i, t in enumerate(targets) if t.name == name]
    if not found:
        return None
    if any(targets[i].expr != targets[found[0]].expr for i in found):
        raise SqlError("42702", f'{clause} "{name}" is ambiguous', position=at + 1)
    return found[0]


def _output(env: Environment, scope: NameScope, targets: list[TargetExpr], node: nodes.Expr, clause: str) -> int:
    """The index among the targets of an expression in ORDER BY or DISTINCT ON, added as a hidden one if it is new."""
    named = "ORDER BY" if clause == "ORDER BY" else "SELECT DISTINCT ON"
    index = ordinal(node, len(targets), named)
    if index is None and isinstance(node, nodes.Name) and len(node.parts) == 1:
        index = _by_name(targets, node.parts[0], named, node.at)
    if index is not None:
        targets[index].expr = resolve_unknown(env, targets[index].expr, node.at)
    else:
        index = _placed(targets, ExpressionBinder(env, scope, clause).typed(node))
    if env.notes is not None:
        env.notes.output(node, index)
    return index


def _placed(targets: list[TargetExpr], expr: Scalar, first: int = 0) -> int:
    """The index among the targets, from ``first`` on, of an expression, added as a hidden one if it is new."""
    for i, target in enumerate(targets):
        if i >= first and target.expr == expr:
            return i
    targets.append(TargetExpr("", expr))
    return len(targets) - 1


def _order_item(env: Environment, scope: NameScope, targets: list[TargetExpr], item: nodes.OrderItem) -> int:
    scope.clause = "ORDER BY"
    return _output(env, scope, targets, item.expr, "ORDER BY")


def _own(rel: Project, indices: Iterable[int]) -> list[Column]:
    """Columns of a projection, by number."""
    return [Column(i, rel.exprs[i].type, rel.exprs[i].nullable) for i in indices]


def _sort_keys(exprs: Sequence[Scalar], order: Sequence[nodes.OrderItem]) -> tuple[SortKey, ...]:
    return tuple(sort_key(expr, item) for expr, item in zip(exprs, order, strict=True))


def _group(scope: NameScope, rel: Rel, targets: list[TargetExpr], keys: Keys, having: Scalar | None) -> Rel:
    """The groups that HAVING keeps, and the targets and the scope's calls rewritten to them. Raises 42803."""
    functions = scope.functions or []
    below, placed = with_set_returning(rel, functions, called(keys.exprs))
    grouping = Grouping(scope, keys, scope.aggregates or [])
    conditions = [having] if having is not None else []
    exprs = [*(t.expr for t in targets), *conditions, *windows.expressions(scope.windows or [])]
    above = called(e for expr in exprs for e in grouping.outside_keys(expr))
    grouping.prepare([*exprs, *arguments(functions, above), *scope.direct])
    rel = grouping.apply(below, placed)
    if having is not None:
        rel = Filter(rel, grouping.rewrite(having))
    for target, expr in zip(targets, grouping.rewrite_targets([t.expr for t in targets]), strict=True):
        target.expr = expr
    if scope.windows:
        scope.windows = [windows.regrouped(call, grouping.rewrite) for call in scope.windows]
    _rewrite_functions(scope, above, grouping.rewrite)
    return rel


def _with_windows(scope: NameScope, rel: Rel, targets: list[TargetExpr]) -> Rel:
    """The rows with the results of window functions, and of the set-returning functions that define windows."""
    if not scope.windows:
        return rel
    functions = scope.functions or []
    rel, placed = with_set_returning(rel, functions, called(windows.expressions(scope.windows)))
    _rewrite_targets(targets, placed)
    found = [windows.regrouped(call, placed) for call in scope.windows]
    rel, placed = windows.with_windows(rel, found)
    _rewrite_targets(targets, placed)
    _rewrite_functions(scope, called(t.expr for t in targets), placed)
    return rel


def _with_functions(scope: NameScope, rel: Rel, targets: list[TargetExpr]) -> Rel:
    """The rows with the results of set-returning functions."""
    numbers = called(t.expr for t in targets) if scope.functions else ()
    if not numbers:
        return rel
    assert scope.functions is not None
    rel, placed = with_set_returning(rel, scope.functions, numbers)
    _rewrite_targets(targets, placed)
    return rel


def _rewrite_targets(targets: list[TargetExpr], rewrite: Callable[[Scalar], Scalar]) -> None:
    for target in targets:
        target.expr = rewrite(target.expr)


def _rewrite_functions(scope: NameScope, numbers: set[int], rewrite: Callable[[Scalar], Scalar]) -> None:
    """Rewrites the arguments of these functions, and of those that they call."""
    functions = scope.functions or []
    for number in reached(functions, numbers):
        functions[number] = replace(functions[number], args=tuple(map(rewrite, functions[number].args)))


def _distinct(
    env: Environment, node: nodes.Select, bound: BoundQuery, on: Sequence[int],
    ordering: tuple[Sequence[nodes.OrderItem], Sequence[int]],
) -> BoundQuery:  # fmt: skip
    """DISTINCT or DISTINCT ON. ``on``: its targets; ``ordering``: ORDER BY's items and their targets. Raises 42P10."""
    items, order = ordering
    if node.distinct is None:
        return bound
    if node.distinct == ():
        if any(i >= bound.width for i in order):
            message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
            first = next(item for item, i in zip(items, order, strict=True) if i >= bound.width)
            raise SqlError("42P10", message, position=first.at + 1)
        bound = resolve_columns(env, bound)
        for column in bound.columns:
            check_equality(column.type, node.targets[0].at)
        return BoundQuery(Distinct(bound.rel), bound.columns, bound.order)
    _check_distinct_on(node, on, order)
    bound = resolve_columns(env, bound)
    columns = schema(bound.rel)
    keys = [Column(i, columns[i].type, columns[i].nullable) for i in on]
    return BoundQuery(_distinct_rows(bound.rel, keys, bound.order), bound.columns, bound.order)


def _check_distinct_on(node: nodes.Select, on: Sequence[int], order: Sequence[int]) -> None:
    if any(i not in on for i in order[: len(set(on))]) and set(order[: len(set(on))]) != set(on):
        assert node.distinct
        message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"
        raise SqlError("42P10", message, position=node.distinct[0].at + 1)


def _distinct_rows(rel: Rel, on: Sequence[Scalar], order: tuple[SortKey, ...]) -> Rel:
    """The first row, in order, of those that agree in the expressions of DISTINCT ON."""
    return TopK(rel, tuple(dict.fromkeys(on)), order, Literal(1, INT8), None)
