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
    todo = [rel]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Locked):
            found[id(node)] = node
        todo += reversed(children(node))
    return list(found.values())


def locks_of_view(rel: Rel) -> list[Locked]:
    """``locks_in`` for a maintained view's definition. 0A000: an expression has a subquery with a locked join."""
    seen: set[int] = set()
    todo = [(rel, False)]
    while todo:
        node, within = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if within and isinstance(node, Locked):
            hint = "Join with a subquery in FROM instead."
            raise unsupported("FOR SYSTEM_TIME AS OF PROCTIME() in a subquery of an expression", hint)
        todo += [(s.rel, True) for expr in scalars(node) for s in subqueries(expr)]
        todo += [(child, within) for child in reversed(children(node))]
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
    return _changed_once(rel, change, {})


def _changed_once(node: Rel, change: Callable[[Locked, Locked], Locked], known: dict[int, Rel]) -> Rel:
    found = known.get(id(node))
    if found is None:
        found = with_children(node, tuple(_changed_once(child, change, known) for child in children(node)))
        if isinstance(found, Locked):
            assert isinstance(node, Locked)
            found = change(node, found)
        known[id(node)] = found
    return found
