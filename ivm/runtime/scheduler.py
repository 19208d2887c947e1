"""Running a dataflow: scopes, passes, and operators as the scheduler sees them.

A *pass* runs one scope at one loop vector, for all ordinals of the step at once. Operators that have something to do
are woken, and run in topological order (by rank); what they emit at later vectors waits in their own buffers, and the
scope's agenda says which vectors are due. A nested scope is one item of its parent's pass: it runs all of its vectors
that lie under the parent's vector, least first, until nothing is due; it is entered again when something is owed at a
later vector of the parent.

So everything is hydrated. A step of what is maintained is a run of a program instead (``ivm.runtime.steps``), which
does the same in a kernel; what is awake, and what is to be compiled again, is said here.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, ClassVar

from ivm.errors import SqlError
from ivm.graph import NodeId
from ivm.kernels.blocks import extract, least_vector
from ivm.runtime.context import Core
from ivm.runtime.program import Instruction, Program
from ivm.runtime.program_run import LoopRun
from ivm.time import deeper, last_width, max_round, some_width
from ivm.trace.batch import BIG, Block
from ivm.trace.spine import Spine

if TYPE_CHECKING:
    from ivm.runtime.steps import FlowRun


class Operator:
    """One node at work. ``out`` holds what it emitted in the current pass, all at the pass's loop vector.

    ``spine`` is set on arrangements; then ``out`` is sorted and consolidated, and the spine holds it already.
    """

    __slots__ = (
        "core", "diff_width", "entering", "error", "id", "inside", "key_width", "out", "queued", "ran", "rank",
        "scope", "spine", "width",
    )  # fmt: skip

    ARRANGED: ClassVar[bool] = False

    @property
    def primary(self) -> bool:
        """Whether it holds what was fed, which no definition can bring back."""
        return False

    def __init__(self, core: Core, scope: Scope, width: int, diff_width: int = 1) -> None:
        self.core = core
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
        self.inside: list[Operator] = []
        self.entering: list[Operator] = []
        self.error: SqlError | None = None

    @property
    def consumers(self) -> list[Operator]:
        """What reads ``out``: operators of the same scope, and those that bring it into loops."""
        return self.inside + self.entering

    def feeds(self) -> list[Operator]:
        """The operators whose ``out`` it reads, and which wake it."""
        source = getattr(self, "source", None)
        return [] if source is None else [source]

    @property
    def leavers(self) -> list[Operator]:
        """What brings what it has gathered out of its loop."""
        return []

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

    def run(self, vector: int) -> bool:
        """Does this pass's work; whether ``out`` has something."""
        raise NotImplementedError

    def run_called(self, vector: int) -> bool:
        """The same, called by a running program, which has the addresses of its blocks: they stay where they are,
        ``out`` excepted."""
        return self.run(vector)

    def instruction(self, program: Program) -> Instruction | None:
        """What runs it in a program; None: it is run in Python there."""
        return None

    @property
    def later(self) -> Later | None:
        """What waits for later vectors of its loop."""
        return None

    def blocks(self) -> list[Block]:
        """What a program may change."""
        return [self.out]

    def forget(self) -> None:
        """Its dataflow ends: lets go of what it held, and of those who hold it."""
        for block in self.blocks():
            block.clear()
        for spine in self.spines():
            spine.forget()
        if self.later is not None:
            self.later.forget()
        self.inside.clear()
        self.entering.clear()

    def settle(self) -> None:
        """Takes in what a program has left in its blocks."""
        for block in self.blocks():
            if not block.sync():
                block.clear()

    @property
    def told(self) -> bool:
        """Whether ``emitted`` is called outside of loops."""
        return self.spine is not None

    def emitted(self) -> None:
        """Called after a step in which it has emitted something, which is forgotten."""
        if self.spine is not None:
            self.spine.placed()

    def wake(self) -> None:
        """Lets the operator run in the current pass of its scope."""
        self.scope.queue(self)

    def resume(self) -> None:
        """Takes it for one that has run before: what it reads holds updates that it has seen."""
        self.ran = True

    def clear(self) -> None:
        """Forgets what the pass emitted."""
        out = self.out
        out.n = 0
        out.d[0] = 0
        if out.room > BIG:
            out.clear()

    def taken(self) -> None:
        """Called by a consumer that has read ``out`` to its end: a large one that nobody else reads goes before the end
        of the pass."""
        if self.out.room > BIG and self.spine is None and len(self.inside) + len(self.entering) == 1:
            self.out.clear()

    def let_go(self) -> None:
        """As ``clear``, but leaves the block of an arrangement to the join that may still be at it."""
        if self.ARRANGED:
            self.out = Block(self.width, self.diff_width)
        self.clear()

    @property
    def size(self) -> int:
        """Bytes held, roughly."""
        return sum(block.nbytes for block in self.blocks()) + sum(spine.nbytes for spine in self.spines())

    def spines(self) -> list[Spine]:
        """All spines that the operator owns."""
        return [self.spine] if self.spine is not None else []

    def fail(self, error: SqlError) -> None:
        """Marks it and everything downstream as failed."""
        if self.error is None:
            self.error = error
            self.core.failed += 1
            self.scope.changed(self)
            for consumer in self.consumers:
                consumer.fail(error)


