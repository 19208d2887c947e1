"""Running one fragment over one part: (what its traces hold, what arrives) → (what they hold now, what goes on).

It needs nothing but this package: so it runs wherever Spark puts it. The values of interned ids come with the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ivm import graph
from ivm.batch import Block
from ivm.graph import (
    Arrange,
    AsOf,
    Concat,
    Consolidate,
    Errors,
    Join,
    Negate,
    NodeId,
    NodeSpec,
    Project,
    Threshold,
)  # fmt: skip
from ivm.live import dispose
from ivm.piece import Layers, Piece
from planner import moves
from planner.bound import Bound
from planner.context import Context
from planner.fragment import Exit, Fragment, renumbered
from planner.physical import Group, Map, Node
from planner.places import parts_of


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


def run_fragment(
    fragment: Fragment,
    context: Context,
    traces: Sequence[Layers] | None,
    arrived: Mapping[NodeId, Block],
    parts: int,
    whole: bool = True,
) -> Ran:
    """Runs it over a part whose traces hold ``traces`` (None: nothing yet), with updates that have ``arrived`` at its
    ports: times from 1 on, all at once. ``parts``: of each fragment. ``whole``: all that traces hold is wanted.

    Raises what an operator raises, and 0A000 as ``Piece.resume`` has it. An error of a row is data, as in a view.
    """
    piece = Piece(context.dictionary.arena)
    try:
        fed: dict[NodeId, NodeId] = {}
        places = _ports(piece, fragment, fed)
        for number, node in fragment.nodes:
            places[number] = piece.add(_spec(renumbered(node, places), context))
        exits = [_exit(piece, out, places) for out in fragment.exits]
        piece.resume(traces)
        read = piece.size
        for port, block in arrived.items():
            piece.feed(fed[port], *block.arrays())
        piece.run()
        emitted = {node: piece.emitted(node) for node in dict.fromkeys(exits)}
        sent = tuple(
            sent for out, node in zip(fragment.exits, exits, strict=True) for sent in _spread(out, emitted[node], parts)
        )
        return Ran(sent, tuple(piece.traces() if whole else piece.layers()), read)
    finally:
        dispose(piece)


def _ports(piece: Piece, fragment: Fragment, fed: dict[NodeId, NodeId]) -> dict[NodeId, NodeId]:
    """Where the ports' rows are; ``fed``: their inputs."""
    places: dict[NodeId, NodeId] = {}
    for port in fragment.ports:
        place = fed[port.node] = piece.add(graph.Input(port.width, port.diff_width))
        if fragment.keyed:
            place = piece.add(Arrange(place, moves.identity(port.width), port.key_width, port.order))
        places[port.node] = place
    return places


def _spec(node: Node, context: Context) -> NodeSpec:
    match node:
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
    order = np.argsort(part, kind="stable")
    ends = np.cumsum(np.bincount(part, minlength=parts))
    found = []
    for number in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
        chosen = order[ends[number - 1] if number else 0 : ends[number]]
        taken = Block.of(rows[chosen], times[chosen], diffs[chosen])
        found.append(Sent(out.fragment, number, out.port.node, taken))
    return found
