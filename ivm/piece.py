"""A dataflow over a part of the data, made for one pass: what its arrangements hold comes from outside and goes back.

Outside of loops an operator knows nothing but what arrangements hold (``ivm.operators``): a join, a threshold or a
reduce asks the traces that it reads what stood before. So a dataflow that is made anew of the same specs, and given the
same traces, goes on as if it had never ended. ``traces`` stand in an order that follows from the specs alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ivm.arena import Arena
from ivm.batch import Block
from ivm.dataflow import Dataflow
from ivm.errors import unsupported
from ivm.graph import NodeId
from ivm.hydrate import rank, replay_into
from ivm.operators.lock import LockOperator
from ivm.operators.stand_in import RecordOperator
from ivm.scheduler import Operator
from ivm.shards import sorted_block
from ivm.spine import Spine

Layers = Sequence[Block]
"""What one trace holds: sorted, consolidated blocks, their sum."""


class Piece(Dataflow):
    """Calls come in this order: ``add`` and ``tap``, ``resume``, ``feed``, ``run``, then ``emitted`` and the traces."""

    def __init__(self, arena: Arena | None = None) -> None:
        super().__init__(arena)
        self._taps: dict[NodeId, RecordOperator] = {}
        self._kept: list[tuple[Spine, RecordOperator]] = []

    def tap(self, node: NodeId) -> None:
        """Lets ``emitted`` tell what the node emits."""
        if node not in self._taps:
            self._taps[node] = self._record(self._find(node))

    def _record(self, operator: Operator) -> RecordOperator:
        found = RecordOperator(self._core, self._root, operator)
        self._dormant.append(found)
        return found

    def resume(self, traces: Sequence[Layers] | None) -> None:
        """Go on where ``traces`` were taken; None: nothing has been yet. 0A000 with a loop, or a locked join."""
        kept = [operator for operator in self._dormant if operator.spines()]
        if self._scopes or any(isinstance(operator, LockOperator) for operator in kept):
            raise unsupported("taking up a recursion or a locked join")
        self._kept = [(spine, self._record(operator)) for operator in kept for spine in operator.spines()]
        fresh, self._dormant = self._dormant, []
        self._ranks = rank(self._root, fresh, self._ranks)
        replay_into(self._core, fresh)
        if traces is None:
            return
        self.refresh_arena()
        for (spine, _), layers in zip(self._kept, traces, strict=True):
            for block in layers:
                spine.insert(block, True)
        for operator in fresh:
            operator.resume()

    def run(self) -> None:
        """One pass over all that was fed. Raises what an operator raises; then nothing here is to be used any more."""
        core = self._core
        core.newest = self._fed
        self.refresh_arena()
        core.begin()
        core.hydrating = True
        try:
            self._root.run_pass(0)
        finally:
            core.hydrating = False

    def emitted(self, node: NodeId) -> Block:
        """What a tapped node has emitted, consolidated, at the times that it is of."""
        return sorted_block(self._taps[node].take())

    def layers(self) -> list[Block]:
        """For each trace what has come to it, one more layer; all times 0."""
        return [_timeless(record.take(), spine) for spine, record in self._kept]

    def traces(self) -> list[Block]:
        """For each trace all that it holds, in one layer; all times 0."""
        return [_timeless(spine.contents(self._core.newest), spine) for spine, _ in self._kept]

    @property
    def size(self) -> int:
        """How many updates the traces hold."""
        return sum(spine.count for spine, _ in self._kept)


def _timeless(block: Block, spine: Spine) -> Block:
    rows, times, diffs = block.arrays()
    return sorted_block(Block.of(rows, np.zeros_like(times), diffs), spine.order)
