"""A dataflow: feeding and stepping its network, and what readers see of it.

One thread owns a dataflow; any thread may read published roots. Inputs and Outputs start with one user, all other nodes
with none; retain any other node that must outlive its consumers or is to be published.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ivm.arena import Arena
from ivm.budget import Budget, Share
from ivm.counters import Counters
from ivm.distinct import distinct
from ivm.errors import SqlError
from ivm.graph import NodeId
from ivm.moments import NEVER
from ivm.network import Network
from ivm.operators.arrange import ArrangeOperator, OutputOperator
from ivm.operators.feedback_alias import alias_variables
from ivm.operators.linear import InputOperator
from ivm.operators.lock import LockOperator
from ivm.operators.trace_import import RecordOperator
from ivm.rows import Words
from ivm.runtime.context import EndedBy, Mode, TooSlow
from ivm.runtime.operator import Operator
from ivm.runtime.ranks import rank
from ivm.runtime.replay import replay_into
from ivm.runtime.root import Root
from ivm.runtime.scheduler import run_pass
from ivm.runtime.steps import FlowRun
from ivm.stops import Stop
from ivm.time import check_ordinal
from ivm.trace.batch import Batch, Block
from ivm.trace.spine import Spine
from ivm.trace.trace import Version


class Changes(NamedTuple):
    """An output's updates: rows int64[n, width], times (ordinals) int64[n], diffs int64[n], consolidated (no zero
    diffs)."""

    rows: Words
    times: Words
    diffs: Words


class Exchange(NamedTuple):
    """Another source for a Switch. ``rows`` and ``diffs``: what turns what it has emitted so far into what the new
    source holds."""

    switch: NodeId
    source: NodeId
    rows: Words
    diffs: Words


class Dataflow(Network):
    """Nodes are added dormant and brought up to date by ``hydrate``; ``feed`` and ``step`` advance time."""

    def __init__(
        self, arena: Arena | None = None, cancel: threading.Event | None = None, once: bool = False,
        beside: Dataflow | None = None,
    ) -> None:  # fmt: skip
        """``once``: it is hydrated once and discarded, so all its times are equal. ``beside``: a running dataflow into
        which its nodes are moved later."""
        mode = Mode.ONCE if once else Mode.MAINTAINED if beside is None else Mode.DETACHED
        super().__init__(arena, cancel, mode, beside)
        self._steps = FlowRun(self._root)
        self._fed = 0
        self._least = 1 << 62
        self._published = Root({}, 0)
        self._moved: set[NodeId] = set()
        self._holds: dict[object, int] = {}

    # -- running ------------------------------------------------------------------------------------------------

    @property
    def cancel(self) -> threading.Event:
        """The event that, set from any thread, ends running loops at their next round with 57014."""
        return self._context.cancel

    def end_loop(self, nodes: Iterable[NodeId], others: Iterable[NodeId]) -> bool:
        """Ends the running loop if it contains one of ``nodes`` and none of ``others``; what depends on it fails with
        57014. Returns whether it did. May be called from any thread."""
        running = self._context.running
        if running is None or not self._is_in(nodes, running) or self._is_in(others, running):
            return False
        self._context.abandoned = running
        return True

    def limit_loops(self, slow: TooSlow | None) -> None:
        """Has loops ask from time to time whether they must end. In a step of a maintained dataflow the loop then fails
        with the error that they get, and what depends on it; in every other pass the error is raised."""
        self._context.slow = slow

    def give_patience(self, nodes: Iterable[NodeId], patience: float) -> None:
        """Sets the patience of the loops that contain one of these nodes."""
        for node in nodes:
            operator = self._operators.get(node)
            if operator is not None and operator.scope.depth:
                operator.scope.outermost.patience = patience

    def _is_in(self, nodes: Iterable[NodeId], loop: object) -> bool:
        operators = (self._operators.get(node) for node in nodes)
        return any(operator is not None and operator.scope.outermost is loop for operator in operators)

    @property
    def running(self) -> object | None:
        """The outermost loop that runs, as far as is known. May be asked on any thread."""
        return self._context.running

    @property
    def calls(self) -> int:
        """How often operators have been called in Python so far. May be asked on any thread."""
        return self._context.called

    @property
    def newest(self) -> int:
        """The newest ordinal whose updates a step has started on."""
        return self._context.newest

    @property
    def failed(self) -> int:
        """How many operators have failed so far."""
        return self._context.failed

    def limit_memory(self, budget: Budget) -> None:
        """Limits memory. Exceeding it raises 53200 during hydration; in a step, an operator or loop that exceeds it
        fails with 53200, as does everything downstream."""
        self._context.share = Share(budget)

    @property
    def budget(self) -> Budget:
        """What its memory is taken from."""
        return self._context.share.budget

    def ended_by(self, stop: Stop) -> EndedBy:
        """In this context, operators outside of loops end in the middle of their work by ``stop``, not by a cancel."""
        return EndedBy(self._context, stop)

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
        """Feeds an Input with rows that were arranged outside the dataflow: ``batch`` becomes a layer of its Arrange
        ``kept`` as it is, at this ordinal. Nothing else may be fed to it before the next step.

        Cost: almost none. If others read the Input or the Arrange: a time and a diff per row, and a copy of the rows if
        the Arrange permutes their words.
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

    def exchange(self, changes: Sequence[Exchange], ordinal: int) -> None:
        """Gives Switches other sources. Their readers get the differences at this ordinal, in the next step, and
        nothing else. Everything fed has been stepped.

        Cost: the differences, and the number of operators, which are compiled anew.
        """
        assert ordinal >= self._context.newest, "updates come in order of ordinals"
        switches = [self._exchange(change.switch, change.source) for change in changes]
        for switch, change in zip(switches, changes, strict=True):
            times = np.full(len(change.diffs), ordinal, np.int64)
            switch.owe(Block.of(change.rows, times, change.diffs.reshape(-1, 1)))
        self._steps.reorder()
        self._fed = max(self._fed, ordinal)
        self._least = min(self._least, ordinal)

    def run_later(self, node: NodeId) -> None:
        """Has a node that is newer than what reads it run before that. Call it between steps."""
        self._run_last(node)
        self._steps.reorder()

    def set_moment(self, ordinal: int, moment: int) -> bool:
        """Says that it is this moment from an ordinal on, which is not below the newest stepped. What waits for a
        moment up to then is due in the next step. Returns whether something does."""
        context = self._context
        context.moments.set(ordinal, moment)
        if not context.waiting:
            return False
        self._fed = max(self._fed, ordinal)  # what is fed and not stepped may wait for it
        due = any(operator.next <= context.moments.last for operator in context.waiting)
        if due:
            self._least = min(self._least, ordinal)
        return due

    @property
    def moment(self) -> int:
        """The moment that was set last."""
        return self._context.moments.last

    @property
    def waits(self) -> bool:
        """Whether anything can wait for a moment."""
        return bool(self._context.waiting)

    @property
    def next_moment(self) -> int:
        """No update waits for an earlier moment; NEVER: none waits."""
        waiting = self._context.waiting
        return min([operator.next for operator in waiting]) if waiting else NEVER

    def due_moments(self, now: int) -> Words:
        """The distinct moments up to ``now`` at which rows come or go, ascending, as far as steps have seen them."""
        waiting = self._context.waiting
        return distinct(np.concatenate([np.zeros(0, np.int64), *(operator.due(now) for operator in waiting)]))

    def step(self, until: float = math.inf) -> bool:
        """Processes everything fed, all ordinals in one pass. Raises 57014 if a loop was cancelled; what depends on
        that loop has then failed, the rest is complete.

        ``until``: a deadline on ``perf_counter``'s clock. Returns False if it passed before the end; the next call
        continues, and nothing else may be called on the dataflow in between.
        """
        context = self._context
        if not context.paused:
            context.begin()
            self.refresh_arena()
            context.again = self._least <= context.newest
            self._wake_due()
            self._least = 1 << 62
        context.paused, context.deadline = False, until
        try:
            self._run()
        finally:
            context.deadline = math.inf
        context.again &= context.paused
        return not context.paused

    def step_or_cut(self, cut: Stop) -> bool:
        """As ``step``. False: ``cut`` has ended it between two operators. What was fed since the last step must then
        be fed with opposite diffs, at the same ordinal and before anything else, and stepped: only what has run runs
        on that, and nothing has changed. Nothing may wait for a moment."""
        context = self._context
        context.cut = cut
        try:
            if self.step():
                return True
        finally:
            context.cut = None
        context.paused = False
        error, context.failing = context.failing, None
        whole = not self._steps.cut()
        self._ended()
        if whole and error is not None:  # a loop that was ended was the last
            raise error
        return whole

    def _wake_due(self) -> None:
        """Wakes the operators that hold something that is due."""
        moments = self._context.moments
        for operator in self._context.waiting:
            if operator.next <= moments.last and operator.next <= moments.at(self._fed):
                operator.wake()

    def _run(self) -> None:
        context = self._context
        context.newest = self._fed
        with context.stopping():
            if context.mode is not Mode.MAINTAINED:  # not worth compiling for one run
                run_pass(self._root, 0)
            else:
                self._steps.run()
        if not context.paused:
            self._ended()
        if context.failing is not None and not context.paused:
            error, context.failing = context.failing, None
            raise error

    def _ended(self) -> None:
        """A step has ended."""
        context = self._context
        context.running = context.abandoned = None
        context.stepped_word[0] = context.newest

    def hydrate(self, nodes: Sequence[NodeId] | None = None) -> None:
        """Brings all nodes added since the last call up to date. The contents of existing nodes are replayed into the
        new ones only; hydrated updates may have the since as their time. Raises 57014 when cancelled and 53200 past the
        memory limit; the new nodes have then failed."""
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
        """The operators added since the last hydration, ranked but not yet linked."""
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
        """Loads a Lock's earlier contents, effective from the next step on."""
        operator = self._operators[node]
        assert isinstance(operator, LockOperator)
        operator.load(rows, diffs)

    def changes(self, node: NodeId) -> Changes:
        """Drains an Output: its updates since the last call. Does not raise if it has failed: see ``failure``."""
        operator = self._operators[node]
        assert isinstance(operator, OutputOperator)
        return Changes(*operator.changes())

    def failure(self, node: NodeId) -> SqlError | None:
        """The error because of which the node is no longer maintained, if any."""
        return self._operators[node].error

    def allow_compaction(self, ordinal: int) -> None:
        """Allows logical compaction: times up to the ordinal may be advanced to it, and nothing may be read at lesser
        times any more. A hydration beside the dataflow holds its times until it is done."""
        if self._holds:
            ordinal = min(ordinal, *self._holds.values())
        if ordinal > self._context.since:
            self._context.compact(ordinal)

    @property
    def held(self) -> bool:
        """Whether a hydration beside it holds the since back."""
        return bool(self._holds)

    def merging(self) -> list[Spine]:
        """The spines with merges in progress, for ``lend``; none in the middle of a step."""
        if self._context.paused:
            return []
        return [spine for operator in self._operators.values() for spine in operator.spines() if spine.merging]

    def publish(self) -> Root:
        """The current versions of all arrangements outside of loops that have users. Cost: the spines that changed
        since the last root."""
        changed = self._context.changed
        upper = self._context.newest
        if changed:
            versions: dict[int, Version | None] = {}
            for spine in changed:
                spine.changed = False
                if self._users.get(NodeId(spine.node)):
                    versions[spine.node] = Version(spine, upper)
            changed.clear()
            self._moved.update(map(NodeId, versions))
            self._published = self._published.changed(versions, upper)
        elif upper != self._published.upper:
            self._published = self._published.changed({}, upper)
        return self._published

    def moved(self) -> set[NodeId]:
        """The nodes whose arrangements have changed in what was published since the last call."""
        moved, self._moved = self._moved, set()
        return moved

    # -- for what is hydrated beside it -------------------------------------------------------------------------

    def hold(self, holder: object) -> None:
        """Holds the since in place until ``drop_hold``: ``holder`` reads at times from it on."""
        self._holds[holder] = self._context.since

    def drop_hold(self, holder: object) -> bool:
        """Releases a hold. Returns whether there was one."""
        return self._holds.pop(holder, None) is not None

    def record(self, operator: Operator) -> RecordOperator:
        """Records what an operator outside of loops emits from now on."""
        self._ranks += 1
        record = RecordOperator(self._context, self._root, operator)
        record.rank = self._ranks
        self._root.members[record.rank] = record
        operator.link(record)
        return record

    def end_record(self, record: RecordOperator) -> None:
        """Stops recording."""
        record.source.unlink(record)
        self._root.remove(record)

    def keep(self, node: NodeId) -> bool:
        """Protects a node that is in use from being freed until ``end_keep``. Returns whether it is in use."""
        used = self._users[node] > 0 or bool(self._operators[node].consumers)
        if used:
            self._users[node] += 1
        return used

    def end_keep(self, nodes: Sequence[NodeId]) -> None:
        """Ends the protection by ``keep``, and frees the nodes that are no longer used."""
        for node in nodes:
            self._users[node] -= 1
            if not self._users[node]:
                self._withdraw(node)
        for node in nodes:
            if node in self._operators and not self._users[node] and not self._operators[node].consumers:
                self.release(node)

    # -- releasing ----------------------------------------------------------------------------------------------

    def retain(self, node: NodeId) -> None:
        """Adds a user to the node; a Threshold or Reduce keeps its rows for peeks from now on."""
        self._users[node] += 1
        operator = self._operators[node]
        if operator.ARRANGED:
            self._arranged(node)
            if operator.rank >= 0:
                self._watch(operator)

    def release(self, *nodes: NodeId) -> None:
        """Removes a user of each. A node without users and consumers is freed, then whatever only it used. Cost: the
        network, for any number of nodes."""
        for node in nodes:
            self._users[node] = max(0, self._users[node] - 1)
            if not self._users[node]:
                self._withdraw(node)
        self._release_unused([self._operators[node] for node in nodes])

    def _withdraw(self, node: NodeId) -> None:
        """Stops publishing an arrangement."""
        spine = self._operators[node].spine
        if spine is not None:
            spine.watch = None
        if node in self._published:
            self._published = self._published.changed({node: None}, self._published.upper)
