"""Pushes demand into a recursion: a condition on its rows restricts what it computes.

Three rules, tried in this order. Each keeps the rows that meet the condition, with their multiplicities, in every
round:

1. *Copied columns.* If pushing a condition p down into the step puts it on the step's reference itself, then p and the
   step commute: σp(step(W)) = step(σp(W)). By induction σp of the working table is the working table of the recursion
   that starts with σp(base), whatever the step does (groups, outer joins, negation) within one value of p's columns.
   Side condition: the step has no rows if its reference has none. Otherwise the recursion, which ends in the first
   round without new rows, could end too soon.
2. *Reversal* (``planner.transform.demand.reversal``): a closure demanded by its far end is followed from that end.
3. *A demand relation* (``planner.transform.demand.relation``): a recursion of its own computes the values that the
   answer depends on, and base and step are restricted to them (magic sets: Bancilhon, Maier, Sagiv, Ullman, PODS 1986).

Demand also comes from joins and semijoins (``planner.transform.demand.join``) and from the readers of a WITH MUTUALLY
RECURSIVE block (``planner.transform.demand.block``).

Side condition: no expression that can raise or is volatile is moved. A recursion that is read whole anywhere in the
plan is left whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from planner.expr.parts import COLUMNS, rebuild, walk
from planner.expr.scalar import Column, Scalar
from planner.logical.fallibility import can_raise, rel_is_volatile
from planner.logical.kinds import kinds_in
from planner.logical.linearity import empty_without
from planner.logical.nodes import Filter, Join, LetRec, Recursive, Reference, Rel
from planner.logical.temporal import reads_clock
from planner.logical.traversal import bindings, bottom_up, children, conjunction, conjuncts, nodes, with_children
from planner.transform.demand.arm import constants
from planner.transform.demand.block import block_demand
from planner.transform.demand.join import Meeting, joined_demand, meeting
from planner.transform.demand.relation import by_demand
from planner.transform.demand.reversal import turned
from planner.transform.pushdown import push_down

_RECURSIVE: Final = frozenset({Recursive, LetRec})
PASSES = 4
"""A pushed condition may end up on another recursion in the base: how many levels deep this is followed."""

Predicates = tuple[Scalar, ...]


def demand(rel: Rel) -> Rel:
    """The plan with its recursions restricted to what is demanded of them."""
    if _RECURSIVE.isdisjoint(kinds_in(rel)):
        return rel
    made: set[int] = set()
    for _ in range(PASSES):
        new = _Demand(rel, made).rel(rel)
        if new is rel:
            break
        rel = new
    return rel


class _Demand:
    """One pass over a plan. A plan used twice stays one object."""

    def __init__(self, root: Rel, made: set[int]) -> None:
        """``made``: the bindings of recursions created here, which joins do not restrict further."""
        self._made = made
        self._binding = 1 + max(bindings(root), default=0)
        self._readers = _readers(root)
        self._known: dict[int, tuple[Rel, Rel]] = {}
        self._blocks = _blocks(root)
        self._restricted: dict[object, tuple[Recursive, Predicates | Meeting, Rel | None]] = {}

    def rel(self, rel: Rel) -> Rel:
        found = self._known.get(id(rel))
        if found is None:
            found = self._known[id(rel)] = (rel, self._rel(rel))
        return found[1]

    def _rel(self, rel: Rel) -> Rel:
        if isinstance(rel, Filter) and isinstance(rel.input, Recursive) and self._is_asked_only(rel.input):
            new = self._restrict(rel.input, conjuncts(rel.predicate))
            assert new is not None
            return new
        if isinstance(rel, LetRec) and self._blocks[_block(rel)] == 1:
            rel = block_demand(rel, _may_enter, _plain) or rel
        if isinstance(rel, Join):
            return self._join(rel)
        return with_children(rel, tuple(self.rel(c) for c in children(rel)))

    def _join(self, rel: Join) -> Rel:
        """Restricts a recursion on one side to what the other side demands."""
        sides = list(children(rel))
        for side, child in enumerate(sides):
            asked = meeting(rel, side) if isinstance(child, Recursive) and self._is_asked_only(child) else None
            if asked is None or not isinstance(child, Recursive):
                sides[side] = self.rel(child)
                continue
            new = self._restrict(child, asked)
            assert new is not None
            if asked.whole and isinstance(new, Recursive) and new.met == asked.columns:
                return new
            sides[side] = new
        return with_children(rel, tuple(sides))

    def _is_asked_only(self, rel: Recursive) -> bool:
        """Whether every reader of the recursion demands something that can be pushed into it."""
        readers = self._readers[id(rel)]
        return all(asked is not None and self._restrict(rel, asked) is not None for asked in readers)

    def _restrict(self, rel: Recursive, asked: Predicates | Meeting) -> Rel | None:
        key = (id(rel), (asked.columns, id(asked.source)) if isinstance(asked, Meeting) else asked)
        if key not in self._restricted:
            if isinstance(asked, Meeting):
                fixed = rel.binding in self._made or _is_fixed(rel)
                new = None if fixed else joined_demand(rel, asked, _entered, self._fresh)
            else:
                new = restricted(rel, asked, self._fresh)
            self._restricted[key] = (rel, asked, new)
        return self._restricted[key][2]

    def _fresh(self) -> int:
        self._binding += 1
        self._made.add(self._binding)
        return self._binding


def _block(rel: LetRec) -> tuple[int, ...]:
    return tuple(binding for binding, _ in rel.bindings)


def _blocks(root: Rel) -> Counter[tuple[int, ...]]:
    """How often each block occurs in the plan. A block that occurs several times is computed once, whole."""
    return Counter(_block(node) for node in nodes(root) if isinstance(node, LetRec))


def _readers(root: Rel) -> dict[int, list[Predicates | Meeting | None]]:
    """For each recursion, what each of its readers demands; None: all of it."""
    found: dict[int, list[Predicates | Meeting | None]] = {id(root): [None]}
    for node in nodes(root):
        for side, child in enumerate(children(node)):
            if isinstance(child, Recursive):
                asked = conjuncts(node.predicate) if isinstance(node, Filter) else meeting(node, side)
                found.setdefault(id(child), []).append(asked)
    return found


def restricted(rel: Recursive, asked: Predicates, fresh: Callable[[], int]) -> Rel | None:
    """The recursion's rows that meet the conditions, computing fewer rows; None: no rule saves anything."""
    if _is_fixed(rel):
        return None
    movable = tuple(p for p in asked if _may_enter(p))
    copied = tuple(p for p in movable if _entered(rel, (p,)) is not None)
    new: Rel | None = None
    if copied:
        new, asked = _entered(rel, copied), tuple(p for p in asked if p not in copied)
    elif wanted := constants(movable):
        new = turned(rel, wanted, fresh) or by_demand(rel, wanted, movable, fresh)
    if new is None:
        return None
    return Filter(new, conjunction(asked)) if asked else new


