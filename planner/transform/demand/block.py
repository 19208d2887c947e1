"""Pushes demand into the bindings of a WITH MUTUALLY RECURSIVE block.

The conditions on the block's rows have been pushed into its body already. For a binding b, D(b) is a set of conditions
that stand on every reference to b: in the body, and in the values of all bindings that are read, after each value's own
D has been pushed into it. Nothing reads rows of b that fail D(b), so by induction each binding is, in every round, its
old value restricted to its D. The greatest D is a fixpoint, computed from above.

Side condition: no expression that can raise or is volatile is moved. A block with priorities or ERROR AT a limit is
left whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from planner.expr.scalar import Scalar
from planner.logical.fallibility import rel_is_volatile
from planner.logical.nodes import Filter, LetRec, Reference, Rel
from planner.logical.traversal import bottom_up, children, conjunction, conjuncts
from planner.transform.pushdown import push_down

Asked = dict[int, dict[Scalar, Scalar]]
"""By binding read: the conditions found on all references so far, keyed by their form without nullability."""


def block_demand(rel: LetRec, may_enter: Callable[[Scalar], bool], plain: Callable[[Scalar], Scalar]) -> LetRec | None:
    """The block with its bindings restricted to what is demanded of them; None: nothing can be restricted.

    ``may_enter``: whether a condition may be pushed down. ``plain``: strips nullability from an expression.
    """
    if rel.demanded or rel.priorities or (rel.limit is not None and not rel.return_at_limit) or rel_is_volatile(rel):
        return None
    bound = dict(rel.bindings)

    def collect(node: Rel, found: Asked) -> None:
        """Intersects the conditions on each binding's references in a plan with those found before."""
        todo, seen = [node], {id(node)}
        if isinstance(node, Reference):
            found[node.binding] = {}
        while todo:
            current = todo.pop()
            for child in children(current):
                if isinstance(child, Reference) and child.binding in bound:
                    conditions = conjuncts(current.predicate) if isinstance(current, Filter) else ()
                    pushable = {plain(p): p for p in conditions if may_enter(p)}
                    known = found.get(child.binding, pushable)
                    found[child.binding] = {k: p for k, p in known.items() if k in pushable}
                elif id(child) not in seen:
                    seen.add(id(child))
                    todo.append(child)

    asked: Asked = {}
    collect(rel.body, asked)
    while True:
        values = {b: _restricted(value, asked.get(b, {})) for b, value in rel.bindings}
        found: Asked = {}
        collect(rel.body, found)
        for binding in asked:
            if binding in bound:
                collect(values[binding], found)
        if found.keys() == asked.keys() and all(found[b].keys() == asked[b].keys() for b in found):
            break
        asked = found
    if not any(asked.values()):
        return None
    known = {b: frozenset(conditions) for b, conditions in asked.items()}
    bindings = tuple((b, _without(values[b], known, plain)) for b, _ in rel.bindings)
    demanded = tuple((b, tuple(asked[b].values())) for b, _ in rel.bindings if asked.get(b))
    return replace(rel, bindings=bindings, body=_without(rel.body, known, plain), demanded=demanded)


def _restricted(value: Rel, asked: dict[Scalar, Scalar]) -> Rel:
    return push_down(Filter(value, conjunction(tuple(asked.values())))) if asked else value


def _without(rel: Rel, known: dict[int, frozenset[Scalar]], plain: Callable[[Scalar], Scalar]) -> Rel:
    """The plan without conditions that all rows of a restricted binding meet."""

    def change(node: Rel) -> Rel:
        if isinstance(node, Filter) and isinstance(node.input, Reference):
            met = known.get(node.input.binding, frozenset())
            rest = tuple(p for p in conjuncts(node.predicate) if plain(p) not in met)
            return Filter(node.input, conjunction(rest)) if rest else node.input
        return node

    return bottom_up(rel, change)
