"""A dataflow: feeding and stepping its network, and what readers see of it.

One thread owns a dataflow; published roots may be read from any. Nodes start without users, but for Inputs and Outputs
with one; any other node that must outlive its consumers, or is to be published, is to be retained.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ivm.arena import Arena
from ivm.budget import Budget, Share
from ivm.counters import Counters
from ivm.errors import SqlError
from ivm.graph import NodeId
from ivm.network import Network
from ivm.operators.arrange import ArrangeOperator, OutputOperator
from ivm.operators.feedback_alias import alias_variables
from ivm.operators.linear import InputOperator
from ivm.operators.lock import LockOperator
from ivm.operators.trace_import import RecordOperator
from ivm.rows import Words
from ivm.runtime.context import Mode
from ivm.runtime.operator import Operator
from ivm.runtime.ranks import rank
from ivm.runtime.replay import replay_into
from ivm.runtime.root import Root
from ivm.runtime.scheduler import run_pass
from ivm.runtime.steps import FlowRun
from ivm.time import check_ordinal
from ivm.trace.batch import Batch, Block
from ivm.trace.spine import Spine
from ivm.trace.trace import Version


class Changes(NamedTuple):
    """An output's updates: rows int64[n, width], times (ordinals) int64[n], diffs int64[n], consolidated, none 0."""

    rows: Words
    times: Words
    diffs: Words