def _is_fixed(rel: Recursive) -> bool:
    return bool(rel.demanded or rel.met) or rel_is_volatile(rel)


def _may_enter(predicate: Scalar) -> bool:
    own = [part for part in walk(predicate) if isinstance(part, Column)]
    if not own or can_raise(predicate) or reads_clock(predicate):
        return False
    return not any(c.type.has_equality_class for c in own)


def _entered(rel: Recursive, predicates: Predicates) -> Recursive | None:
    """Rule 1: the recursion started from the base rows that meet the predicates; None: the step does not commute."""
    step = push_down(Filter(rel.step, conjunction(predicates)))
    plain = {_plain(p) for p in predicates}
    if not empty_without(step, rel.binding) or not _meets(step, rel.binding, plain):
        return None
    base = push_down(Filter(rel.base, conjunction(predicates)))
    return replace(rel, base=base, step=_without(step, rel.binding, plain), demanded=predicates)


def _plain(predicate: Scalar) -> Scalar:
    """The predicate with all columns nullable: rewrites differ in what they know of NULLs."""
    return rebuild(predicate, COLUMNS, lambda e: replace(e, nullable=True))


def _meets(rel: Rel, binding: int, plain: set[Scalar]) -> bool:
    """Whether each reference to the binding stands directly under all of the predicates."""
    if isinstance(rel, Filter) and isinstance(rel.input, Reference) and rel.input.binding == binding:
        return plain <= {_plain(p) for p in conjuncts(rel.predicate)}
    if isinstance(rel, Reference):
        return rel.binding != binding
    return all(_meets(child, binding, plain) for child in children(rel))


def _without(rel: Rel, binding: int, plain: set[Scalar]) -> Rel:
    """The step without the predicates on its references: all rows meet them now."""

    def change(node: Rel) -> Rel:
        if isinstance(node, Filter) and isinstance(node.input, Reference) and node.input.binding == binding:
            rest = tuple(p for p in conjuncts(node.predicate) if _plain(p) not in plain)
            return Filter(node.input, conjunction(rest)) if rest else node.input
        return node

    return bottom_up(rel, change)
