"""Which recursive bindings a plan reads."""

from __future__ import annotations

from dataclasses import dataclass

from ivm.words import Schema
from planner.logical.nodes import LetRec, Reference, Rel
from planner.logical.traversal import bindings, nodes


def free_references(rel: Rel) -> frozenset[int]:
    """The bindings that a plan reads but does not define. Its expressions must have no subqueries."""
    found = frozenset(node.binding for node in nodes(rel) if isinstance(node, Reference))
    return found - bindings(rel)


@dataclass(frozen=True, slots=True)
class RecursiveBinding:
    """A binding of a WITH MUTUALLY RECURSIVE block, with the bindings that its value reads."""

    binding: int
    value: Rel
    row: Schema
    name: str
    reads: frozenset[int]


def needed(rel: LetRec) -> tuple[RecursiveBinding, ...]:
    """The bindings that the body needs, directly or through other bindings, in textual order."""
    names = rel.names or tuple(str(binding) for binding, _ in rel.bindings)
    parts = [
        RecursiveBinding(binding, value, row, name, free_references(value))
        for (binding, value), row, name in zip(rel.bindings, rel.schemas, names, strict=True)
    ]
    wanted = set(free_references(rel.body))
    while True:
        more = {b for p in parts if p.binding in wanted for b in p.reads} - wanted
        if not more:
            return tuple(p for p in parts if p.binding in wanted)
        wanted |= more


def read_later(parts: tuple[RecursiveBinding, ...]) -> frozenset[int]:
    """The bindings whose value of one round is read in the next: by themselves or by an earlier binding."""
    place = {part.binding: i for i, part in enumerate(parts)}
    return frozenset(b for i, part in enumerate(parts) for b in part.reads if place.get(b, -1) >= i)
