"""Finds and names the locked joins (FOR SYSTEM_TIME AS OF PROCTIME()) of a view's definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ivm.errors import unsupported
from ivm.words import INT8, ColumnType, Schema
from planner.logical.nodes import Locked, Rel, schema
from planner.logical.traversal import children, scalars, subqueries, with_children


def locks_in(rel: Rel) -> list[Locked]:
    """The plan's locked joins in traversal order, each object once. Subqueries in expressions are not searched."""
    found: dict[int, Locked] = {}
    seen: set[int] = set()

    def visit(node: Rel) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        if isinstance(node, Locked):
            found[id(node)] = node
        for child in children(node):
            visit(child)

    visit(rel)
    return list(found.values())


def locks_of_view(rel: Rel) -> list[Locked]:
    """``locks_in`` for a maintained view's definition. 0A000: an expression has a subquery with a locked join."""
    seen: set[int] = set()

    def visit(node: Rel, within: bool) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        if within and isinstance(node, Locked):
            hint = "Join with a subquery in FROM instead."
            raise unsupported("FOR SYSTEM_TIME AS OF PROCTIME() in a subquery of an expression", hint)
        for child in children(node):
            visit(child, within)
        for subquery in (s for expr in scalars(node) for s in subqueries(expr)):
            visit(subquery.rel, True)

    visit(rel, False)
    return locks_in(rel)


def with_names(rel: Rel, names: tuple[int, ...]) -> Rel:
    """The plan with its locked joins given these names, in the order of ``locks_in``; unchanged without names."""
    if not names:
        return rel
    order = {id(lock): name for lock, name in zip(locks_in(rel), names, strict=True)}
    return _changed(rel, lambda lock, new: replace(new, name=order[id(lock)]))


def numbered(rel: Rel) -> Rel:
    """The plan with its locked joins named -1, -2, …: names for a view that is never created."""
    return with_names(rel, tuple(-n for n, _ in enumerate(locks_of_view(rel), 1)))


def reading(rel: Rel) -> Rel:
    """The plan with each locked join reading its matches from relation ``-name``, where they are kept."""
    return _changed(rel, lambda _, new: replace(new, found=-new.name))


def kept_schema(lock: Locked) -> Schema:
    """The schema [left row | number | part | right row] of what a locked join keeps.

    All columns of both sides are nullable, so that the layout does not depend on what the planner knows of NULLs.
    """
    number = ColumnType(INT8, False)
    return (*nullable(schema(lock.left)), number, number, *nullable(schema(lock.right)))


def nullable(row: Schema) -> Schema:
    """The same columns, all nullable."""
    return tuple(ColumnType(c.type, True) for c in row)


def _changed(rel: Rel, change: Callable[[Locked, Locked], Locked]) -> Rel:
    """Applies ``change(old node, node with changed inputs)`` to each locked join. A shared object stays shared."""
    known: dict[int, Rel] = {}

    def named(node: Rel) -> Rel:
        found = known.get(id(node))
        if found is None:
            found = with_children(node, tuple(named(child) for child in children(node)))
            if isinstance(found, Locked):
                assert isinstance(node, Locked)
                found = change(node, found)
            known[id(node)] = found
        return found

    return named(rel)
