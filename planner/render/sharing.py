"""Which nodes of a plan the dataflow has already, found by rendering the plan into a dataflow that makes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ivm.dataflow import Dataflow
from ivm.graph import Arrange, NodeId, NodeSpec, ScopeId, Threshold
from planner.expr.context import Context
from planner.physical.nodes import Plan, Table, TableErrors
from planner.render.dataflow import Renderer, Rendering
from planner.render.holdings import users

_FIRST = -(2 * 10**9)
"""Less than all ids that a loop's key gives to its own nodes."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """What a plan shares. ``users``: for each node that exists, the relations that use it.

    The rows of stored relations are not counted.
    """

    users: Mapping[NodeId, tuple[int, ...]]
    operators: int
    arrangements: int
    arranged: int
    """The plan's nodes, those of them that arrange, and those arrangements that exist already."""
    once: bool = False
    """The plan runs once: it creates no lasting nodes and reads only whole relations' arrangements."""

    def relations(self) -> tuple[int, ...]:
        """All relations that something is shared with."""
        return tuple(sorted({r for known in self.users.values() for r in known}))


def sharing(plan: Plan, renderer: Renderer) -> Sharing:
    """What the plan would share if it were rendered now. Any thread may ask. Creates and interns nothing."""
    places = _Finding(Renderer(
        _Nowhere(), renderer.context, renderer.stored.copy(), renderer.known.copy(), renderer.loops.copy()
    ), plan).all()  # fmt: skip
    use = users(renderer.stored.copy())
    counted = [i for i, node in enumerate(plan.nodes) if not isinstance(node, Table | TableErrors)]
    found = {NodeId(i): tuple(use.get(p, ())) for i in counted if (p := places[i]) is not None and p > 0}
    arranged = [i for i in counted if isinstance(plan.nodes[i], Arrange | Threshold)]
    return Sharing(found, len(counted), len(arranged), sum(i in found for i in arranged))


def reading(plan: Plan, renderer: Renderer) -> Sharing:
    """The arrangements in which a one-shot plan looks up rows, with the relations that use them."""
    use = users(renderer.stored.copy())
    found: dict[NodeId, tuple[int, ...]] = {}
    for i, stored in enumerate(plan.stored):
        place = None if stored is None or stored[0] not in renderer.stored else renderer.arrangement(*stored)
        if place is not None:
            found[NodeId(i)] = tuple(use.get(place, ()))
    arranged = sum(isinstance(node, Arrange | Threshold) for node in plan.nodes)
    return Sharing(found, len(plan.nodes), arranged, len(found), once=True)


class _Nowhere(Dataflow):
    """A dataflow that numbers nodes without making them; their ids are negative."""

    def __init__(self) -> None:
        super().__init__()
        self._last = _FIRST

    def _next(self) -> int:
        self._last -= 1
        return self._last

    def scope(
        self, parent: ScopeId | None = None, limit: int | None = None, return_at_limit: bool = False, stride: int = 0,
        width: int | None = None,
    ) -> ScopeId:  # fmt: skip
        return ScopeId(self._next())

    def add(self, spec: NodeSpec) -> NodeId:
        return NodeId(self._next())

    def connect(self, variable: NodeId, body: NodeId) -> None:
        return None


class _Finding(Rendering):
    def constant_context(self) -> Context:
        context = self.renderer.context
        return replace(context, dictionary=context.dictionary.scratch())


def summary(found: Sharing, names: Callable[[int], str]) -> str | None:
    """A line of text about what is shared; None: nothing to say."""
    if not found.users:
        return None if found.once else "shared: nothing"
    with_ = ", ".join(names(r) for r in found.relations())
    arrangements = f"{found.arranged} of {found.arrangements} arrangements"
    if found.once:
        return f"shared: {arrangements}, with {with_}"
    return f"shared: {len(found.users)} of {found.operators} operators, {arrangements}, with {with_}"
