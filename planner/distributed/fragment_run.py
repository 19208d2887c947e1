"""Running one fragment over one part: (what its traces hold, what arrives) → (what they hold now, what goes on).

It needs nothing but this package: so it runs wherever Spark puts it. The values of interned ids come with the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ivm import graph
from ivm.contents import dispose
from ivm.graph import (
    Arrange,
    AsOf,
    Concat,
    Consolidate,
    Delay,
    Errors,
    Join,
    Leave,
    Negate,
    NodeId,
    NodeSpec,
    Overflow,
    Project,
    ScopeId,
    Threshold,
)  # fmt: skip
from ivm.partial import Layers, Piece
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
    """``sent``: what goes on. ``traces``: one block for each trace; all that it holds, or what has come to it."""

    sent: tuple[Sent, ...]
    traces: tuple[Block, ...]
    read: int
    """Updates that the traces held before."""
    owed: tuple[tuple[NodeId, Block], ...] = ()
    """What nodes in loops owe to later loop vectors of this part."""


def run_fragment(
    fragment: Fragment,
    context: Context,
    traces: Sequence[Layers] | None,
    arrived: Mapping[NodeId, Block],
    parts: int,
    whole: bool = True,
    vector: int = 0,
    owed: Mapping[NodeId, Block] | None = None,
    now: Sequence[Layers] | None = None,
    timed: bool = False,
) -> Ran:
    """Runs it over a part whose traces hold ``traces`` (None: nothing yet), with updates that have ``arrived`` at its
    ports: times from 1 on, all at once. ``parts``: of each fragment. ``whole``: all that traces hold is wanted.
    At ports in loops updates are of one loop ``vector``, at which the nodes of ``owed`` owe something; what is of later
    vectors, but for what linear nodes make of it, waits for them. Where several runs make up one pass over ordinals,
    ``now`` is what earlier ones have left in traces, and ``timed`` asks for it with its ordinals.

    Raises what an operator raises, and 0A000 as ``Piece.resume`` has it. An error of a row is data, as in a view.
    """
    piece = Piece(context.dictionary.arena)
    try:
        fed: dict[NodeId, NodeId] = {}
        places = _build(piece, fragment, context, fed)
        exits = [_exit(piece, out, places) for out in fragment.exits]
        piece.resume(traces, now)
        read = piece.size
        inside = {port.node for port in fragment.ports if port.scope is not None}
        for port, block in arrived.items():
            if port in inside:
                piece.give(fed[port], block if fragment.keyed else sorted_block(block), vector)
            else:
                piece.give(fed[port], block, 0)
        for number, block in (owed or {}).items():
            piece.owe(places[number], block, vector)
        piece.run()
        in_rounds = bool(fragment.loops.scopes)  # where what cancels out must not look like another round's work
        emitted = {node: piece.emitted(node, in_rounds) for node in dict.fromkeys(exits)}
        sent = tuple(
            sent for out, node in zip(fragment.exits, exits, strict=True) for sent in _spread(out, emitted[node], parts)
        )
        owing = ((n, piece.owed(places[n])) for n, _ in fragment.nodes)
        later = ((n, found) for n, found in owing if found is not None and found.n)
        return Ran(sent, tuple(piece.traces() if whole else piece.layers(timed)), read, tuple(later))
    finally:
        dispose(piece)


def settled(fragment: Fragment, context: Context, traces: Sequence[Layers] | None) -> list[Block]:
    """What a part's traces hold, each in one layer, without ordinals."""
    piece = Piece(context.dictionary.arena)
    try:
        _build(piece, fragment, context, {})
        piece.resume(traces)
        return piece.traces()
    finally:
        dispose(piece)


def _build(piece: Piece, fragment: Fragment, context: Context, fed: dict[NodeId, NodeId]) -> dict[NodeId, NodeId]:
    """The fragment's nodes in a dataflow: where each is; ``fed``: the inputs of its ports."""
    scopes = _scopes(piece, fragment.loops)
    places = _ports(piece, fragment, fed, scopes)
    for number, node in fragment.nodes:
        places[number] = piece.add(_spec(renumbered(node, places), context, scopes))
    for variable, body in fragment.loops.connections:
        piece.connect(places[variable], places[body])
    return places


def _scopes(piece: Piece, loops: Loops) -> list[ScopeId]:
    made: list[ScopeId] = []
    for scope in loops.scopes:
        bounds = (scope.limit, scope.return_at_limit, scope.stride, last_width(scope.shape))
        made.append(piece.scope(None if scope.parent is None else made[scope.parent], *bounds))
    for number in loops.overflowing:
        piece.overflowing(made[number])
    return made


def _ports(
    piece: Piece, fragment: Fragment, fed: dict[NodeId, NodeId], scopes: Sequence[ScopeId]
) -> dict[NodeId, NodeId]:
    """Where the ports' rows are; ``fed``: their inputs."""
    places: dict[NodeId, NodeId] = {}
    for port in fragment.ports:
        scope = None if port.scope is None else scopes[port.scope]
        place = fed[port.node] = piece.port(scope, port.width, port.diff_width)
        if fragment.keyed:
            place = piece.add(Arrange(place, gathers.identity(port.width), port.key_width, port.order))
        places[port.node] = place
    return places


def _spec(node: Node, context: Context, scopes: Sequence[ScopeId]) -> NodeSpec:
    match node:
        case LoopVariable():
            return graph.Variable(scopes[node.scope], node.width)
        case Leave() | Delay() | Overflow():
            return node
        case Map():
            return graph.FlatMap(node.input, Bound(node.program, context))
        case Group():
            return graph.Reduce(node.input, node.fold.bind(context))
        case Project() | Errors() | Concat() | Negate() | Consolidate() | Threshold() | Join() | AsOf():
            return node
    raise AssertionError(node)


def _exit(piece: Piece, out: Exit, places: Mapping[NodeId, NodeId]) -> NodeId:
    node = places[out.node]
    if out.gather is not None:
        node = piece.add(Project(node, out.gather))
    piece.tap(node)
    return node


def _spread(out: Exit, block: Block, parts: int) -> list[Sent]:
    """Updates by the part of their key; each keeps its order."""
    if not block.n:
        return []
    rows, times, diffs = block.arrays()
    part = parts_of(rows, out.port.key_width, parts)
    order = np.argsort(part.astype(np.uint16), kind="stable")  # which numpy sorts by radix
    ends = np.cumsum(np.bincount(part, minlength=parts))
    found = []
    for number in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
        chosen = order[ends[number - 1] if number else 0 : ends[number]]
        taken = Block.of(rows[chosen], times[chosen], diffs[chosen])
        found.append(Sent(out.fragment, number, out.port.node, taken))
    return found
