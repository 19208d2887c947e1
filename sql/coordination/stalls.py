"""A watchdog for the two threads that others wait for: the engine's, and the event loop's.

A thread of its own looks at them every ``LOOK_SECONDS``. What has run for longer than ``STALL_SECONDS`` is named in the
log and in ``freshet.stalls``: its statement, and what the thread's stack tells of the view, the operator and the
function. It interrupts nothing: a step parks the views that keep others waiting (``sql/engine/guard.py``), and what
evaluates asks by itself whether it must end (``ivm/stops.py``).
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import CO_OPTIMIZED
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Final, TypeVar

from ivm.runtime.operator import Operator, Scope
from ivm.stacks import stack_of
from sql.coordination.planning import SHOWN_CHARACTERS
from sql.coordination.thread import EngineThread
from sql.engine.clock import timestamp_now
from sql.engine.engine import Engine

LOOK_SECONDS: Final = 0.05
STALL_SECONDS: Final = 0.25
KEPT: Final = 200
_ROOT: Final = str(Path(__file__).resolve().parents[2])
_FUNCTIONS: Final = ("planner/expr/functions/", "storage/types/")
_SHOWN: Final = 500
"""The most characters of a statement in the log."""

_SECRET: Final = re.compile("password|secret|verifier", re.IGNORECASE)
T = TypeVar("T")

log = logging.getLogger("freshet.stalls")


@dataclass(frozen=True, slots=True)
class Stall:
    """One standstill. ``started``: µs since 2000. ``place``: the innermost line of the server's own code."""

    started: int
    thread: str
    seconds: float
    statement: str | None
    view: str | None
    operator: str | None
    function: str | None
    place: str | None


class Stalls:
    """Watches the threads. ``recent``: the newest standstills, oldest first; any thread may read it."""

    def __init__(self, engine: Engine, thread: EngineThread) -> None:
        self._engine, self._thread = engine, thread
        self._loop = asyncio.get_running_loop()
        self._loop_ident = threading.get_ident()
        self._asked = self._answered = perf_counter()
        self._open: dict[str, Stall] = {}
        self._stopped = threading.Event()
        self.recent: deque[Stall] = deque(maxlen=KEPT)
        threading.Thread(target=self._run, name="stalls", daemon=True).start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()

    def all(self) -> list[Stall]:
        """The newest standstills, those that go on included."""
        return [*self.recent, *self._open.values()]

    def _run(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            busy = self._thread.busy
            since, statement = busy if busy is not None else (None, None)
            self._look("engine", since, statement, self._thread.ident)
            self._look("listener", self._unanswered(), None, self._loop_ident)

    def _unanswered(self) -> float | None:
        """Since when the event loop has owed an answer; asks it for the next one otherwise."""
        if self._answered >= self._asked:
            self._asked = perf_counter()
            try:
                self._loop.call_soon_threadsafe(self._answer)
            except RuntimeError:  # the loop has been closed
                self._stopped.set()
            return None
        return self._asked

    def _answer(self) -> None:
        self._answered = perf_counter()

    def _look(self, thread: str, since: float | None, statement: str | None, ident: int | None) -> None:
        known = self._open.get(thread)
        if known is not None and (since is None or perf_counter() - since < known.seconds):
            self.recent.append(self._open.pop(thread))  # it has ended
            known = None
        if since is None or perf_counter() - since < STALL_SECONDS:
            return
        seconds = perf_counter() - since
        if known is not None:
            self._open[thread] = replace(known, seconds=seconds)
            return
        stall = self._describe(thread, seconds, statement, stack_of(ident))
        self._open[thread] = stall
        log.warning(
            "the %s's thread has been busy for %.0f ms: statement %s, view %s, operator %s, function %s, at %s",
            thread, 1000 * seconds, (stall.statement or "unknown")[:_SHOWN], stall.view or "none",
            stall.operator or "none", stall.function or "none", stall.place or "unknown",
        )  # fmt: skip

    def _describe(self, thread: str, seconds: float, statement: str | None, frames: list[FrameType]) -> Stall:
        operator = _found(frames, lambda f: _named(f, ("member", "item", "operator"), Operator))
        running = self._engine.dataflow.running
        loop = running if thread == "engine" and isinstance(running, Scope) else None
        view = self._view(operator, loop)
        kind = type(operator).__name__.removesuffix("Operator") if isinstance(operator, Operator) else None
        function = _found(frames, lambda f: f.f_code.co_name if _place(f, _FUNCTIONS) is not None else None)
        return Stall(
            timestamp_now() - round(seconds * 1e6), thread, seconds, _shown(statement or _statement(frames)), view,
            kind or (None if loop is None else "Loop"), function, _found(frames, _place),
        )  # fmt: skip

    def _view(self, operator: object, loop: Scope | None) -> str | None:
        """The views that have an operator, or one of a loop's, by name."""
        found = [] if loop is None else list(loop.all_operators())
        nodes = {o.id for o in ([operator] if isinstance(operator, Operator) else found)}
        known = self._engine.catalog.relations
        stored = dict(self._engine.renderer.stored)
        names = [known[i].name for i, s in stored.items() if i in known and not nodes.isdisjoint(s.nodes)]
        return ", ".join(sorted(names)) or None


def _found(frames: list[FrameType], what: Callable[[FrameType], T | None]) -> T | None:
    """What the innermost frame that has it tells."""
    return next((found for frame in frames if (found := what(frame)) is not None), None)


def _shown(statement: str | None) -> str | None:
    """A statement up to a word that a password or a secret may follow."""
    statement = None if statement is None else statement[:SHOWN_CHARACTERS]
    secret = None if statement is None else _SECRET.search(statement)
    return statement if statement is None or secret is None else f"{statement[: secret.end()]} …"


def _is_own(frame: FrameType) -> bool:
    """Whether it runs the server's own code."""
    path = frame.f_code.co_filename
    return path.startswith(_ROOT) and "site-packages" not in path


def _values(frame: FrameType, names: tuple[str, ...]) -> list[object]:
    """Those of a frame's local variables of these names; None for one that it does not have.

    Before Python 3.13 the frame keeps a snapshot of its variables from then on. A connection's coroutine never ends, so
    that a long statement would stay for good: the snapshot is emptied.
    """
    if not _is_own(frame):
        return []
    variables = frame.f_locals
    found = [variables.get(name) for name in names]
    if isinstance(variables, dict) and frame.f_code.co_flags & CO_OPTIMIZED:
        variables.clear()
    return found


def _named(frame: FrameType, names: tuple[str, ...], kind: type[T]) -> T | None:
    """The value of a local variable of one of these names, if it is of this type."""
    return next((v for v in _values(frame, names) if isinstance(v, kind)), None)


def _place(frame: FrameType, within: tuple[str, ...] = ("",)) -> str | None:
    """The place of a frame of the server's own code: file, line and function."""
    name = frame.f_code.co_filename[len(_ROOT) + 1 :]
    return f"{name}:{frame.f_lineno} {frame.f_code.co_name}" if _is_own(frame) and name.startswith(within) else None


def _statement(frames: list[FrameType]) -> str | None:
    """The text of the statement that a stack of the event loop's thread runs."""
    for frame in frames:
        prepared, text, session, owner = _values(frame, ("prepared", "text", "_session", "self")) or (None,) * 4
        for value in (
            getattr(prepared, "text", None),
            text if "sql/" in frame.f_code.co_filename else None,
            getattr(session, "statement", None),
            getattr(owner, "statement", None),
        ):
            if isinstance(value, str) and value:
                return value
    return None
