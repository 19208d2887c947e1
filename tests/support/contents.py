"""The contents of a new view's arrangements, in a form that allows comparing two ways of hydrating it."""

from __future__ import annotations

import numpy as np

from ivm.graph import NodeId
from ivm.hydration.adopt import keeping
from ivm.hydration.detached import Detached
from ivm.runtime.operator import Operator
from ivm.time import all_bits
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from planner.render.dataflow import Installed

Held = dict[int, list[Block]]
"""By node number of the plan (-1: the rows, -2: the errors): each spine's contents, sorted and consolidated; times are
loop vectors."""


def held(flow: Detached, installed: Installed) -> Held:
    """The contents of all new nodes that keep state."""
    places: dict[int, NodeId | None] = dict(enumerate(installed.places))
    places |= {-1: installed.output, -2: installed.errors}
    found = {}
    for number, place in places.items():
        if place is not None and keeping(flow, place):
            found[number] = _spines(flow._operators.get(place) or flow._seconds[place])
    return found


def _spines(operator: Operator) -> list[Block]:
    mask = (1 << all_bits(operator.scope.shape)) - 1
    found = []
    for spine in operator.spines():
        rows, times, diffs = spine.contents(1 << 20).arrays()
        found.append(sorted_block(Block.of(rows, times & mask, diffs), spine.order))
    return found


def different(one: Held, other: Held) -> list[int]:
    """The plan's nodes whose contents differ."""
    return sorted(n for n in one.keys() | other.keys() if not _same(one.get(n), other.get(n)))


def _same(one: list[Block] | None, other: list[Block] | None) -> bool:
    if one is None or other is None or len(one) != len(other):
        return False
    pairs = zip(one, other, strict=True)
    return all(np.array_equal(a, b) for x, y in pairs for a, b in zip(x.arrays(), y.arrays(), strict=True))


def updates(contents: Held) -> int:
    """The total number of updates."""
    return sum(block.n for blocks in contents.values() for block in blocks)
