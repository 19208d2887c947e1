"""Operators and their scopes: the parts of a running dataflow.

A *scope* is a loop, or the whole dataflow. Its members (operators and inner loops) have ranks in topological order.
``ivm.runtime.scheduler`` runs scopes operator by operator, ``ivm.runtime.steps`` as compiled programs. This module
records what is awake, due, or must be compiled again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator
from heapq import heappush
from typing import ClassVar, Self

from ivm.errors import SqlError, unsupported
from ivm.graph import Gather, NodeId, Spec
from ivm.kernels.blocks import extract, least_vector
from ivm.rows import Words
from ivm.runtime.context import FlowContext
from ivm.runtime.program import Instruction, Program
from ivm.time import deeper, last_width, max_round, some_width
from ivm.trace.batch import BIG, Block
from ivm.trace.spine import Spine

Held = Callable[["Operator"], Block]
"""Returns what an operator holds now: all that it has emitted so far, as updates at times raised to the since."""


class Operator:
    """The running form of one node. ``out`` holds what it emitted in the current pass, all at the pass's loop vector.

    ``spine`` is set on arrangements; then ``out`` is sorted and consolidated, and the spine holds it already.

    A new kind of operator names its ``SPEC``, and overrides ``run`` and those of the other methods that apply to it:
    ``inputs`` and ``rebind`` (or derives from ``UnaryOperator``), ``needs`` and ``contents`` if it reads traces,
    ``instruction`` to run in compiled programs, ``blocks`` and ``spines`` if it owns more than ``out`` and ``spine``.
    No other code depends on the kind.
    """

    __slots__ = (
        "context", "diff_width", "entering", "error", "id", "inside", "key_width", "later", "out", "queued", "ran",
        "rank", "scope", "spine", "width",
    )  # fmt: skip

    SPEC: ClassVar[type[Spec] | None] = None
    """The kind of spec that it runs, if it is built from its inputs' operators (arranged if the spec is ``Keyed``) and
    the spec's parameters, in their order."""
    ARRANGED: ClassVar[bool] = False
    """Whether it can be read as an arrangement (some only once ``arrange`` was called)."""
    LINEAR: ClassVar[bool] = False
    """Whether it is stateless and maps each update by itself."""
    IMPLICIT: ClassVar[bool] = False
    """Whether it is not a node of its own, and is freed with its inputs."""

    def __init__(self, context: FlowContext, scope: Scope, width: int, diff_width: int = 1) -> None:
        self.context = context
        self.scope = scope
        self.width = width
        self.diff_width = diff_width
        self.key_width = width
        self.id = NodeId(-1)
        self.rank = -1
        self.queued = False
        self.ran = False
        self.out = Block(width, diff_width)
        self.spine: Spine | None = None
        self.later: Later | None = None
        """Updates that wait for later vectors of its loop."""
        self.inside: list[Operator] = []
        self.entering: list[Operator] = []
        self.error: SqlError | None = None

    # -- what it reads, and who reads it ------------------------------------------------------------------------

    def inputs(self) -> list[Operator]:
        """The operators whose ``out`` it reads and which wake it."""
        return []

    def needs(self) -> list[Operator]:
        """Everything that must run before it or whose state it reads, except a variable's feedback."""
        return self.inputs()

    def rebind(self, find: Callable[[Operator], Operator]) -> None:
        """Replaces each operator that it reads by ``find(other)``. Call it between passes."""

    def retained(self) -> list[Operator]:
        """What it keeps from being freed, in addition to ``needs``."""
        return []

    @property
    def feedback(self) -> Operator | None:
        """The body that it follows one round later, if it is a loop's variable."""
        return None

    @property
    def consumers(self) -> list[Operator]:
        """The readers of ``out``: operators of the same scope, and those that bring it into loops."""
        return self.inside + self.entering

    @property
    def leavers(self) -> list[Operator]:
        """The operators of the enclosing scope that emit what it has gathered."""
        return []

    @property
    def primary(self) -> bool:
        """Whether it holds primary data, which cannot be recomputed."""
        return False

    def link(self, consumer: Operator) -> None:
        """Adds a consumer."""
        (self.inside if consumer.scope is self.scope else self.entering).append(consumer)
        self.scope.changed(self)
        consumer.scope.changed(consumer)

    def unlink(self, consumer: Operator) -> None:
        """Removes a consumer."""
        for linked in (self.inside, self.entering):
            if consumer in linked:
                linked.remove(consumer)
        self.scope.changed(self)

    # -- running ------------------------------------------------------------------------------------------------

    def run(self, vector: int) -> bool:
        """Does the work of the pass at ``vector``. Returns whether ``out`` has updates."""
        raise NotImplementedError

    def run_called(self, vector: int) -> bool:
        """Like ``run``, but called by a running program, which has the addresses of the operator's blocks: these must
        not move, except for ``out``."""
        return self.run(vector)

    def instruction(self, program: Program) -> Instruction | None:
        """Its row in a program, or None if the program is to call ``run_called``."""
        return None

    def blocks(self) -> list[Block]:
        """The blocks that a program may change."""
        return [self.out]

    def settle(self) -> None:
        """Takes over what a program has left in its blocks."""
        for block in self.blocks():
            if not block.sync():
                block.clear()

    @property
    def told(self) -> bool:
        """Whether ``emitted`` must be called, if it is outside of loops."""
        return self.spine is not None

    def emitted(self) -> None:
        """Called after a program's step in which it has emitted updates; these are cleared already."""
        if self.spine is not None:
            self.spine.placed()

    def wake(self) -> None:
        """Queues it to run in the current pass of its scope."""
        self.scope.queue(self)

    def resume(self) -> None:
        """Marks it as having run before: its inputs hold updates that it has seen."""
        self.ran = True

    def left_out(self) -> None:
        """Called when a step ends before it has run: drops what it was to run on, if that is its own."""

    def clear(self) -> None:
        """Clears what it emitted in the pass."""
        out = self.out
        out.n = 0
        out.d[0] = 0
        if out.room > BIG:
            out.clear()

    def taken(self) -> None:
        """Called by a consumer that has read ``out`` to its end: a large block that nobody else reads is freed before
        the pass ends."""
        if self.out.room > BIG and self.spine is None and len(self.inside) + len(self.entering) == 1:
            self.out.clear()

    def clear_for_slice(self) -> None:
        """Like ``clear``, between two slices of a join's output: an arrangement's block is left to the join, which may
        still read it."""
        if self.ARRANGED:
            self.out = Block(self.width, self.diff_width)
        self.clear()

    def fail(self, error: SqlError) -> None:
        """Marks it and everything downstream as failed."""
        if self.error is None:
            self.error = error
            self.context.failed += 1
            self.scope.changed(self)
            for consumer in self.consumers:
                consumer.fail(error)

    # -- its contents -------------------------------------------------------------------------------------------

    def spines(self) -> list[Spine]:
        """All spines that it owns."""
        return [self.spine] if self.spine is not None else []

    def arrange(self) -> None:
        """Makes an ``ARRANGED`` operator keep its output in ``spine`` from now on."""

    def recover(self) -> Gather | None:
        """The gather that recovers its input's rows from those of its spine, or None."""
        return None

    def input_contents(self) -> Block | None:
        """What its input holds, if ``recover`` can restore it from the spine."""
        return None

    def kept_by(self) -> tuple[Operator, Gather] | None:
        """A consumer whose spine keeps all rows that it has emitted, and the gather that recovers them."""
        for consumer in self.consumers:
            if consumer.error is None:
                back = consumer.recover()
                if back is not None:
                    return consumer, back
        return None

    def contents(self, held: Held) -> Block:
        """What it holds, if no arrangement has it. By default a copy of it runs over its inputs' contents. Cost: that
        of a pass over all of these."""
        return self.rerun(held).out

    def rerun(self, held: Held) -> Self:
        """A copy that has run over its inputs' contents."""
        twin = self.twin()
        twin.rebind(lambda source: source.offering(held(source)))
        twin.run(0)
        return twin

    def twin(self) -> Self:
        """A copy that has not run and keeps nothing, but reads the same operators."""
        twin = copy.copy(self)
        twin.out = Block(self.width, self.diff_width)
        twin.spine = None
        twin.ran = False
        return twin

    def offering(self, block: Block) -> Self:
        """A copy without consumers whose output is the block, which is only read."""
        stub = copy.copy(self)
        stub.inside, stub.entering = [], []
        stub.out = block
        return stub

    def words(self) -> list[Words]:
        """Every row that it holds, as arrays that no longer change; they may contain other words too. Cost: a copy of
        its blocks and of each spine's small layer."""
        found: list[Words] = []
        for spine in self.spines():
            held, batches = spine.frozen()
            found += [held, *(batch.rows for batch in batches)]
        for block in self.blocks():
            if block.sync():  # kernels have emptied it, or filled it
                found.append(block.rows[: block.n].copy())
        return found

    @property
    def size(self) -> int:
        """Bytes held, approximately."""
        return sum(block.nbytes for block in self.blocks()) + sum(spine.nbytes for spine in self.spines())

    # -- its beginning and its end ------------------------------------------------------------------------------

    @property
    def starts(self) -> bool:
        """Whether it has updates to emit on hydration although no input wakes it."""
        return False

    def read_running(self, held: Held, new: Collection[int]) -> list[Operator]:
        """Called once, when it is new and about to be linked. Returns the running operators that must offer it their
        contents through their ``out``. ``new``: the identities of all new operators. Raises 0A000 if it is in a loop
        that already runs."""
        running = [source for source in self.inputs() if id(source) not in new]
        if running and self.scope.depth:
            raise unsupported(IN_RUNNING_LOOP)
        return running

    def move(self, context: FlowContext, scope: Scope, cell: Words, find: Callable[[Operator], Operator]) -> None:
        """Moves it to another dataflow, whose arena's cell is ``cell``, and replaces each operator that it reads by
        ``find(other)``. Call it between passes."""
        self.context = context
        self.scope = scope
        for spine in self.spines():
            spine.move(context.since_of(spine.shape), cell)
        self.rebind(find)

    def take_spine(self, other: Operator) -> None:
        """Takes over the spine of another operator that emits the same."""
        spine = self.spine = other.spine
        assert spine is not None
        spine.changed = False
        self.scope.changed(self)

    def release(self) -> None:
        """Called when it is freed, while others go on."""

    def forget(self) -> None:
        """Called when its dataflow ends: frees what it held, and drops its references to other operators."""
        for block in self.blocks():
            block.clear()
        for spine in self.spines():
            spine.forget()
        if self.later is not None:
            self.later.forget()
        self.inside.clear()
        self.entering.clear()


