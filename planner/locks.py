"""Which locked joins a definition has, and the names under which a view's are kept."""

from __future__ import annotations

from dataclasses import replace

from planner.logical import Locked, Rel
from planner.traverse import children, with_children


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


def with_names(rel: Rel, names: tuple[int, ...]) -> Rel:
    """The plan with its locked joins named, in their order; an object that is used twice stays one."""
    if not names:
        return rel
    order = {id(lock): name for lock, name in zip(locks_in(rel), names, strict=True)}
    known: dict[int, Rel] = {}

    def named(node: Rel) -> Rel:
        found = known.get(id(node))
        if found is None:
            found = with_children(node, tuple(named(child) for child in children(node)))
            if isinstance(found, Locked):
                found = replace(found, name=order[id(node)])
            known[id(node)] = found
        return found

    return named(rel)
