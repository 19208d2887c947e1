"""State shared by all operators of a dataflow: times, counters, and the limits that may end a step early."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import Enum
from time import perf_counter
from typing import Final, Protocol

import numpy as np

from ivm.budget import NO_BUDGET, Budget, Share, out_of_memory
from ivm.errors import SqlError
from ivm.kernels.join import S_OVERFLOWS, STATS
from ivm.moments import Moments
from ivm.rows import Words
from ivm.stops import Stop, stoppable
from ivm.trace.batch import Block
from ivm.trace.spine import Spine

ASK_SECONDS: Final = 0.005
"""Time between two questions whether a loop must end."""
LOOK_SECONDS: Final = 0.02
"""Time between two checks of the memory that a loop or a query takes. A check costs about 1 µs for each operator."""


class Mode(Enum):
    """What a dataflow is doing, which decides how it runs, what a failure takes down, and which memory counts.

    Only in ``MAINTAINED`` do steps run as compiled programs, and does a failing operator take down just what is
    downstream of it. In every other mode the scheduler calls operators one by one, and a failure is raised at once.
    """

    MAINTAINED = 0
    """A step of a maintained dataflow. The memory limit applies to what one operator or loop takes in one step."""
    HYDRATING = 1
    """New nodes are brought to the present inside a maintained dataflow."""
    DETACHED = 2
    """New nodes in a dataflow of their own, to be moved into another one later. Everything it holds counts."""
    ONCE = 3
    """A query that is computed once and thrown away: all times are one, so joins outside of loops may emit in slices
    (*fuel*), and loops run as compiled programs. Everything it holds counts."""

    @property
    def counts_everything(self) -> bool:
        """Whether the memory limit holds for all that the dataflow holds: nothing in it is maintained yet."""
        return self is Mode.DETACHED or self is Mode.ONCE


class Waiting(Protocol):
    """An operator that holds updates back until a moment."""

    @property
    def next(self) -> int:
        """Nothing is due before this moment."""
        ...

    def due(self, now: int) -> Words: ...
    def wake(self) -> None: ...


class RunningLoop(Protocol):
    """An outermost loop. ``patience``: by how much longer than others it may keep a step waiting."""

    patience: float

    def held(self) -> int: ...


TooSlow = Callable[[float, float], SqlError | None]
"""(seconds that a loop has run for in this step, its patience) → the error with which it must end now; None to go
on."""


class FlowContext:
    """What all operators of a dataflow share.

    ``held``: the bytes that they hold. ``values``: the bytes of interned values, theirs and others'.
    """

    __slots__ = (
        "abandoned", "again", "ask_at", "before", "called", "cancel", "changed", "cut", "deadline", "entered",
        "failed", "failing", "held", "look_at", "mode", "moments", "newest", "nothing", "paused", "refresh", "running",
        "share", "since", "since_word", "slow", "stats", "stepped_word", "stop", "values", "waiting",
    )  # fmt: skip

    def __init__(self, held: Callable[[], int], values: Callable[[], int], mode: Mode = Mode.MAINTAINED) -> None:
        self.held = held
        self.values = values
        self.mode = mode
        self.stats = np.zeros(STATS, np.int64)
        self.nothing = Block(1, 1, 1).d
        self.since = 0
        """The since: times up to this ordinal may be advanced to it."""
        self.since_word = np.zeros(1, np.int64)
        """The since, in the cell that spines read."""
        self.stepped_word = np.zeros(1, np.int64)
        """The newest ordinal whose step is complete."""
        self.changed: list[Spine] = []
        self.called = 0
        """How often programs have called an operator in Python so far, not counting insertions of large deltas."""
        self.newest = 0
        self.again = False
        """Whether the step has updates at an ordinal that was stepped before (a transaction's tentative one)."""
        self.cancel = threading.Event()
        self.stop: Stop | None = None
        """What ends operators that ask (``ivm.stops``) in the middle of their work; None: ``cancel``."""
        self.cut: Stop | None = None
        """What ends the step between two operators outside of loops."""
        self.running: RunningLoop | None = None
        """The outermost loop that runs, as far as is known."""
        self.entered = 0.0
        """Since when it has run, on ``perf_counter``'s clock."""
        self.slow: TooSlow | None = None
        """Asked, every ``ASK_SECONDS``, whether the running loop must end."""
        self.abandoned: object | None = None
        """An outermost loop that is to stop early; any thread may set it."""
        self.failing: SqlError | None = None
        self.failed = 0
        """Operators that have failed so far."""
        self.deadline = math.inf
        """When a step must pause, on ``perf_counter``'s clock."""
        self.refresh: Callable[[], None] = nothing_new
        """Shows ordered spines the newly interned values."""
        self.paused = False
        self.share = Share(NO_BUDGET)
        self.before = -1
        """Bytes held by the running loop at its first check; -1: not checked yet."""
        self.ask_at = self.look_at = 0.0
        """When to ask and when to check next, on ``perf_counter``'s clock."""
        self.moments = Moments()
        """What time it was at each ordinal."""
        self.waiting: list[Waiting] = []

    def follow(self, other: FlowContext) -> None:
        """Adopts the times and the memory budget of the dataflow beside which this one is made."""
        self.newest = other.newest
        self.moments = other.moments
        self.share = Share(other.share.budget)
        self.compact(other.since)
        self.stepped_word[0] = other.stepped_word[0]

    def stopping(self) -> AbstractContextManager[None]:
        """The context in which operators run: what ends them, and the memory that they may take for a while. A
        maintained view may not fail because of what others take."""
        budget = self.share.budget
        return stoppable(
            self.cancel if self.stop is None else self.stop,
            Budget(budget.limit) if self.mode is Mode.MAINTAINED else budget,
        )

    @property
    def interrupted(self) -> bool:
        """Whether the running loop must stop now."""
        return self.cancel.is_set() or (self.abandoned is not None and self.abandoned is self.running)

    def begin(self) -> None:
        """Starts a step: the first question is due after ``ASK_SECONDS``, the first check after ``LOOK_SECONDS``."""
        now = perf_counter()
        self.ask_at, self.look_at = now + ASK_SECONDS, now + LOOK_SECONDS

    def enter(self, loop: RunningLoop) -> None:
        """Notes that an outermost loop runs."""
        if self.running is not loop:
            self.running, self.before, self.entered = loop, -1, perf_counter()

    def leave(self, loop: RunningLoop) -> None:
        """Notes that a loop has been ended: what runs next is not abandoned with it."""
        if self.running is loop:
            self.running = self.abandoned = None

    def look(self, loop: RunningLoop | None = None) -> SqlError | None:
        """Checks for a cancel, and from time to time for memory and time. Returns the error, or None to go on.

        ``loop``: the running outermost loop, whose memory and time in this step are limited.
        """
        grown = 0
        if not self.interrupted:
            now = perf_counter()
            if now < self.ask_at and now < self.look_at:
                return None
            self.ask_at = now + ASK_SECONDS
            late = None if self.slow is None or loop is None else self.slow(now - self.entered, loop.patience)
            if late is not None:
                if self.mode is not Mode.MAINTAINED:
                    raise late
                return late
            if now < self.look_at:
                return None
            self.look_at = now + LOOK_SECONDS
            if loop is not None and not self.mode.counts_everything:
                size = loop.held() + self.values()
                if self.before < 0:
                    self.before = size
                grown = size - self.before
        return self.refusal(0, grown)

    def refusal(self, more: int, own: int) -> SqlError | None:
        """The error if a caller that has taken ``own`` bytes in this step may not take ``more`` bytes; None if it may.

        In ``MAINTAINED`` the caller is to fail, and a cancel ends the step with 57014. In all other modes the error is
        raised.
        """
        error = None
        if self.interrupted:
            error = SqlError("57014", "canceling statement due to user request")
            if self.mode is Mode.MAINTAINED:
                self.failing = error
        else:
            limit = self.share.budget.limit
            if limit and self.mode.counts_everything:
                error = self.share.hold(self.held() + more)
            elif limit and own + more > limit:
                error = out_of_memory(limit)
        if error is not None and self.mode is not Mode.MAINTAINED:
            raise error
        return error

    def uncounted(self, replayed: bool) -> SqlError | None:
        """22003 if a join has given a row more than 2^60 times since the last call. Raised, except in ``MAINTAINED``
        where the join is not ``replayed`` for new operators."""
        if not self.stats[S_OVERFLOWS]:
            return None
        self.stats[S_OVERFLOWS] = 0
        error = SqlError(
            "22003", "number of equal rows out of range", "A join gives a row more than 2^60 times.",
            "Group before joining, or join on more columns.",
        )  # fmt: skip
        if replayed or self.mode is not Mode.MAINTAINED:
            raise error
        return error

    def since_of(self, depth: int) -> Words:
        """The cell from which spines at a loop depth read their since. The past inside a loop is never read, so there
        the since is the newest completed ordinal."""
        return self.stepped_word if depth else self.since_word

    def compact(self, ordinal: int) -> None:
        """Advances the since."""
        self.since = self.since_word[0] = ordinal
        self.moments.forget(ordinal)

    def forget(self) -> None:
        """Ends it: drops its references to the dataflow and returns its share of the budget."""
        self.changed.clear()
        self.refresh, self.held, self.values = nothing_new, nothing_held, nothing_held
        self.share.release()


def nothing_held() -> int:
    """The bytes of a dataflow that has ended."""
    return 0


def nothing_new() -> None:
    """The refresh of a dataflow without an arena."""


class EndedBy:
    """See ``Dataflow.ended_by``."""

    __slots__ = ("_context", "_stop")

    def __init__(self, context: FlowContext, stop: Stop) -> None:
        self._context, self._stop = context, stop

    def __enter__(self) -> None:
        self._context.stop = self._stop

    def __exit__(self, *failure: object) -> None:
        self._context.stop = None