class Later:
    """Updates of an operator that wait for their loop vectors."""

    __slots__ = ("block", "due", "owner")

    def __init__(self, owner: Operator, width: int, diff_width: int = 1) -> None:
        self.owner = owner
        self.block = Block(width, diff_width, 8)
        self.due = -1

    def forget(self) -> None:
        """Its operator ends, which it holds no more."""
        del self.owner

    def added(self, start: int) -> None:
        """To be called after updates were appended to ``block`` from index ``start`` on."""
        least = int(least_vector(self.block.d, start, self.owner.scope.shape))
        if least >= 0 and (self.due < 0 or least < self.due):
            self.due = least
            self.owner.scope.schedule(least, self.owner)

    def take(self, vector: int, target: Block) -> int:
        """Moves the updates at the vector to the end of ``target``; the target's count."""
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


class Watched(dict[int, "Operator | Scope"]):
    """The items of the outermost scope where nothing is maintained yet, by rank: between two of them a pass ends that
    was cancelled, or takes too much memory."""

    def __init__(self, core: Core) -> None:
        super().__init__()
        self._core = core

    def __getitem__(self, rank: int) -> Operator | Scope:
        if self._core.hydrating:
            self._core.look()
        return super().__getitem__(rank)


class Scope:
    """A loop, or the whole dataflow (depth 0). ``outer`` is the parent's vector while it runs."""

    __slots__ = (
        "agenda", "core", "depth", "due", "entries", "error", "flow", "heap", "leaving", "limit", "loop", "max_round",
        "members", "outer", "overflows", "parent", "queued", "ran", "rank", "return_at_limit", "shape", "stale",
        "stride", "touched", "unfinished", "width",
    )  # fmt: skip

    def __init__(
        self, core: Core, parent: Scope | None, limit: int | None = None, return_at_limit: bool = False,
        stride: int = 0, width: int | None = None,
    ) -> None:  # fmt: skip
        self.core = core
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        around = 0 if parent is None else parent.shape
        self.shape: int = (
            0 if parent is None else deeper(around, width or some_width(around, None if stride else limit))
        )
        """Of the times inside (``ivm.kernels.times``)."""
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
        self.ran = False
        self.error: SqlError | None = None
        self.loop: LoopRun | None = None
        """A loop's own program."""
        self.flow: FlowRun | None = None
        """The outermost scope's, once it has stepped."""
        self.stale: dict[int, Operator | Scope] = {}
        """Members of the outermost scope that are to be compiled again, by identity."""

    @property
    def outermost(self) -> Scope:
        """The loop of depth 1 that it is or is in; the dataflow itself outside of loops."""
        return self if self.depth < 2 or self.parent is None else self.parent.outermost

    @property
    def last_round(self) -> int:
        """The last round that exists."""
        return self.max_round if self.limit is None or self.stride else min(self.max_round, self.limit - 1)

    @property
    def rounds(self) -> int:
        """How many there are, or in each priority."""
        return self.last_of_priority + 1 if self.stride else self.last_round + 1

    @property
    def last_of_priority(self) -> int:
        """The last round of each priority, counted within it."""
        return self.stride - 1 if self.limit is None else min(self.stride, self.limit) - 1

    later = None

    @property
    def around(self) -> Scope:
        """The loop around it."""
        assert self.parent is not None
        return self.parent

    def living(self) -> list[Operator | Scope]:
        """What it consists of, in rank order, without the loops that have failed."""
        items = (self.members[rank] for rank in sorted(self.members))
        return [item for item in items if isinstance(item, Operator) or item.error is None]

    def operators(self) -> list[Operator]:
        """Its own operators."""
        return [item for item in self.members.values() if isinstance(item, Operator)]

    def loops(self) -> list[Scope]:
        """The loops in it, in rank order."""
        return [item for rank in sorted(self.members) if isinstance(item := self.members[rank], Scope)]

    def compiled(self) -> LoopRun | None:
        """The loop as a kernel runs it, with those in it. While nodes are hydrated, old ones do not emit what is
        theirs."""
        if self.depth != 1 or not self.core.fuel:
            return None
        if self.loop is None:
            self.loop = LoopRun(self)
        return self.loop

    def changed(self, operator: Operator | None = None) -> None:
        """To be called when something has to be compiled again: a loop; outside of loops an operator."""
        if self.parent is None:
            if operator is not None:
                self.stale[id(operator)] = operator
            return
        loop = self.outermost
        loop.loop = None
        loop.around.stale[id(loop)] = loop

    def remove(self, member: Operator | Scope) -> None:
        """Takes out a member that is freed."""
        self.members.pop(member.rank, None)
        self.changed()
        root = self if self.parent is None else self.outermost.around
        root.stale.pop(id(member), None)
        if root.flow is not None:
            loop = member if isinstance(member, Scope) and root is self else self.outermost
            root.flow.program.forget(member, loop)

    def sources(self) -> list[Operator]:
        """What enters it, in the scope around it."""
        return [source for operator in self.operators() for source in operator.feeds() if source.scope is self.parent]

    def queue(self, item: Operator | Scope) -> None:
        """Lets an item run in the current pass."""
        if not item.queued:
            item.queued = True
            heappush(self.heap, item.rank)

    def wake(self) -> None:
        """Lets the whole loop run in the current pass of its parent."""
        if not self.queued and self.parent is not None:
            self.queued = True
            heappush(self.parent.heap, self.rank)

    def schedule(self, vector: int, item: Operator | Scope) -> None:
        """Lets an item run at a loop vector that is yet to come."""
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
        """Lets an entering operator deliver at round 0 of the coming run."""
        if entry not in self.entries:
            self.entries.append(entry)
        self.wake()

    def run(self, outer: int) -> bool:
        """Runs every vector due under the parent's vector ``outer``."""
        self.outer = outer
        if self.depth == 1:
            self.core.running, self.core.before = self, -1
        if self.error is not None:
            self.drop()
            return False
        if self.entries:
            first = outer << self.width if self.depth > 1 else 0
            for entry in self.entries:
                self.schedule(first, entry)
            self.entries.clear()
        due = self.due
        while due and (self.depth == 1 or due[0] >> self.width == outer):
            refused = self.core.look(self)
            if refused is not None:
                self.fail(refused)
            if self.error is not None:
                self.drop()
                break
            loop = self.compiled()
            if loop is not None:
                loop.run()
            else:
                self.run_vector(heappop(due))
        for leave in self.leaving:
            leave.run(outer)
        self.leaving.clear()
        return False

    def run_vector(self, vector: int) -> None:
        """The pass of a vector that is due."""
        for item in self.agenda.pop(vector, ()):
            self.queue(item)
        self.run_pass(vector)

    def run_pass(self, vector: int) -> None:
        """Runs everything awake, in rank order, then forgets what was emitted."""
        try:
            self._drain(vector)
            while self.unfinished:
                self._resume(vector)
        except BaseException:
            self.abandon()
            raise
        for operator in self.touched:
            operator.clear()
        self.touched.clear()

    def _drain(self, vector: int) -> None:
        heap = self.heap
        members = self.members
        touched = self.touched
        while heap:
            item = members[heappop(heap)]
            item.queued = False
            try:
                emits = item.run(vector)
            except Exception as error:
                self.broke(item, error)
                if isinstance(item, Operator):
                    touched.append(item)
                continue
            if emits:
                touched.append(item)  # type: ignore[arg-type]
                for consumer in item.inside:  # type: ignore[union-attr]
                    if not consumer.queued:
                        consumer.queued = True
                        heappush(heap, consumer.rank)
                for consumer in item.entering:  # type: ignore[union-attr]
                    consumer.wake()

    def broke(self, item: Operator | Scope, error: Exception) -> None:
        """An operator or loop that raised takes down what is downstream of it; the rest of the step goes on.

        Raises instead inside a loop, where nothing is maintained yet, and where the tables themselves are at stake.
        """
        core = self.core
        primary = isinstance(item, Operator) and item.primary
        if self.depth or core.hydrating or core.fuel or primary:
            raise error
        if isinstance(error, SqlError):
            failure = error.with_traceback(None)  # its frames would keep what they were at
        elif isinstance(error, MemoryError):
            failure = SqlError("53200", "out of memory")
            failure.__cause__ = error
        else:
            failure = SqlError("XX000", f"internal error: {type(error).__name__}: {error}")
            failure.__cause__ = error
        item.fail(failure)

    def _resume(self, vector: int) -> None:
        """The next piece of what is furthest downstream, so that the traces it reads stand still until it has ended.

        What was emitted has been taken in and must not be seen again; the join itself keeps the deltas it is at.
        """
        item = max(self.unfinished, key=lambda operator: operator.rank)
        self.unfinished.remove(item)
        self.core.look()
        for operator in self.touched:
            operator.let_go()
        self.touched.clear()
        item.wake()
        self._drain(vector)

    def abandon(self) -> None:
        """After an exception nothing is left to do: who called gives up what was new."""
        for item in self.members.values():
            item.queued = False
        self.heap.clear()
        self.unfinished.clear()
        for operator in self.touched:
            operator.clear()
        self.touched.clear()
        self.drop()

    @property
    def size(self) -> int:
        """Bytes held by everything inside."""
        return sum(member.size for member in self.members.values())

    def drop(self) -> None:
        """Forgets all work that waits, after a failure."""
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
            self.core.failing = error
        for item in self.members.values():
            item.fail(error)
