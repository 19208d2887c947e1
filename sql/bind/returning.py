"""RETURNING, and the rows that a statement changes under the names of the table or view that it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ivm.errors import unsupported
from planner.expr.scalar import Scalar
from planner.logical.nodes import Filter, Project, Rel, schema
from planner.logical.traversal import has_subquery
from sql.bind import volatile
from sql.bind.bound_query import rel_columns
from sql.bind.coerce import resolve_unknown
from sql.bind.environment import Environment
from sql.bind.from_clause import changed_rows, changes_tree
from sql.bind.inheritance_tree import wide_rows
from sql.bind.namespace import Namespace
from sql.bind.row_security import readable
from sql.bind.scope import NameScope
from sql.bind.selection import bind_targets
from sql.bind.target import Target
from sql.bind.view_targets import view_range
from sql.statements.queries import OutputColumn
from sql.statements.statements import Branch
from sql.syntax.nodes import queries as nodes


def returning(
    env: Environment, targets: Sequence[nodes.Target] | None, namespace: Namespace
) -> tuple[tuple[Scalar, ...] | None, tuple[OutputColumn, ...]]:
    """RETURNING's expressions and columns; None and () without it."""
    if targets is None:
        return None, ()
    scope = NameScope(namespace, clause="RETURNING")
    bound = bind_targets(env, scope, targets)
    exprs = tuple(resolve_unknown(env, t.expr) for t in bound)
    for expr in exprs:
        check_steady(expr, "RETURNING", targets[0].at)
    columns = tuple(OutputColumn(t.name, e.type, t.table, t.attribute) for t, e in zip(bound, exprs, strict=True))
    return exprs, columns


def check_steady(expr: Scalar, clause: str, at: int) -> None:
    """Raises 0A000 for a volatile function beside a subquery, since it would not be called once for each row."""
    if has_subquery(expr) and volatile.is_volatile(expr):
        raise unsupported(f"a volatile function beside a subquery in {clause}", position=at + 1)


def target_rows(
    env: Environment, target: Target, name: nodes.TableName, commands: str
) -> tuple[Rel, Namespace, tuple[Branch, ...], int]:
    """The rows that a statement changes: the table's (wide) row, then the layers' columns; their names, and the
    branches and width of wide rows. ``commands``: whose policies show them."""
    own = target.relation is target.table
    ref = replace(name, columns=()) if own else nodes.TableName(None, target.table.name, name.at, only=target.only)
    rel, namespace = changed_rows(env, target.table, ref, target.use if own else None)
    rel = readable(env, target.table, rel, target.base, commands)
    branches: tuple[Branch, ...] = ()
    width = len(target.table.columns)
    if changes_tree(env, target.table, only=target.only):
        wide = wide_rows(env, target.table, only=target.only)
        branches, width = wide.branches, len(schema(wide.rel))
    if own:
        return rel, namespace, branches, width
    for layer in target.layers:
        if layer.condition is not None:
            rel = Filter(rel, layer.condition)
        rel = Project(rel, (*rel_columns(rel), *layer.exprs))
    return rel, view_range(target, width, name.alias or name.name), branches, width
