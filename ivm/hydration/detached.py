"""Hydrating new nodes beside a running dataflow, on another thread, while the dataflow goes on.

The new nodes are made in a small dataflow of their own. What they read of the running one is there in the shape of
*stand-ins*: they emit what an arrangement held when the work began (an immutable version of its spine), and afterwards,
at each ``advance``, what the arrangement has emitted since, which a recording node in the running dataflow gathers.
Nodes that keep nothing are made a second time here, over stand-ins. So one pass hydrates everything, and each later
pass catches up on what was committed meanwhile, by the same operators and the same rules as any step. ``attach`` then
moves the new nodes into the running dataflow, and lets them read the real nodes in the place of their stand-ins.

Three kinds of calls: ``add`` and all that makes nodes, ``begin``, ``advance``, ``attach`` and ``abandon`` belong to the
thread that owns the running dataflow, between its steps; ``run`` to any thread, one at a time and beside no other call
but ``abandon``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from ivm.budget import Share
from ivm.contents import dispose
from ivm.dataflow import Dataflow
from ivm.errors import SqlError
from ivm.graph import Gather, NodeId, NodeSpec
from ivm.operators.arrange import ArrangeOperator
from ivm.operators.asof import AsOfOperator
from ivm.operators.delta_join import DeltaJoinOperator
from ivm.operators.join import JoinOperator
from ivm.operators.linear import ConcatOperator, InputOperator, ProjectOperator, SourceOperator
from ivm.operators.lock import LockOperator
from ivm.operators.loop import DelayedOperator, LeaveOperator, VariableOperator
from ivm.operators.reduce import ReduceOperator
from ivm.operators.threshold import ThresholdOperator
from ivm.operators.trace_import import RecordOperator, StandInOperator
from ivm.runtime.context import nothing_new
from ivm.runtime.scheduler import Operator, Scope, Watched
from ivm.trace.batch import address
from ivm.trace.spine import Spine

T = TypeVar("T")


class NotDetachableError(Exception):
    """The new nodes read what only the running dataflow itself can tell: hydrate them there."""


class _ArrangedError(Exception):
    """A node without a spine is wanted as an arrangement."""

    def __init__(self, node: NodeId) -> None:
        super().__init__(node)
        self.node = node


class _Members(Watched):
    """``reached``: the last one asked for, in topological order."""

    reached = 0

    def __getitem__(self, rank: int) -> Operator | Scope:
        self.reached = rank
        return super().__getitem__(rank)


class Detached(Dataflow):
    """New nodes of ``main``, under ids of their own in it. ``arranged``: its nodes that are wanted as arrangements."""

    def __init__(self, main: Dataflow, cancel: threading.Event | None, arranged: frozenset[NodeId]) -> None:
        super().__init__(main._arena, cancel)
        self.main = main
        self.arranged = arranged
        self._ids = main._ids
        core = self._core
        core.newest = main._core.newest
        core.share = Share(main._core.share.budget)
        core.passing = True
        core.compact(main._core.since)
        core.stepped_word[0] = main._core.stepped_word[0]
        self._rounds = main._rounds
        self._root.members = self._members = _Members(core)
        self._real: dict[int, Operator] = {}
        """The real operator of each stand-in and each second making, by its identity."""
        self._seconds: dict[NodeId, Operator] = {}
        self._imports: dict[NodeId, Operator] = {}
        self._standing: dict[int, StandInOperator] = {}
        self._used: list[NodeId] = []
        self._fresh: list[Operator] = []
        self._begun = False
        self._running = False
        main._holds[self] = main._core.since
        self._generation = None if main._arena is None else main._arena.generation
        """Keeps the values of ids that it has, which a sweep does not see."""

    # -- what it reads of the running dataflow -------------------------------------------------------------------

    def _find(self, node: NodeId) -> Operator:
        found = self._operators.get(node) or self._imports.get(node)
        if found is None:
            found = self._imports[node] = self._import(node)
        return found

    def _render(self, spec: NodeSpec) -> Operator:
        operator = super()._render(spec)
        if isinstance(operator, LockOperator):
            operator.filling = True  # what it locks first is what stands at the commit that makes it
        return operator

    def _failing(self, node: NodeId) -> Operator:
        return self._operators[node] if node in self._operators else self._second(node)

    def _arranged(self, node: NodeId) -> Operator:
        if node not in self._operators:
            real = self._sound(node)
            if real.spine is None and node not in self.arranged:
                raise _ArrangedError(node)
        return super()._arranged(node)

    def _sound(self, node: NodeId) -> Operator:
        real = self.main._operators[node]
        if real.scope.depth or real.rank < 0 or real.error is not None:
            raise NotDetachableError
        return real

    def _import(self, node: NodeId) -> Operator:
        real = self._sound(node)
        if real.spine is not None:
            return self._stand_in(real, real)
        if node in self.arranged:
            return self._second(node)
        consumer, back = _kept_by(real)
        if consumer is not None and back is not None:
            arranged = self._stand_in(consumer, consumer)
            self._use(node)
            return self._noted(ProjectOperator(self._core, self._root, arranged, back), real)
        if isinstance(real, InputOperator):
            if real.fed:
                raise NotDetachableError
            return self._stand_in(real, None)
        if isinstance(real, LeaveOperator):
            inner = real.source
            if inner.spine is not None:
                return self._stand_in(real, inner)
            consumer, back = _kept_by(inner)
            if consumer is None:
                raise NotDetachableError
            return self._stand_in(real, consumer, back)
        return self._second(node)

    def _stand_in(self, real: Operator, base: Operator | None, back: Gather | None = None) -> StandInOperator:
        found = self._standing.get(id(real))
        if found is None:
            main = self.main
            self._use(real.id)
            main._ranks += 1
            record = RecordOperator(main._core, main._root, real)
            record.rank = main._ranks
            main._root.members[record.rank] = record
            real.link(record)
            found = StandInOperator(self._core, self._root, real, record, base, self._cell, back)
            self._standing[id(real)] = found
            self._noted(found, real)
        return found

    def _second(self, node: NodeId) -> Operator:
        """A node that keeps nothing, once more over stand-ins."""
        found = self._seconds.get(node)
        if found is None:
            spec = self.main._specs[node]
            self._use(node)
            found = self._seconds[node] = self._noted(self._render(spec), self._sound(node))
        return found

    def _noted(self, operator: Operator, real: Operator) -> Operator:
        self._real[id(operator)] = real
        self._dormant.append(operator)
        return operator

    def _use(self, node: NodeId) -> None:
        """Keeps a node of the running dataflow until this ends."""
        main = self.main
        if main._users[node] or main._operators[node].consumers:
            self._used.append(node)
            main._users[node] += 1

    # -- running -------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises 57014 once it is cancelled."""
        if self._core.cancel.is_set():
            raise SqlError("57014", "canceling statement due to user request")

    def advance(self) -> int:
        """Take up what the running dataflow has done since the last call; how many updates ``run`` has to do with."""
        self._core.newest = self._fed = self.main._core.newest
        return sum(stand_in.advance() for stand_in in self._standing.values())

    @property
    def place(self) -> tuple[int, int, int]:
        """(operators, loops counting as one; how many of them the pass has come to; updates that the new ones hold).

        Any thread may ask, while the pass goes on.
        """
        ranks = list(self._members)
        held = sum(operator.spine.count for operator in list(self._fresh) if operator.spine is not None)
        return len(ranks), sum(rank <= self._members.reached for rank in ranks), held

    def run(self) -> None:
        """Hydrate, or catch up with the last ``advance``. 57014, and 53200 as ``Dataflow.hydrate`` has it: what was new
        is gone then."""
        self._running = True
        try:
            self.check()
            self._run_once()
        except BaseException:
            self._dispose()
            raise
        finally:
            self._running = False

    def _run_once(self) -> None:
        if not self._begun:
            self._begun = True
            self._fresh = self._dormant
            self._fed = self._core.newest
            self.hydrate()
            return
        for stand_in in self._standing.values():
            stand_in.wake()
        self.refresh_arena()
        self._core.begin()
        self._core.hydrating = True
        try:
            self._run()
        finally:
            self._core.hydrating = False

    # -- its end -------------------------------------------------------------------------------------------------

    @property
    def sound(self) -> bool:
        """Whether everything that it reads is still maintained."""
        return all(real.error is None for real in self._real.values())

    def attach(self) -> None:
        """Move the new nodes into the running dataflow, where nothing has happened since the last ``advance``; they are
        published with its next root."""
        main = self.main
        assert self.sound
        moved = [o for o in self._fresh if id(o) not in self._real and o.rank >= 0]
        moved += [o for o in self._operators.values() if isinstance(o, DelayedOperator)]
        for scope in self._scopes.values():
            scope.core = main._core
            if scope.parent is self._root:
                scope.parent = main._root
            scope.changed()
        for operator in moved:
            self._adopt(operator)
        self._join_ranks()
        new = {id(operator) for operator in moved}
        for operator in moved:
            for source in operator.feeds():
                if id(source) not in new:
                    source.link(operator)
        self._hand_over()
        self._give_spines()
        for operator in moved:
            if operator.spine is not None:
                operator.spine.changed = False
            main._watch(operator)
        self.let_go()
        self._generation = None
        self._forget_all()

    def _forget_all(self) -> None:
        """So that a released node's memory goes at once: operators and scopes refer to each other, and to this."""
        self._core.changed.clear()
        self._core.refresh = nothing_new
        self._core.share.release()
        self._root.members.clear()
        self._root.stale.clear()
        self._operators.clear()
        self._enters.clear()
        self._standing.clear()
        self._forget_new()

    def _forget_new(self) -> None:
        self._real.clear()
        self._seconds.clear()
        self._imports.clear()
        self._fresh = []

    def _dispose(self) -> None:
        """Gives back the memory of what is new; on the thread that ran it, or between its runs."""
        dispose(self)
        self._forget_new()

    def _adopt(self, operator: Operator) -> None:
        """Lets a new operator belong to the running dataflow, and read its operators."""
        main = self.main
        operator.core = main._core
        if operator.scope is self._root:
            operator.scope = main._root
        for spine in operator.spines():
            self._share(spine)
        match operator:
            case JoinOperator():
                operator.let_go_of_deltas()
                for side in (operator.left, operator.right):
                    side.arrangement, side.delta = self._truly(side.arrangement), self._truly(side.delta)
            case AsOfOperator() | LockOperator():
                if isinstance(operator, LockOperator):
                    operator.filling = False
                operator.left, operator.right = self._truly(operator.left), self._truly(operator.right)
            case DeltaJoinOperator():
                operator.move(self._truly)
            case ConcatOperator():
                operator.sources = [self._truly(source) for source in operator.sources]
            case SourceOperator() | InputOperator() | VariableOperator():
                pass
            case _:
                operator.source = self._truly(operator.source)  # type: ignore[attr-defined]

    def _truly(self, operator: Operator) -> Operator:
        return self._real.get(id(operator), operator)

    def _share(self, spine: Spine) -> None:
        spine.share(self.main._core.since_of(spine.shape))
        if spine.order_words is not None:
            spine.order_words[0] = address(self.main._cell)

    def _join_ranks(self) -> None:
        """The new nodes' ranks come after all others."""
        main = self.main
        replaced = {operator.rank for operator in self._fresh if id(operator) in self._real}
        for rank, item in self._root.members.items():
            if rank not in replaced:
                item.rank = main._ranks + rank
                main._root.members[item.rank] = item
                if isinstance(item, Operator):
                    main._root.changed(item)
        main._ranks += self._ranks

    def _hand_over(self) -> None:
        main = self.main
        main._operators.update(self._operators)
        main._specs.update(self._specs)
        main._users.update(self._users)
        main._scopes.update(self._scopes)
        main._enters.update({key: enter for key, enter in self._enters.items() if id(enter) not in self._real})
        main._rounds = max(main._rounds, self._rounds)
        main._core.stats += self._core.stats

    def _give_spines(self) -> None:
        """Rows that a real node did not keep, and its second making did."""
        for second in self._seconds.values():
            real = self._real[id(second)]
            if isinstance(second, ThresholdOperator | ReduceOperator) and second.spine is not None:
                assert isinstance(real, ThresholdOperator | ReduceOperator)
                if real.spine is None:
                    self._share(second.spine)
                    real.spine = second.spine
                    real.spine.changed = False
                    real.scope.changed(real)
                    self.main._watch(real)

    def abandon(self) -> None:
        """Leave the running dataflow as if this had never been; ``run`` may be under way, and ends soon."""
        self._core.cancel.set()
        self.let_go()
        if not self._running:
            self._dispose()

    def let_go(self) -> None:
        """Give back what it holds of the running dataflow."""
        main = self.main
        if main._holds.pop(self, None) is None:
            return
        for stand_in in self._standing.values():
            record = stand_in.record
            record.source.unlink(record)
            main._root.remove(record)
        for node in self._used:
            main._users[node] -= 1
            if not main._users[node]:
                main._withdraw(node)
        for node in self._used:
            if node in main._operators and not main._users[node] and not main._operators[node].consumers:
                main.release(node)


def detach(main: Dataflow, make: Callable[[Detached], T], cancel: threading.Event | None = None) -> tuple[Detached, T]:
    """What ``make`` adds to a dataflow beside ``main``; on main's thread, between its steps. NotDetachableError.

    ``make`` may be called more than once. ``cancel``, set from any thread, ends ``run`` with 57014.
    """
    arranged: frozenset[NodeId] = frozenset()
    while True:
        flow = Detached(main, cancel, arranged)
        try:
            return flow, make(flow)
        except _ArrangedError as wanted:
            flow.let_go()
            arranged |= {wanted.node}
        except BaseException:
            flow.let_go()
            raise


def _kept_by(operator: Operator) -> tuple[ArrangeOperator | None, Gather | None]:
    """An arrangement of the operator's rows that loses nothing, and how to get them back."""
    for consumer in operator.consumers:
        if isinstance(consumer, ArrangeOperator) and consumer.error is None:
            back = consumer.recover()
            if back is not None:
                return consumer, back
    return None, None
