"""Hydrating new nodes beside a running dataflow, on another thread, while the dataflow goes on.

The new nodes are made in a small dataflow of their own, where *trace imports* take the place of what they read of the
running one. An import first emits what an arrangement held when the work began (an immutable version of its spine); at
each ``advance`` it takes over what the arrangement has emitted since, as recorded by a node in the running dataflow.
Nodes that keep nothing are made a second time here, over imports. So one pass hydrates everything, and each later pass
catches up on what was committed meanwhile, by the same operators and the same rules as any step. ``attach`` then moves
the new nodes into the running dataflow, where they read the real nodes instead of the imports.

Threads: ``add`` and everything else that makes nodes, ``begin``, ``advance``, ``attach`` and ``abandon`` belong to the
thread that owns the running dataflow, between its steps. ``run`` may be called on any thread, once at a time, beside no
other call but ``abandon``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ivm.contents import dispose
from ivm.dataflow import Dataflow
from ivm.errors import SqlError
from ivm.graph import Gather, NodeId
from ivm.operators.linear import InputOperator, ProjectOperator
from ivm.operators.loop import LeaveOperator
from ivm.operators.trace_import import TraceImportOperator
from ivm.runtime.context import FlowContext
from ivm.runtime.operator import Operator, Scope
from ivm.runtime.replay import replay_into
from ivm.runtime.watched import Watched

T = TypeVar("T")


class NotDetachableError(Exception):
    """The new nodes read state that only the running dataflow has, so they must be hydrated there."""


class _ArrangedError(Exception):
    """A node without a spine is needed as an arrangement."""

    def __init__(self, node: NodeId) -> None:
        super().__init__(node)
        self.node = node


class _Members(Watched):
    """``reached``: the rank of the last member that the pass has reached."""

    def __init__(self, context: FlowContext) -> None:
        super().__init__(context)
        self.reached = 0

    def __getitem__(self, rank: int) -> Operator | Scope:
        self.reached = rank
        return super().__getitem__(rank)


class Detached(Dataflow):
    """New nodes of ``main``, under the ids that they will have there. ``arranged``: nodes of ``main`` needed as
    arrangements."""

    def __init__(
        self, main: Dataflow, cancel: threading.Event | None, arranged: frozenset[NodeId], present: bool = False
    ) -> None:
        super().__init__(cancel=cancel, beside=main)
        if present:
            self._context.compact(main.newest)
        self.main = main
        self.arranged = arranged
        self._root.members = self._members = _Members(self._context)
        self._real: dict[int, Operator] = {}
        """The real operator of each import and each node that is made a second time, by identity."""
        self._seconds: dict[NodeId, Operator] = {}
        self._imports: dict[NodeId, Operator] = {}
        self._traces: dict[int, TraceImportOperator] = {}
        """The imports by the real operator's identity."""
        self._used: list[NodeId] = []
        self._fresh: list[Operator] = []
        self._begun = False
        self._running = False
        main.hold(self)
        self._generation = None if self._arena is None else self._arena.generation
        """Keeps alive the values of its ids, which a sweep does not see."""

    # -- what it reads of the running dataflow -------------------------------------------------------------------

    def _find(self, node: NodeId) -> Operator:
        found = self._operators.get(node) or self._imports.get(node)
        if found is None:
            found = self._imports[node] = self._import(node)
        return found

    def _failing(self, node: NodeId) -> Operator:
        return self._operators[node] if node in self._operators else self._second(node)

    def _arranged(self, node: NodeId) -> Operator:
        if node not in self._operators:
            real = self._sound(node)
            if real.spine is None and node not in self.arranged:
                raise _ArrangedError(node)
        return super()._arranged(node)

    def _sound(self, node: NodeId) -> Operator:
        real = self.main.operator(node)
        if real.scope.depth or real.rank < 0 or real.error is not None:
            raise NotDetachableError
        return real

    def _import(self, node: NodeId) -> Operator:
        real = self._sound(node)
        if real.spine is not None:
            return self._import_trace(real, real)
        if node in self.arranged:
            return self._second(node)
        kept = real.kept_by()
        if kept is not None:
            consumer, back = kept
            arranged = self._import_trace(consumer, consumer)
            self._use(node)
            return self._noted(ProjectOperator(self._context, self._root, arranged, back), real)
        if isinstance(real, InputOperator):
            if real.fed:
                raise NotDetachableError
            return self._import_trace(real, None)
        if isinstance(real, LeaveOperator):
            return self._import_left(real)
        return self._second(node)

    def _import_left(self, real: LeaveOperator) -> TraceImportOperator:
        """Imports a loop's collection, whose contents must come from a trace inside of the loop."""
        inner = real.source
        if inner.spine is not None:
            return self._import_trace(real, inner)
        kept = inner.kept_by()
        if kept is None:
            raise NotDetachableError
        return self._import_trace(real, *kept)

    def _import_trace(self, real: Operator, base: Operator | None, back: Gather | None = None) -> TraceImportOperator:
        found = self._traces.get(id(real))
        if found is None:
            self._use(real.id)
            record = self.main.record(real)
            found = TraceImportOperator(self._context, self._root, real, record, base, self._cell, back)
            self._traces[id(real)] = found
            self._noted(found, real)
        return found

    def _second(self, node: NodeId) -> Operator:
        """A node without state, made a second time over imports."""
        found = self._seconds.get(node)
        if found is None:
            spec = self.main.spec(node)
            self._use(node)
            found = self._seconds[node] = self._noted(self._render(spec), self._sound(node))
        return found

    def _noted(self, operator: Operator, real: Operator) -> Operator:
        self._real[id(operator)] = real
        self._dormant.append(operator)
        return operator

    def _use(self, node: NodeId) -> None:
        """Keeps a node of the running dataflow alive until this ends."""
        if self.main.keep(node):
            self._used.append(node)

    # -- running -------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises 57014 if it was cancelled."""
        if self._context.cancel.is_set():
            raise SqlError("57014", "canceling statement due to user request")

    def advance(self) -> int:
        """Takes over what the running dataflow has emitted since the last call. Returns how many updates ``run`` will
        get."""
        self._context.newest = self._fed = self.main.newest
        return sum(imported.advance() for imported in self._traces.values())

    @property
    def place(self) -> tuple[int, int, int]:
        """Progress: (operators, each loop counting as one; how many of them the pass has reached; updates that the new
        ones hold). Callable from any thread, also during a pass."""
        ranks = list(self._members)
        held = sum(operator.spine.count for operator in list(self._fresh) if operator.spine is not None)
        return len(ranks), sum(rank <= self._members.reached for rank in ranks), held

    def run(self) -> None:
        """Hydrates, or catches up with the last ``advance``. Raises 57014 and 53200 as ``Dataflow.hydrate`` does; the
        new nodes are then discarded."""
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
            self._fed = self._context.newest
            self.hydrate()
            return
        for imported in self._traces.values():
            imported.wake()
        self.refresh_arena()
        self._context.begin()
        self._run()

    # -- filled by others ----------------------------------------------------------------------------------------

    def imported(self, node: NodeId) -> Operator | None:
        """The operator that emits a running node's rows here, if the node is imported."""
        return self._imports.get(node)

    def made(self, node: NodeId) -> Operator | None:
        """The operator of a node that is made here, for the first or for a second time."""
        return self._operators.get(node) or self._seconds.get(node)

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Replaces the first ``run``: inside this context the caller fills the spines of the new nodes. If that raises,
        the new nodes are discarded."""
        context = self._context
        self._begun = self._running = True
        self._fresh = self._dormant
        self._fed = context.newest
        context.begin()
        try:
            fresh = self._ranked()
            replay_into(context, fresh)
            for operator in fresh:
                operator.resume()
            yield
            context.stepped_word[0] = context.newest
            for operator in fresh:
                self._watch(operator)
        except BaseException:
            self._dispose()
            raise
        finally:
            self._running = False

    # -- its end -------------------------------------------------------------------------------------------------

    @property
    def sound(self) -> bool:
        """Whether everything that it reads is still maintained."""
        return all(real.error is None for real in self._real.values())

    def attach(self) -> None:
        """Moves the new nodes into the running dataflow, which must not have run since the last ``advance``. They are
        published with its next root."""
        assert self.sound
        self.main.absorb(self, self._fresh, self._real)
        self.release_running()
        self._generation = None
        self._forget_all()

    def _forget_all(self) -> None:
        """Drops all references, so that a node's memory is freed as soon as it is released."""
        self._context.forget()
        self._root.members.clear()
        self._root.stale.clear()
        self._operators.clear()
        self._enters.clear()
        self._traces.clear()
        self._forget_new()

    def _forget_new(self) -> None:
        self._real.clear()
        self._seconds.clear()
        self._imports.clear()
        self._fresh = []

    def _dispose(self) -> None:
        """Frees the memory of the new nodes. Call it on the thread that ran them, or between runs."""
        dispose(self)
        self._forget_new()

    def abandon(self) -> None:
        """Discards the new nodes, leaving the running dataflow unaffected. A ``run`` in progress ends soon."""
        self._context.cancel.set()
        self.release_running()
        if not self._running:
            self._dispose()

    def release_running(self) -> None:
        """Releases what it holds of the running dataflow. Idempotent."""
        main = self.main
        if not main.drop_hold(self):
            return
        for imported in self._traces.values():
            main.end_record(imported.record)
        main.end_keep(self._used)


def detach(
    main: Dataflow, make: Callable[[Detached], T], cancel: threading.Event | None = None, present: bool = False
) -> tuple[Detached, T]:
    """Creates a dataflow beside ``main`` and lets ``make`` add nodes to it. Returns it and the result of ``make``. Call
    it on main's thread, between its steps. Raises NotDetachableError.

    ``make`` may be called more than once. ``cancel``, set from any thread, ends ``run`` with 57014. ``present``: the
    new nodes begin with what their inputs hold now, whatever these distinguish of their history.
    """
    arranged: frozenset[NodeId] = frozenset()
    while True:
        flow = Detached(main, cancel, arranged, present)
        try:
            return flow, make(flow)
        except _ArrangedError as wanted:
            flow.release_running()
            arranged |= {wanted.node}
        except BaseException:
            flow.release_running()
            raise
