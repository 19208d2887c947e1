"""Runs one fragment over one part: (its traces, arriving updates) → (what is added to them, outgoing updates).

Needs only this package, so it runs wherever Spark puts it. The values of interned ids come with the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ivm import graph
from ivm.contents import dispose
from ivm.graph import Arrange, Keyed, Linear, NodeId, NodeSpec, Project, ScopeId
from ivm.partial import Layers, PartialDataflow
from ivm.time import last_width
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from planner import gathers
from planner.distributed.fragment import Exit, Fragment, Loops, renumbered
from planner.distributed.partitioning import parts_of
from planner.expr.context import Context
from planner.physical.nodes import Group, LoopVariable, Map, Node
from planner.render.programs import Bound


@dataclass(frozen=True, slots=True)
class Sent:
    """Updates for a port of one part of a fragment."""

    fragment: int
    part: int
    port: NodeId
    block: Block


@dataclass(frozen=True, slots=True)
class Ran:
    """``sent``: outgoing updates. ``traces``: for each trace, what was added to it."""

    sent: tuple[Sent, ...]
    traces: tuple[Block, ...]
    read: int
    """The updates that the traces held before."""
    owed: tuple[tuple[NodeId, Block], ...] = ()
    """What nodes in loops owe to later loop vectors of this part."""


def run_fragment(
    fragment: Fragment,
    context: Context,
    traces: Sequence[Layers] | None,
    arrived: Mapping[NodeId, Block],
    parts: int,
    vector: int = 0,
    owed: Mapping[NodeId, Block] | None = None,
    now: Sequence[Layers] | None = None,
    timed: bool = False,
) -> Ran:
    """Runs a fragment over a part, with all arriving updates at once.

    ``traces``: what the part's traces hold (None: nothing yet). ``arrived``: updates by port, at times from 1 on.
    ``parts``: the number of parts of each fragment.

    At ports in loops updates must be of one loop ``vector``; ``owed`` is what nodes owe at that vector. Nodes with
    traces leave later vectors to later runs; only linear nodes run ahead. If several runs make up one pass over
    ordinals, ``now`` is what earlier ones added to the traces, and ``timed`` keeps the ordinals in what this one adds.

    Raises what an operator raises, and 0A000 like ``PartialDataflow.resume``. An error of a row is data, as in a view.
    """
    flow = PartialDataflow(context.dictionary.arena)
    try:
        fed: dict[NodeId, NodeId] = {}
        places = _build(flow, fragment, context, fed)
        exits = [_exit(flow, out, places) for out in fragment.exits]
        flow.resume(traces, now)
        read = flow.size
        inside = {port.node for port in fragment.ports if port.scope is not None}
        for port, block in arrived.items():
            if port in inside:
                flow.give(fed[port], block if fragment.keyed else sorted_block(block), vector)
            else:
                flow.give(fed[port], block, 0)
        for number, block in (owed or {}).items():
            flow.owe(places[number], block, vector)
        flow.run()
        in_rounds = bool(fragment.loops.scopes)  # where updates that cancel must not look like another round's work
        emitted = {node: flow.emitted(node, in_rounds) for node in dict.fromkeys(exits)}
        sent = tuple(
            sent for out, node in zip(fragment.exits, exits, strict=True) for sent in _spread(out, emitted[node], parts)
        )
        owing = ((n, flow.owed(places[n])) for n, _ in fragment.nodes)
        later = ((n, found) for n, found in owing if found is not None and found.n)
        return Ran(sent, tuple(flow.layers(timed)), read, tuple(later))
    finally:
        dispose(flow)


def settled(fragment: Fragment, context: Context, traces: Sequence[Layers] | None) -> list[Block]:
    """The contents of a part's traces, each as one block, without ordinals."""
    flow = PartialDataflow(context.dictionary.arena)
    try:
        _build(flow, fragment, context, {})
        flow.resume(traces)
        return flow.traces()
    finally:
        dispose(flow)


def _build(
    flow: PartialDataflow, fragment: Fragment, context: Context, fed: dict[NodeId, NodeId]
) -> dict[NodeId, NodeId]:
    """Builds the fragment's nodes; returns their places. ``fed`` receives the inputs of its ports."""
    scopes = _scopes(flow, fragment.loops)
    places = _ports(flow, fragment, fed, scopes)
    for number, node in fragment.nodes:
        places[number] = flow.add(_spec(renumbered(node, places), context, scopes))
    for variable, body in fragment.loops.connections:
        flow.connect(places[variable], places[body])
    return places


def _scopes(flow: PartialDataflow, loops: Loops) -> list[ScopeId]:
    made: list[ScopeId] = []
    for scope in loops.scopes:
        bounds = (scope.limit, scope.return_at_limit, scope.stride, last_width(scope.shape))
        made.append(flow.scope(None if scope.parent is None else made[scope.parent], *bounds))
    for number in loops.overflowing:
        flow.overflowing(made[number])
    return made


def _ports(
    flow: PartialDataflow, fragment: Fragment, fed: dict[NodeId, NodeId], scopes: Sequence[ScopeId]
) -> dict[NodeId, NodeId]:
    """Builds the ports; returns the places of their rows. ``fed`` receives their inputs."""
    places: dict[NodeId, NodeId] = {}
    for port in fragment.ports:
        scope = None if port.scope is None else scopes[port.scope]
        place = fed[port.node] = flow.add_input(scope, port.width, port.diff_width)
        if fragment.keyed:
            place = flow.add(Arrange(place, gathers.identity(port.width), port.key_width, port.order))
        places[port.node] = place
    return places


def _spec(node: Node, context: Context, scopes: Sequence[ScopeId]) -> NodeSpec:
    match node:
        case LoopVariable():
            return graph.Variable(scopes[node.scope], node.width)
        case Map():
            return graph.FlatMap(node.input, Bound(node.program, context))
        case Group():
            return graph.Reduce(node.input, node.fold.bind(context))
        case Linear() | Keyed():
            return node
    raise AssertionError(node)


def _exit(flow: PartialDataflow, out: Exit, places: Mapping[NodeId, NodeId]) -> NodeId:
    node = places[out.node]
    if out.gather is not None:
        node = flow.add(Project(node, out.gather))
    flow.watch(node)
    return node


def _spread(out: Exit, block: Block, parts: int) -> list[Sent]:
    """Splits updates by the part of their key; each part keeps their order."""
    if not block.n:
        return []
    rows, times, diffs = block.arrays()
    part = parts_of(rows, out.port.key_width, parts)
    order = np.argsort(part.astype(np.uint16), kind="stable")  # numpy sorts uint16 by radix
    ends = np.cumsum(np.bincount(part, minlength=parts))
    found = []
    for number in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
        chosen = order[ends[number - 1] if number else 0 : ends[number]]
        taken = Block.of(rows[chosen], times[chosen], diffs[chosen])
        found.append(Sent(out.fragment, number, out.port.node, taken))
    return found
