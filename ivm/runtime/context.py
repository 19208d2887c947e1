"""What all operators of a dataflow share: times, counters, and what may end a step before its end."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np

from ivm.budget import NO_BUDGET, Share, out_of_memory
from ivm.errors import SqlError
from ivm.kernels.join import S_OVERFLOWS, STATS
from ivm.trace.batch import Block, Words

if TYPE_CHECKING:
    from ivm.runtime.scheduler import Scope
    from ivm.trace.spine import Spine

LOOK_SECONDS: Final = 0.02
"""Between two looks at the memory that a loop or a query takes, which cost a microsecond or so an operator."""


class Core:
    """What all operators of a dataflow share. ``held``: the bytes that they hold; ``values``: those of the values that
    they have interned, and of others."""

    __slots__ = (
        "abandoned", "again", "before", "called", "cancel", "changed", "deadline", "failed", "failing", "fuel", "held",
        "hydrating", "look_at", "newest", "nothing", "passing", "paused", "refresh", "running", "share",
        "since", "since_word", "stats", "stepped_word", "values",
    )  # fmt: skip

    def __init__(self, held: Callable[[], int], values: Callable[[], int]) -> None:
        self.held = held
        self.values = values
        self.stats = np.zeros(STATS, np.int64)
        self.nothing = Block(1, 1, 1).d
        self.since = 0
        """Times up to this ordinal may become it."""
        self.since_word = np.zeros(1, np.int64)
        """The same, where spines see it."""
        self.stepped_word = np.zeros(1, np.int64)
        """The newest ordinal whose step is complete."""
        self.changed: list[Spine] = []
        self.called = 0
        """How often programs have left an operator to Python so far, insertions of large deltas aside."""
        self.newest = 0
        self.again = False
        """Whether the step has updates at an ordinal that was stepped before (a transaction's tentative one)."""
        self.cancel = threading.Event()
        self.running: Scope | None = None
        """The outermost loop that was entered last."""
        self.abandoned: Scope | None = None
        """A loop that is not to run to its end, set by any thread."""
        self.failing: SqlError | None = None
        self.failed = 0
        """Operators that have failed so far."""
        self.deadline = math.inf
        """When a step is to pause, on ``perf_counter``'s clock."""
        self.refresh: Callable[[], None] = nothing_new
        """Lets ordered spines see what was interned."""
        self.paused = False
        self.fuel = False
        """Whether joins outside of loops emit in pieces: allowed where all times are one."""
        self.hydrating = False
        self.passing = False
        """Whether nothing in it is maintained yet: all that it holds is of the one query or hydration."""
        self.share = Share(NO_BUDGET)
        self.before = -1
        """Bytes of the loop that runs when it was looked at first; -1: it was not."""
        self.look_at = 0.0
        """When to look next, on ``perf_counter``'s clock."""

    @property
    def interrupted(self) -> bool:
        """Whether the loop that runs is to end now."""
        return self.cancel.is_set() or (self.abandoned is not None and self.abandoned is self.running)

    def begin(self) -> None:
        """A step begins: there is time until the first look."""
        self.look_at = perf_counter() + LOOK_SECONDS

    def look(self, loop: Scope | None = None) -> SqlError | None:
        """Now and then, why no more memory may be taken, by a ``loop`` where something is maintained; a cancel at
        once."""
        grown = 0
        if not self.interrupted:
            now = perf_counter()
            if now < self.look_at:
                return None
            self.look_at = now + LOOK_SECONDS
            if loop is not None and not self.passing:
                size = loop.outermost.size + self.values()
                if self.before < 0:
                    self.before = size
                grown = size - self.before
        return self.refusal(0, grown)

    def refusal(self, more: int, own: int) -> SqlError | None:
        """Why no ``more`` bytes may be taken, if so, where the caller has taken its ``own`` in this step; raised at
        once where nothing is maintained yet, and all that is held counts.

        Where something is, the caller fails, and for a cancel the step ends with 57014.
        """
        error = None
        if self.interrupted:
            error = SqlError("57014", "canceling statement due to user request")
            if not self.hydrating:
                self.failing = error
        else:
            limit = self.share.budget.limit
            if limit and self.passing:
                error = self.share.hold(self.held() + more)
            elif limit and own + more > limit:
                error = out_of_memory(limit)
        if error is not None and (self.hydrating or self.fuel):
            raise error
        return error

    def uncounted(self, replayed: bool) -> SqlError | None:
        """Why what a join has emitted cannot stand, if so: a row more often than 2^60 times. Raised at once where
        nothing is maintained yet, or an operator's copy is ``replayed`` for new ones."""
        if not self.stats[S_OVERFLOWS]:
            return None
        self.stats[S_OVERFLOWS] = 0
        error = SqlError(
            "22003", "number of equal rows out of range", "A join gives a row more than 2^60 times.",
            "Group before joining, or join on more columns.",
        )  # fmt: skip
        if replayed or self.hydrating or self.fuel:
            raise error
        return error

    def since_of(self, depth: int) -> Words:
        """Where spines at a depth of loops read up to which ordinal times may become it: nobody reads the past of a
        loop's inside, so that there it is all that has been stepped."""
        return self.stepped_word if depth else self.since_word

    def compact(self, ordinal: int) -> None:
        """Moves the since on."""
        self.since = self.since_word[0] = ordinal


def nothing_held() -> int:
    """For a dataflow that has ended."""
    return 0


def nothing_new() -> None:
    """For a dataflow without an arena."""
