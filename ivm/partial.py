"""A dataflow over a part of the data, made for one pass: its arrangements' contents come from outside and go back.

Outside of loops all state of an operator is in arrangements (``ivm.operators``): a join, a threshold or a reduce reads
the earlier contents from its traces. So a dataflow that is built again from the same specs and given the same traces
continues as if it had never ended. The order of ``traces`` follows from the specs alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ivm.arena import Arena
from ivm.dataflow import Dataflow
from ivm.errors import unsupported
from ivm.graph import NodeId, ScopeId
from ivm.operators.lock import LockOperator
from ivm.operators.partial_input import Owed, PartialInputOperator, enter
from ivm.operators.trace_import import RecordOperator
from ivm.runtime.context import Mode
from ivm.runtime.operator import Operator
from ivm.runtime.ranks import rank
from ivm.runtime.replay import replay_into
from ivm.runtime.scheduler import run_pass
from ivm.time import all_bits
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from ivm.trace.spine import Spine

Layers = Sequence[Block]
"""The contents of one trace: the sum of sorted, consolidated blocks."""


_SAMPLE: Final = 1 << 14


class PartialDataflow(Dataflow):
    """Call its methods in this order: ``add``, ``add_input`` and ``watch``, ``resume``, ``give``, ``run``, then
    ``emitted`` and the traces."""

    def __init__(self, arena: Arena | None = None) -> None:
        super().__init__(arena)
        self._watched: dict[NodeId, RecordOperator] = {}
        self._kept: list[_Kept] = []
        self._owing: dict[NodeId, Owed] = {}

    def add_input(self, scope: ScopeId | None, width: int, diff_width: int = 1) -> NodeId:
        """An input for ``give``, outside of loops (None) or inside of one."""
        where = self._root if scope is None else self._scopes[scope]
        operator = PartialInputOperator(self._context, where, width, diff_width)
        node = operator.id = NodeId(next(self._ids))
        self._operators[node] = operator
        self._users[node] = 1
        self._dormant.append(operator)
        return node

    def overflowing(self, scope: ScopeId) -> None:
        """Declares that a variable of the loop has an Overflow somewhere: what other variables' bodies emit in the last
        round is dropped."""
        self._scopes[scope].overflows += 1

    def watch(self, node: NodeId) -> None:
        """Records what the node emits, for ``emitted``."""
        if node not in self._watched:
            self._watched[node] = self._record(self._find(node))

    def _record(self, operator: Operator) -> RecordOperator:
        found = RecordOperator(self._context, operator.scope, operator)
        self._dormant.append(found)
        return found

    def resume(self, traces: Sequence[Layers] | None, now: Sequence[Layers] | None = None) -> None:
        """Continues from ``traces`` as they were taken; None: from nothing. Raises 0A000 with a locked join. ``now``:
        further contents, at the ordinals in progress.

        What a threshold or reduce inside a loop owes to later rounds is passed separately: see ``owed``.
        """
        kept = [operator for operator in self._dormant if operator.spines()]
        if any(isinstance(operator, LockOperator) for operator in kept):
            raise unsupported("taking up a locked join")
        for operator in kept:
            self._kept += self._keep(operator, traces is None and now is None and not operator.scope.depth)
            if operator.scope.depth and operator.ARRANGED and operator.later is not None:
                operator.later = self._owing[operator.id] = Owed(operator, operator.key_width)
        fresh, self._dormant = self._dormant, []
        self._ranks = rank(self._root, fresh, self._ranks)
        replay_into(self._context, fresh)
        if traces is None and now is None:
            return
        self.refresh_arena()
        nothing: list[Layers] = [()] * len(self._kept)
        for kept_one, layers, fresh_layers in zip(self._kept, traces or nothing, now or nothing, strict=True):
            for block in layers:
                kept_one.spine.insert(_settled(block, kept_one.spine), True)
            for block in fresh_layers:
                kept_one.spine.insert(block, True)
            if kept_one.record is None:
                kept_one.before = kept_one.spine.contents(0)
        for operator in fresh:
            operator.resume()

    def _keep(self, operator: Operator, fresh: bool) -> list[_Kept]:
        spines = operator.spines()
        if not spines:
            return []
        record = None if fresh else self._record(operator)
        return [_Kept(spines[0], record), *(_Kept(spine, None) for spine in spines[1:])]

    def give(self, node: NodeId, block: Block, vector: int) -> None:
        """Feeds updates to an input, which takes ownership of the block. Inside of a loop all are at one loop vector;
        outside, where it is 0, times are ordinals, none below those in the traces."""
        operator = self._operators[node]
        assert isinstance(operator, PartialInputOperator)
        operator.given = block
        if block.n:
            times = block.arrays()[1]
            self._fed = max(self._fed, int(times.max()) >> all_bits(operator.scope.shape))
        enter(operator.scope, vector, operator)

    def owe(self, node: NodeId, block: Block, vector: int) -> None:
        """Restores what a node owed to a vector that is now due."""
        self._owing[node].owe(block, vector)
        enter(self._operators[node].scope, vector, self._operators[node])

    def owed(self, node: NodeId) -> Block | None:
        """What a node inside of a loop owes to later vectors; None if the node never owes."""
        owing = self._owing.get(node)
        if owing is None:
            return None
        owing.block.sync()
        return sorted_block(owing.block)

    def run(self) -> None:
        """Runs one pass over everything fed. Raises what an operator raises; the dataflow must not be used after
        that."""
        context = self._context
        context.newest = self._fed
        self.refresh_arena()
        context.begin()
        context.mode = Mode.HYDRATING
        try:
            run_pass(self._root, 0)
        finally:
            context.mode = Mode.MAINTAINED
        for operator in self._operators.values():
            if operator.error is not None:
                raise operator.error

    def emitted(self, node: NodeId, consolidated: bool = True) -> Block:
        """What a watched node has emitted, at its own times. Unless ``consolidated`` is required, it is returned as it
        came if consolidating would not make it much smaller."""
        found = self._watched[node].take()
        return found if not consolidated and _is_sparse(found) else sorted_block(found)

    def layers(self, timed: bool = False) -> list[Block]:
        """For each trace, what was added to it, as one more layer. Times are loop vectors (0 outside of loops), or with
        ``timed`` include the ordinals."""
        if timed:
            return [sorted_block(kept.come(), kept.spine.order) for kept in self._kept]
        return [kept.layer() for kept in self._kept]

    def traces(self) -> list[Block]:
        """For each trace, its whole contents in one layer; times as in ``layers``."""
        return [_timeless(kept.spine.contents(self._context.newest), kept.spine) for kept in self._kept]

    @property
    def size(self) -> int:
        """How many updates the traces hold."""
        return sum(kept.spine.count for kept in self._kept)


class _Kept:
    """A trace. ``record`` gathers what is added to it. None (a reduce's errors in a loop, or a trace that was empty):
    the additions are the difference to its contents ``before``."""

    __slots__ = ("before", "record", "spine")

    def __init__(self, spine: Spine, record: RecordOperator | None) -> None:
        self.spine, self.record = spine, record
        self.before = Block(spine.width, spine.diff_width)

    def come(self) -> Block:
        """What was added."""
        if self.record is not None:
            return self.record.take()
        if not self.before.n:
            return self.spine.contents(0)
        now, then = self.spine.contents(0).arrays(), self.before.arrays()
        rows, times = (np.concatenate(both) for both in zip(now[:2], then[:2], strict=True))
        return Block.of(rows, times, np.concatenate([now[2], -then[2]]))

    def layer(self) -> Block:
        """What was added, consolidated; times are loop vectors."""
        batch = self.spine.only
        if self.record is None and not self.before.n and not self.spine.shape and batch is not None and batch.at_once:
            return next(batch.timeless(batch.n))
        return _timeless(self.come(), self.spine)


def _settled(block: Block, spine: Spine) -> Block:
    """The block, its ordinals removed if it has any."""
    return _timeless(block, spine) if block.n and int(block.arrays()[1].max()) >> all_bits(spine.shape) else block


def _timeless(block: Block, spine: Spine) -> Block:
    rows, times, diffs = block.arrays()
    return sorted_block(Block.of(rows, times & ((1 << all_bits(spine.shape)) - 1), diffs), spine.order)


def _is_sparse(block: Block) -> bool:
    """Whether few of the updates are equal to others, judging by a sample from the start of a large block."""
    if block.n < 2 * _SAMPLE:
        return False
    some = Block.of(*(array[:_SAMPLE] for array in block.arrays()))
    return sorted_block(some).n > _SAMPLE // 2
