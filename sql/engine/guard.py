"""A watchdog for steps of the dataflow that do not end, or that keep others waiting.

One INSERT may close a cycle under a recursive view, so that it never reaches its fixpoint; by then the commit is
durable. A loop for which others have waited is *parked*: what depends on it is taken down and filled anew beside the
engine (``sql/coordination/refilling.py``), while everything else goes on. A loop that nobody waits for may go on until
its time limit, and is then taken down with an error
([decision 0016](../../docs/decisions/0016-parked-views.md)).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import Final

from ivm.errors import SqlError
from ivm.stacks import stack_of

STEP_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.25
PATIENCE_SECONDS: Final = 0.015
"""How long a loop may keep others waiting; a view that has come back is given more. It asks every 5 ms."""
MOST_PATIENCE: Final = 128.0
"""The most times ``PATIENCE_SECONDS`` that a loop may be given: two seconds."""
EVALUATE_SECONDS: Final = 1.0
"""How long an operator may evaluate expressions while others wait."""
_EVALUATOR: Final = "/planner/expr/evaluate/"
ASKED_SECONDS: Final = 1.0
"""A loop has asked within this time if it is one that runs."""


class ParkedError(SqlError):
    """Why a view is down that is being filled beside the engine."""

    def __init__(self, why: str) -> None:
        hint = "Outside of a transaction, reading it waits for that. freshet.hydrations shows how far it is."
        super().__init__("55000", "the materialized view is being filled", why, hint)


class LaggingError(ParkedError):
    """The same of a view that the store has as of epoch ``upto`` only."""

    def __init__(self, why: str, upto: int) -> None:
        super().__init__(why)
        self.upto = upto


class LeftError(LaggingError):
    """The same of a view that is not filled before somebody asks for it."""

    def __init__(self, name: str, why: str, upto: int) -> None:
        super().__init__(why, upto)
        self.message = "the materialized view has not been filled"
        self.hint = f"REFRESH MATERIALIZED VIEW {name} fills it."


class Bound(Enum):
    """What bounds the loops of a step."""

    COMMIT = 0
    """A commit's: the time limit, and the patience of others."""
    ALONE = 1
    """The time limit only: the step cannot be left undone."""
    BESIDE = 2
    """The time limit, after which the view is filled beside the engine."""


class OneStop:
    """A stop for one of those who ask (``ivm.stops.Stop``)."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        """Whether whoever asks is to stop; the next one goes on."""
        found, self._set = self._set, False
        return found


class Cancels:
    """Whether a statement has been cancelled, and not only a step that takes too long."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def is_set(self) -> bool:
        return self._watch.is_interrupted and self._watch.reason is None


class Watch:
    """Bounds steps. Loops ask by ``too_slow``; everything else ends through ``interrupt``, and ``reason`` then tells
    why.

    ``others_wait``: whether work waits for the engine. A thread looks every ``POLL_SECONDS``, so that a short step
    costs only a few assignments.
    """

    def __init__(self, interrupt: threading.Event) -> None:
        self._interrupt = interrupt
        self.overdue = OneStop()
        """Set with ``interrupt``, which cancels set too: a cancel takes no view down for a commit that is made. Set
        alone for an operator that evaluates for long while others wait."""
        self._thread = 0
        self._evaluates: tuple[int, float] | None = None
        """Since when the same operator has been evaluating: how often operators had been called, and the time."""
        self.calls: Callable[[], int] = lambda: 0
        self._deadline: float | None = None
        """Of what runs outside of loops, in monotonic seconds."""
        self._limit = STEP_SECONDS
        self._bound = Bound.ALONE
        self._asked = 0.0
        self._waited_since: float | None = None
        self._stopped = threading.Event()
        self.others_wait: Callable[[], bool] = lambda: False
        self.reason: SqlError | None = None
        self.seconds = STEP_SECONDS
        self.cancels = Cancels(self)
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    @property
    def is_interrupted(self) -> bool:
        """Whether a step, or the statement that makes it, is to end."""
        return self._interrupt.is_set()

    def over(self, seconds: float | None = None, bound: Bound = Bound.ALONE) -> Watch:
        """A context, to be entered at once, in which this thread is watched."""
        self.reason = None
        self._limit = self.seconds if seconds is None else seconds
        self._bound = bound
        self._waited_since = None
        self._thread, self._evaluates = threading.get_ident(), None
        self._deadline = time.monotonic() + self._limit
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *failure: object) -> None:
        self._deadline = None
        if self.reason is not None:
            self._interrupt.clear()
            self.overdue.clear()

    def too_slow(self, seconds: float, patience: float) -> SqlError | None:
        """``ivm.runtime.context.TooSlow`` for the loops of the engine's steps."""
        if self._deadline is None:
            return None
        self._asked = now = time.monotonic()
        self._deadline = now + self._limit  # what comes after the loop has a limit of its own
        if seconds > self._limit:
            return self._late()
        if self._bound is not Bound.COMMIT or not self.others_wait():
            self._waited_since = None
            return None
        if self._waited_since is None:
            self._waited_since = now
        waited = now - self._waited_since
        if min(seconds, waited) < PATIENCE_SECONDS * min(patience, MOST_PATIENCE):
            return None
        return ParkedError("A step of it took long while others waited.")

    def _late(self) -> SqlError:
        if self._bound is Bound.BESIDE:
            return ParkedError("It takes longer than others should wait.")
        return SqlError("54001", "the step did not end in time")

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(POLL_SECONDS):
            deadline, now = self._deadline, time.monotonic()
            if deadline is None:
                continue
            if now > max(deadline, self._asked + ASKED_SECONDS):
                self._interrupt_with(self._late())
            elif self._bound is Bound.COMMIT and self._evaluates_long(now) and self.others_wait():
                self._evaluates = None
                self.reason = ParkedError("A function of it took long while others waited.")
                self.overdue.set()

    def _evaluates_long(self, now: float) -> bool:
        """Whether one operator has been evaluating expressions for ``EVALUATE_SECONDS``."""
        calls = self.calls()
        if not any(_EVALUATOR in frame.f_code.co_filename for frame in stack_of(self._thread)):
            self._evaluates = None
            return False
        if self._evaluates is None or self._evaluates[0] != calls:
            self._evaluates = calls, now
        return now - self._evaluates[1] > EVALUATE_SECONDS

    def _interrupt_with(self, reason: SqlError) -> None:
        self.reason = reason
        if self._deadline is not None:
            self.overdue.set()
            self._interrupt.set()