class Dataflow(Network):
    """Nodes are added dormant and brought to the present by ``hydrate``; ``feed`` and ``step`` move time on."""

    def __init__(
        self, arena: Arena | None = None, cancel: threading.Event | None = None, once: bool = False,
        beside: Dataflow | None = None,
    ) -> None:  # fmt: skip
        """``once``: it is hydrated once and thrown away, so that all of its times are one. ``beside``: a running
        dataflow into which its nodes are moved later."""
        mode = Mode.ONCE if once else Mode.MAINTAINED if beside is None else Mode.DETACHED
        super().__init__(arena, cancel, mode, beside)
        self._steps = FlowRun(self._root)
        self._fed = 0
        self._least = 1 << 62
        self._published = Root({}, 0)
        self._holds: dict[object, int] = {}

    # -- running ------------------------------------------------------------------------------------------------

    @property
    def cancel(self) -> threading.Event:
        """Set from any thread, it ends running loops at their next round: 57014."""
        return self._context.cancel

    def end_loop(self, nodes: Iterable[NodeId], others: Iterable[NodeId]) -> bool:
        """From any thread: ends the loop that runs, if one of ``nodes`` is in it and none of the ``others``. What
        depends on it fails with 57014. Whether it did."""
        running = self._context.running
        if running is None or not self._is_in(nodes, running) or self._is_in(others, running):
            return False
        self._context.abandoned = running
        return True

    def _is_in(self, nodes: Iterable[NodeId], loop: object) -> bool:
        operators = (self._operators.get(node) for node in nodes)
        return any(operator is not None and operator.scope.outermost is loop for operator in operators)

    @property
    def newest(self) -> int:
        """The newest ordinal of what it has been fed and has begun to step."""
        return self._context.newest

    @property
    def failed(self) -> int:
        """How many operators have failed so far."""
        return self._context.failed

    def limit_memory(self, budget: Budget) -> None:
        """53200 where what is hydrated in passing takes more memory (raised), or an operator or a loop in one step (a
        failure of what is downstream)."""
        self._context.share = Share(budget)

    @property
    def counters(self) -> Counters:
        """How much work kernels have done so far."""
        stats = self._context.stats
        merged = sum(spine.merged for operator in self._operators.values() for spine in operator.spines())
        return Counters.of(stats, merged + self._merged_before, self._steps.looked, self._context.called)

    def feed(self, node: NodeId, rows: Words, times: Words | int, diffs: Words) -> None:
        """Feeds an Input: rows int64[n, width], times (ordinals, none below the newest stepped, or one for all) and
        diffs int64[n], or int64[n, diff_width]."""
        operator = self._operators[node]
        assert isinstance(operator, InputOperator)
        count = len(diffs)
        if count == 0:
            return
        assert rows.shape == (count, operator.width)
        if isinstance(times, int):
            least = most = times
        else:
            assert len(times) == count
            least, most = int(times.min()), int(times.max())
        assert least >= self._context.newest, "updates come in order of ordinals"
        if most >> (63 - self._rounds):
            check_ordinal(most, self._rounds)
        operator.feed(rows, times, diffs)
        self._fed = max(self._fed, most)
        self._least = min(self._least, least)
        if operator.rank >= 0 and not operator.queued:
            operator.wake()

    def feed_arranged(self, node: NodeId, kept: NodeId, batch: Batch, ordinal: int) -> None:
        """Feeds an Input, and nothing else before the next step, with rows that were arranged beside the dataflow: a
        batch of its Arrange ``kept``, which becomes a layer of it as it is, at this ordinal.

        Cost: next to none; where others read the Input or the Arrange, a time and a diff for each row, and the rows
        where the Arrange moves their words.
        """
        source, own = self._operators[node], self._operators[kept]
        assert isinstance(source, InputOperator)
        assert isinstance(own, ArrangeOperator)
        assert own.source is source, "an arrangement of the Input's rows"
        assert ordinal >= self._context.newest, "updates come in order of ordinals"
        batch.stamp(ordinal)
        others = len(source.consumers) > 1
        block = Block.of(*batch.arrays()) if others or own.consumers else None
        if others:
            assert block is not None
            source.give(own.restored(block))
        own.give(batch, block)
        self._fed = max(self._fed, ordinal)
        self._least = min(self._least, ordinal)

    def step(self, until: float = math.inf) -> bool:
        """Runs everything fed to completion, all ordinals in one pass. Raises 57014 when a loop was cancelled; what
        depends on that loop has then failed, the rest is complete.

        ``until``: a time of ``perf_counter``; False: it came before the end, and the next call, before which nothing
        else may be asked of the dataflow, goes on.
        """
        context = self._context
        if not context.paused:
            context.begin()
            self.refresh_arena()
            context.again = self._least <= context.newest
            self._least = 1 << 62
        context.paused, context.deadline = False, until
        try:
            self._run()
        finally:
            context.deadline = math.inf
        context.again &= context.paused
        return not context.paused

    def _run(self) -> None:
        context = self._context
        context.newest = self._fed
        if context.mode is not Mode.MAINTAINED:  # what is called once is not worth compiling
            run_pass(self._root, 0)
        else:
            self._steps.run()
        if not context.paused:
            context.running = context.abandoned = None
        if not context.paused:
            context.stepped_word[0] = context.newest
        if context.failing is not None and not context.paused:
            error, context.failing = context.failing, None
            raise error

    def hydrate(self, nodes: Sequence[NodeId] | None = None) -> None:
        """Brings all nodes added since the last call to the present. What existing nodes hold is replayed into the
        new ones only; times of hydrated updates may be the since. Raises 57014 when cancelled, 53200 past the
        limit: the new nodes have failed then."""
        del nodes
        if self._root.heap:
            self.step()
        fresh = self._ranked()
        restore = replay_into(self._context, fresh)
        context = self._context
        context.begin()
        mode = context.mode
        if mode is Mode.MAINTAINED:
            context.mode = Mode.HYDRATING
        try:
            for leave in self._root.leaving:
                leave.run(0)
            self._root.leaving.clear()
            for operator in fresh:
                if operator.starts:
                    operator.wake()
            self._run()
        except SqlError as error:
            for operator in fresh:
                operator.fail(error.with_traceback(None))
            raise
        finally:
            context.mode = mode
            for operator, block in restore:
                operator.out = block
            for operator in fresh:
                self._watch(operator)

    def _ranked(self) -> list[Operator]:
        """The operators that were added since the last hydration, ranked but not linked yet."""
        self.refresh_arena()
        fresh = self._dormant
        self._dormant = []
        aliases = alias_variables(fresh)
        if aliases:
            fresh = [operator for operator in fresh if id(operator) not in aliases]
            for delayed in aliases.values():
                self._operators[delayed.id] = delayed
        self._ranks = rank(self._root, fresh, self._ranks)
        for operator in fresh:
            operator.scope.changed(operator)
        return fresh

    def load(self, node: NodeId, rows: Words, diffs: Words) -> None:
        """What a Lock held before: it counts from the next step on."""
        operator = self._operators[node]
        assert isinstance(operator, LockOperator)
        operator.load(rows, diffs)

    def changes(self, node: NodeId) -> Changes:
        """Drains an Output: its updates since the last call. Raises nothing when it has failed: see ``failure``."""
        operator = self._operators[node]
        assert isinstance(operator, OutputOperator)
        return Changes(*operator.changes())

    def failure(self, node: NodeId) -> SqlError | None:
        """Why the node's contents are no longer maintained, if so."""
        return self._operators[node].error

    def allow_compaction(self, ordinal: int) -> None:
        """Times up to the ordinal may become the ordinal; nothing is read at lesser times any more. What is hydrated
        beside the dataflow holds its times until it is done."""
        if self._holds:
            ordinal = min(ordinal, *self._holds.values())
        if ordinal > self._context.since:
            self._context.compact(ordinal)

    @property
    def held(self) -> bool:
        """Whether something that is hydrated beside it holds times."""
        return bool(self._holds)

    def merging(self) -> list[Spine]:
        """The spines with merges in progress, for ``lend``; none in the middle of a step."""
        if self._context.paused:
            return []
        return [spine for operator in self._operators.values() for spine in operator.spines() if spine.merging]

    def publish(self) -> Root:
        """The present versions of all arrangements outside of loops that have users.

        Cost: the spines that changed since the last.
        """
        changed = self._context.changed
        upper = self._context.newest
        if changed:
            versions: dict[int, Version | None] = {}
            for spine in changed:
                spine.changed = False
                if self._users.get(NodeId(spine.node)):
                    versions[spine.node] = Version(spine, upper)
            changed.clear()
            self._published = self._published.changed(versions, upper)
        elif upper != self._published.upper:
            self._published = self._published.changed({}, upper)
        return self._published

    # -- for what is hydrated beside it -------------------------------------------------------------------------

    def hold(self, holder: object) -> None:
        """Keeps the since where it is until ``drop_hold``: ``holder`` reads at times from it on."""
        self._holds[holder] = self._context.since

    def drop_hold(self, holder: object) -> bool:
        """Ends what ``hold`` began; whether it was held."""
        return self._holds.pop(holder, None) is not None

    def record(self, operator: Operator) -> RecordOperator:
        """Gathers what an operator outside of loops emits from now on."""
        self._ranks += 1
        record = RecordOperator(self._context, self._root, operator)
        record.rank = self._ranks
        self._root.members[record.rank] = record
        operator.link(record)
        return record

    def end_record(self, record: RecordOperator) -> None:
        """Ends what ``record`` began."""
        record.source.unlink(record)
        self._root.remove(record)

    def keep(self, node: NodeId) -> bool:
        """Keeps a node that is in use from being freed, until ``end_keep``; whether it is in use."""
        used = self._users[node] > 0 or bool(self._operators[node].consumers)
        if used:
            self._users[node] += 1
        return used

    def end_keep(self, nodes: Sequence[NodeId]) -> None:
        """Ends what ``keep`` began, and frees those of the nodes that nothing uses any more."""
        for node in nodes:
            self._users[node] -= 1
            if not self._users[node]:
                self._withdraw(node)
        for node in nodes:
            if node in self._operators and not self._users[node] and not self._operators[node].consumers:
                self.release(node)

    # -- releasing ----------------------------------------------------------------------------------------------

    def retain(self, node: NodeId) -> None:
        """One more user of the node; a Threshold or Reduce keeps its rows for peeks from now on."""
        self._users[node] += 1
        operator = self._operators[node]
        if operator.ARRANGED:
            self._arranged(node)
            if operator.rank >= 0:
                self._watch(operator)

    def release(self, node: NodeId) -> None:
        """One user less. A node without users and consumers is freed, and then what only it has used."""
        self._users[node] = max(0, self._users[node] - 1)
        if not self._users[node]:
            self._withdraw(node)
        self._release_unused(self._operators[node])

    def _withdraw(self, node: NodeId) -> None:
        """Stops publishing an arrangement."""
        spine = self._operators[node].spine
        if spine is not None:
            spine.watch = None
        if node in self._published:
            self._published = self._published.changed({node: None}, self._published.upper)
