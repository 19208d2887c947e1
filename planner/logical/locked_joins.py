"""Which locked joins a definition has, the names under which a view's are kept, and reading what they found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ivm.errors import unsupported
from ivm.words import INT8, ColumnType, Schema
from planner.logical.nodes import Locked, Rel, schema
from planner.logical.traversal import children, scalars, subqueries, with_children


def locks_in(rel: Rel) -> list[Locked]:
    """The plan's locked joins in the order in which they are met, each object once; not those in scalars."""
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
    """``locks_in`` a definition that is to be maintained. 0A000 where there are others, in scalars."""
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
    """The plan with its locked joins named, in their order; as it is, without names."""
    if not names:
        return rel
    order = {id(lock): name for lock, name in zip(locks_in(rel), names, strict=True)}
    return _changed(rel, lambda lock, new: replace(new, name=order[id(lock)]))


def numbered(rel: Rel) -> Rel:
    """The plan of a view that is not made: its locked joins are named by numbers that nothing has."""
    return with_names(rel, tuple(-n for n, _ in enumerate(locks_of_view(rel), 1)))


def reading(rel: Rel) -> Rel:
    """The plan with what its locked joins have found in their place, in relations of their names below 0."""
    return _changed(rel, lambda _, new: replace(new, found=-new.name))


def kept_schema(lock: Locked) -> Schema:
    """[left row | number | part | right row] as a locked join keeps it; all columns of both sides are nullable in it,
    so that it does not depend on what is known of NULLs."""
    number = ColumnType(INT8, False)
    return (*nullable(schema(lock.left)), number, number, *nullable(schema(lock.right)))


def nullable(row: Schema) -> Schema:
    """The columns, which may be NULL."""
    return tuple(ColumnType(c.type, True) for c in row)


def _changed(rel: Rel, change: Callable[[Locked, Locked], Locked]) -> Rel:
    """Each locked join changed, given with the one of changed inputs; an object that is used twice stays one."""
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