IN_RUNNING_LOOP = "a new operator inside a loop that is running already"


class Later:
    """Updates of an operator that wait for their loop vectors."""

    __slots__ = ("block", "due", "owner")

    def __init__(self, owner: Operator, width: int, diff_width: int = 1) -> None:
        self.owner = owner
        self.block = Block(width, diff_width, 8)
        self.due = -1

    def forget(self) -> None:
        """Called when its operator ends: drops its reference to it."""
        del self.owner

    def added(self, start: int) -> None:
        """Call it after appending updates to ``block`` from index ``start`` on."""
        least = int(least_vector(self.block.d, start, self.owner.scope.shape))
        if least >= 0 and (self.due < 0 or least < self.due):
            self.due = least
            self.owner.scope.schedule(least, self.owner)

    def take(self, vector: int, target: Block) -> int:
        """Moves the updates at the vector to the end of ``target``. Returns the target's count."""
        if self.due != vector:
            return target.n
        block = self.block
        target.reserve(target.n + block.n)
        self.due = int(extract(block.d, target.d, vector, self.owner.scope.shape))
        if block.sync() == 0:
            block.clear()
        if self.due >= 0:
            self.owner.scope.schedule(self.due, self.owner)
        return target.sync()


class Scope:
    """A loop, or the whole dataflow (depth 0).

    ``members``: operators and inner loops by rank. ``heap``: the ranks of those due in the current pass. ``agenda`` and
    ``due``: which members run at which later vectors. ``outer``: the parent's vector while it runs.
    """

    __slots__ = (
        "agenda", "compiled", "context", "depth", "due", "entries", "error", "heap", "leaving", "limit", "max_round",
        "members", "on_remove", "outer", "overflows", "parent", "patience", "queued", "rank", "return_at_limit",
        "shape", "stale", "stride", "touched", "unfinished", "width",
    )  # fmt: skip

    def __init__(
        self, context: FlowContext, parent: Scope | None, limit: int | None = None, return_at_limit: bool = False,
        stride: int = 0, width: int | None = None,
    ) -> None:  # fmt: skip
        self.context = context
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        around = 0 if parent is None else parent.shape
        self.shape: int = (
            0 if parent is None else deeper(around, width or some_width(around, None if stride else limit))
        )
        """The shape of the times inside (``ivm.kernels.times``)."""
        self.width = last_width(self.shape)
        self.limit = limit
        self.return_at_limit = return_at_limit
        self.stride = stride
        assert not (stride and return_at_limit)
        self.overflows = 0
        """How many of its variables have an Overflow."""
        self.max_round = max_round(self.width) + int(stride > 0)
        self.members: dict[int, Operator | Scope] = {}
        self.heap: list[int] = []
        self.touched: list[Operator] = []
        self.unfinished: list[Operator] = []
        self.agenda: dict[int, list[Operator | Scope]] = {}
        self.due: list[int] = []
        self.entries: list[Operator] = []
        self.leaving: list[Operator] = []
        self.outer = 0
        self.rank = -1
        self.queued = False
        self.error: SqlError | None = None
        self.patience = 1.0
        """Of an outermost loop: see ``RunningLoop``."""
        self.compiled: object | None = None
        """The scheduler's compiled form of an outermost loop; None: it must be compiled again."""
        self.on_remove: Callable[[Operator | Scope, Scope], None] | None = None
        """On the whole dataflow only: called with a freed member of it, or of a loop in it, and with the outermost loop
        that contains the member (the dataflow itself outside of loops)."""
        self.stale: dict[int, Operator | Scope] = {}
        """On the whole dataflow only: its members that must be compiled again, by identity."""

    @property
    def outermost(self) -> Scope:
        """The loop of depth 1 that it is or that contains it; the dataflow itself outside of loops."""
        return self if self.depth < 2 or self.parent is None else self.parent.outermost

    @property
    def last_round(self) -> int:
        """The last round that exists."""
        return self.max_round if self.limit is None or self.stride else min(self.max_round, self.limit - 1)

    @property
    def rounds(self) -> int:
        """The number of rounds, or of rounds per priority."""
        return self.last_of_priority + 1 if self.stride else self.last_round + 1

    @property
    def last_of_priority(self) -> int:
        """The last round of each priority, counted within it."""
        return self.stride - 1 if self.limit is None else min(self.stride, self.limit) - 1

    later = None
    """A scope has no waiting updates of its own, only its operators do."""

    @property
    def around(self) -> Scope:
        """The enclosing loop."""
        assert self.parent is not None
        return self.parent

    def living(self) -> list[Operator | Scope]:
        """Its members in rank order, without the loops that have failed."""
        items = (self.members[rank] for rank in sorted(self.members))
        return [item for item in items if isinstance(item, Operator) or item.error is None]

    def operators(self) -> list[Operator]:
        """Its own operators."""
        return [item for item in self.members.values() if isinstance(item, Operator)]

    def loops(self) -> list[Scope]:
        """The loops in it, in rank order."""
        return [item for rank in sorted(self.members) if isinstance(item := self.members[rank], Scope)]

    def changed(self, operator: Operator | None = None) -> None:
        """Notes that something must be compiled again: a loop or, outside of loops, an operator."""
        if self.parent is None:
            if operator is not None:
                self.stale[id(operator)] = operator
            return
        loop = self.outermost
        loop.compiled = None
        loop.around.stale[id(loop)] = loop

    def remove(self, member: Operator | Scope) -> None:
        """Removes a member that is freed."""
        self.members.pop(member.rank, None)
        self.changed()
        root = self if self.parent is None else self.outermost.around
        root.stale.pop(id(member), None)
        if root.on_remove is not None:
            root.on_remove(member, member if isinstance(member, Scope) and root is self else self.outermost)

    def sources(self) -> list[Operator]:
        """The operators of the enclosing scope whose updates enter it."""
        return [source for operator in self.operators() for source in operator.inputs() if source.scope is self.parent]

    def queue(self, item: Operator | Scope) -> None:
        """Queues a member to run in the current pass."""
        if not item.queued:
            item.queued = True
            heappush(self.heap, item.rank)

    def wake(self) -> None:
        """Queues the whole loop to run in the current pass of its parent."""
        if not self.queued and self.parent is not None:
            self.queued = True
            heappush(self.parent.heap, self.rank)

    def schedule(self, vector: int, item: Operator | Scope) -> None:
        """Schedules an item at a later loop vector."""
        items = self.agenda.get(vector)
        if items is not None:
            if item not in items:
                items.append(item)
            return
        self.agenda[vector] = [item]
        heappush(self.due, vector)
        if self.depth > 1:
            outer = vector >> self.width
            if outer != self.outer and self.parent is not None:
                self.parent.schedule(outer, self)

    def enter(self, entry: Operator) -> None:
        """Makes an entering operator emit at round 0 of the coming run."""
        if entry not in self.entries:
            self.entries.append(entry)
        self.wake()

    @property
    def size(self) -> int:
        """Bytes held by everything inside."""
        return sum(member.size for member in self.members.values())

    def held(self) -> int:
        """The same, as a method, to be passed as a callback."""
        return self.size

    def all_operators(self) -> Iterator[Operator]:
        """Its operators and those of the loops in it."""
        for member in self.members.values():
            if isinstance(member, Scope):
                yield from member.all_operators()
            else:
                yield member

    def give_up(self) -> None:
        """Called after an exception in a pass: drops all pending work; the caller discards the new nodes."""
        for item in self.members.values():
            item.queued = False
        self.heap.clear()
        self.unfinished.clear()
        for operator in self.touched:
            operator.clear()
        self.touched.clear()
        self.drop()

    def forget(self) -> None:
        """Called when its dataflow ends: drops all references into it."""
        self.members.clear()
        self.stale.clear()
        self.compiled = self.on_remove = None

    def drop(self) -> None:
        """Drops all pending work, after a failure."""
        self.due.clear()
        self.agenda.clear()
        self.entries.clear()
        self.leaving.clear()
        self.changed()

    def fail(self, error: SqlError) -> None:
        """Ends the loop for good: what depends on it has failed."""
        if self.error is not None:
            return
        self.error = error
        if error.sqlstate == "57014":
            self.context.failing = error
        for item in self.members.values():
            item.fail(error)
